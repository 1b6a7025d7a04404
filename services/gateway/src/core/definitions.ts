import { API_VERSION, type DefinitionDifference } from '#libs/manifests';
import type { Status } from './resource.js';

/**
 * What is wrong with the definitions in the API server, and for each kind that has objects, what to show in their
 * status.
 */
export interface DefinitionTrouble {
  /** Undefined if all is well. */
  readonly words: string | undefined;
  readonly kinds: ReadonlyMap<string, string>;
  /**
   * Fields of the status that the definition of a kind does not have: the API server rejects a status with one of them.
   */
  readonly unsaid: ReadonlyMap<string, ReadonlySet<string>>;
}

export const DEFINITIONS_TODO = 'apply the definitions of this version: kubectl apply --server-side -f deploy/crds';
export const NO_TROUBLE: DefinitionTrouble = { words: undefined, kinds: new Map(), unsaid: new Map() };
const MOST_FIELDS = 5;

/** Describes how the definitions differ; `versions` are those of the group on the server. */
export function troubleOf(
  differences: readonly DefinitionDifference[] | undefined,
  versions: readonly string[],
): DefinitionTrouble {
  if (differences === undefined) {
    return {
      words: `the API server does not serve ${API_VERSION}${versions.length === 0 ? '' : `, only ${versions.join(', ')}`}: no object is published`,
      kinds: new Map(),
      unsaid: new Map(),
    };
  }
  if (differences.length === 0) return NO_TROUBLE;
  const missing = differences.filter(({ isMissing }) => isMissing).map(({ kind }) => kind);
  const others = differences.filter(({ isMissing }) => !isMissing);
  const kinds = new Map(others.map((one) => [one.kind, wordsOf(one)]));
  return {
    words: [
      ...(missing.length === 0 ? [] : [`the API server has no definition of ${missing.join(', ')}`]),
      ...kinds.values(),
    ].join('; '),
    kinds,
    unsaid: new Map(others.map(({ kind, lacks }) => [kind, unsaidOf(lacks)])),
  };
}

/** `status.usedBy` and `status.pools.done` make `usedBy` and `pools`. */
const unsaidOf = (lacks: readonly string[]): ReadonlySet<string> =>
  new Set(lacks.flatMap((field) => /^status\.(\w+)/.exec(field)?.[1] ?? []));

function wordsOf({ kind, lacks, adds }: DefinitionDifference): string {
  const parts = [
    ...(lacks.length === 0 ? [] : [`it does not have ${listText(lacks)}`]),
    ...(adds.length === 0 ? [] : [`it has ${listText(adds)}, which this gateway rejects`]),
  ];
  return `the API server has another version of the definition of ${kind}: ${parts.join(', and ')}`;
}

const listText = (fields: readonly string[]): string =>
  `${fields.slice(0, MOST_FIELDS).join(', ')}${fields.length > MOST_FIELDS ? ` and ${fields.length - MOST_FIELDS} more` : ''}`;

/** A status without the fields that the definition of the kind does not have. */
export function declaredOf({ unsaid }: DefinitionTrouble, kind: string, status: Status): Status {
  const left = unsaid.get(kind);
  return left === undefined || left.size === 0
    ? status
    : Object.fromEntries(Object.entries(status).filter(([field]) => !left.has(field)));
}
