import { Fields } from './shape/description.js';
import { fragmentId, reasonFor, type Fragment, type FragmentRef, type Reason, type Strategy } from '#libs/contracts';
import { Nested, Optional, type Problem } from './shape/checked.js';
import { AnyList, CountOrPercent, Duration, Flag, patternForm, Text, Whole } from './shape/forms.js';
import { FRAGMENT_NAME } from './fragment-name.js';
import { isObject, readShape, typeName } from './shape/reader.js';
import { jsonProblems, MAX_CHANGE_BYTES, utf8Bytes } from './json-form.js';
import { parseJson } from './json-text.js';
import { checkManifest, reasonsOf } from './manifest.js';
import { MAX_NODES } from './kinds/pool.js';
import { CHANGE_ID } from './requests/forms.js';

/** A change as its author wrote it: the unit of rollout. */
export interface Change {
  readonly apply: readonly Fragment[];
  readonly delete: readonly FragmentRef[];
  readonly message: string;
  readonly author: string;
  readonly strategy: Strategy;
  /** The change that this one repeats; empty for none. */
  readonly retryOf: string;
  /** Fragments of other sources may be changed and deleted, and belong to the source of this change from then on. */
  readonly takeOver?: boolean;
  /** The change is to publish the state before this one. Then it has nothing to apply and to delete yet. */
  readonly rollbackOf?: string;
}

/** A change, or every reason why it is invalid. */
export type ChangeResult =
  | { readonly ok: true; readonly change: Change }
  | { readonly ok: false; readonly reasons: readonly Reason[] };

/** How long a change waits for missing references if it does not say. */
export const DEFAULT_NEEDS_TIMEOUT = '24h';

/** How to roll the change out, if it differs from the policies. */
@Fields({
  maxFailures: 'How many nodes may fail before the change is rolled back. Overrides every RolloutPolicy.',
  maxUnavailable:
    'How many nodes may change at once: a number, or a percentage of the nodes that the change affects. The budget of each pool limits it, too: the smaller one counts. A rollback is limited by the pools only.',
  strict:
    'Rejects the change if the plan or the review has a warning, or if it refers to something that does not exist.',
  needsTimeout: `How long the change may wait for fragments that it refers to and that do not exist yet. Then it is rejected. Default: ${DEFAULT_NEEDS_TIMEOUT}.`,
})
export class StrategySpec {
  @Optional() @Whole(0, MAX_NODES) readonly maxFailures?: number;
  @Optional() @CountOrPercent(MAX_NODES) readonly maxUnavailable?: number | string;
  @Optional() @Flag() readonly strict?: boolean;
  @Optional() @Duration() readonly needsTimeout?: string;
}

const KIND_NAME = /^[A-Z][A-Za-z0-9]{0,62}$/;
const CHANGE_ID_OR_NONE = patternForm(
  'bad-change',
  /^(c[1-9][0-9]{0,15})?$/,
  'must be the id of a change, such as c12',
);

/** Identifies a fragment to delete. Its kind may be unknown to this version. */
export class FragmentRefSpec {
  @Text(patternForm('bad-kind', KIND_NAME, 'must be the name of a kind')) readonly kind!: string;
  @Text(FRAGMENT_NAME) readonly name!: string;
}

/** The body of a message in CHANGES. */
export class ChangeBody {
  @Optional() @AnyList() readonly apply?: readonly unknown[];
  @Optional() @AnyList() readonly delete?: readonly unknown[];
  @Optional() @Text() readonly message?: string;
  @Optional() @Text() readonly author?: string;
  @Optional() @Nested(() => StrategySpec) readonly strategy?: StrategySpec;
  @Optional() @Text(CHANGE_ID_OR_NONE) readonly retryOf?: string;
  @Optional() @Flag() readonly takeOver?: boolean;
  @Optional() @Text(CHANGE_ID) readonly rollbackOf?: string;
}

/** Reads the body of a message in CHANGES: a change, or one bare manifest. */
export function readChange(text: string): ChangeResult {
  const bytes = utf8Bytes(text);
  if (bytes > MAX_CHANGE_BYTES) {
    return refused([
      {
        at: '',
        code: 'too-large',
        message: `the change has ${bytes} bytes; the limit is ${MAX_CHANGE_BYTES}: split it`,
      },
    ]);
  }
  const json = parseJson(text);
  if (json.ok) return readChangeBody(json.value);
  return refused([
    { at: '', code: 'not-json', message: `the body is not JSON: line ${json.line}, column ${json.column}` },
  ]);
}

/** The same for a parsed body. */
export function readChangeBody(body: unknown): ChangeResult {
  const form = jsonProblems(body);
  if (form.length > 0) return refused(form);
  if (!isObject(body))
    return refused([
      { at: '', code: 'wrong-type', message: `the body must be a change or a manifest, but is ${typeName(body)}` },
    ]);
  const isBare = Object.hasOwn(body, 'kind') || Object.hasOwn(body, 'apiVersion');
  return isBare ? bareManifest(body) : fullChange(body);
}

const NOTHING_TO_DO = 'there is nothing to apply and nothing to delete';
const ROLLBACK_WITH_CONTENT = 'a rollback publishes the state before that change: it cannot have apply or delete, too';

const refused = (problems: readonly Problem[]): ChangeResult => ({ ok: false, reasons: reasonsOf('', problems) });

function bareManifest(body: unknown): ChangeResult {
  const checked = checkManifest(body, 'manifest');
  if (!checked.ok) return checked;
  return {
    ok: true,
    change: { apply: [checked.fragment], delete: [], message: '', author: '', strategy: {}, retryOf: '' },
  };
}

function fullChange(body: Readonly<Record<string, unknown>>): ChangeResult {
  const shape = readShape(ChangeBody, body);
  const reasons: Reason[] = [...reasonsOf('', shape.problems)];
  const apply = listOf(body['apply']).map((document, i) => checkManifest(document, `apply[${i}]`));
  for (const checked of apply) if (!checked.ok) reasons.push(...checked.reasons);
  const remove = listOf(body['delete']).map((item) => readShape(FragmentRefSpec, item));
  remove.forEach(({ problems }, i) => reasons.push(...reasonsOf(`delete[${i}]`, problems)));
  // Only valid names are compared. The others already have a reason.
  const entries = [
    ...apply.flatMap((checked, i) => (checked.ok ? [{ place: `apply[${i}]`, id: fragmentId(checked.fragment) }] : [])),
    ...remove.flatMap(({ value, problems }, i) =>
      problems.length === 0 ? [{ place: `delete[${i}]`, id: fragmentId(value) }] : [],
    ),
  ];
  reasons.push(...twiceReasons(entries));
  const { message = '', author = '', strategy = {}, retryOf = '', takeOver = false, rollbackOf } = shape.value;
  const isEmpty = listOf(body['apply']).length + listOf(body['delete']).length === 0;
  if (isEmpty && shape.problems.length === 0 && rollbackOf === undefined)
    reasons.push(...reasonsOf('', [{ at: '', code: 'empty-change', message: NOTHING_TO_DO }]));
  if (!isEmpty && rollbackOf !== undefined)
    reasons.push(...reasonsOf('', [{ at: 'rollbackOf', code: 'forbidden', message: ROLLBACK_WITH_CONTENT }]));
  if (reasons.length > 0) return { ok: false, reasons };
  return {
    ok: true,
    change: {
      apply: apply.flatMap((checked) => (checked.ok ? [checked.fragment] : [])),
      delete: remove.map(({ value }) => ({ kind: value.kind, name: value.name })),
      message,
      author,
      strategy: strategyOf(strategy),
      retryOf,
      ...(takeOver ? { takeOver } : {}),
      ...(rollbackOf === undefined ? {} : { rollbackOf }),
    },
  };
}

/** As facts have it: `maxUnavailable` as text. */
function strategyOf({ maxUnavailable, ...rest }: StrategySpec): Strategy {
  return { ...rest, ...(maxUnavailable === undefined ? {} : { maxUnavailable: String(maxUnavailable) }) };
}

/** The inverse, for a change that is published again. */
export function writtenStrategy({ maxUnavailable, ...rest }: Strategy): StrategySpec {
  if (maxUnavailable === undefined) return rest;
  return { ...rest, maxUnavailable: maxUnavailable.endsWith('%') ? maxUnavailable : Number(maxUnavailable) };
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

function twiceReasons(entries: readonly { readonly place: string; readonly id: string }[]): readonly Reason[] {
  const first = new Map<string, string>();
  return entries.flatMap(({ place, id }) => {
    const before = first.get(id);
    if (before === undefined) {
      first.set(id, place);
      return [];
    }
    return [reasonFor({ fragment: id, field: place }, 'duplicate', `${id} is in both ${before} and ${place}`)];
  });
}
