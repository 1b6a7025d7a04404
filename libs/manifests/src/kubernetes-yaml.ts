import {
  isAlias,
  isCollection,
  isNode,
  isPair,
  parse,
  visit,
  type Document,
  type DocumentOptions,
  type Pair,
  type SchemaOptions,
  type Scalar,
  type ScalarTag,
  type Tags,
} from 'yaml';

/** How YAML is read, beyond its grammar. */
export interface YamlDialect {
  readonly options: DocumentOptions & SchemaOptions;
  /** Why a document must not be converted to plain values; undefined if it may. */
  readonly problem: (document: Document) => string | undefined;
  /** Values that a person may have meant in another way. */
  readonly ambiguous: (document: Document, isLeftOut: ReadByOthers) => readonly AmbiguousValue[];
}

/** A value that kubectl would read in another way. */
export interface AmbiguousValue {
  readonly range: readonly number[];
  readonly message: string;
}

/**
 * YAML 1.2, for Sluice's own manifests. It does not guess: manifests of Kubernetes are in them too, and their authors
 * mean what kubectl reads.
 */
export const SLUICE_YAML: YamlDialect = { options: {}, problem: () => undefined, ambiguous: ambiguousIn };

/** A mode in Go's syntax for octal numbers, which no version of YAML has: kubectl accepts it. */
const GO_OCTAL: ScalarTag = {
  default: true,
  tag: 'tag:yaml.org,2002:int',
  test: /^[-+]?0o[0-7_]+$/,
  resolve: (text) => (text.startsWith('-') ? -1 : 1) * parseInt(text.replaceAll(/[-+_]|0o/g, ''), 8),
};

/**
 * What YAML 1.1 has and kubectl does not, or reads as text: dates, base-60 numbers (`64512:10` and many MACs look like
 * one), sets and others.
 */
const NOT_IN_KUBERNETES = ['timestamp', 'binary', 'omap', 'pairs', 'set'].map((name) => `tag:yaml.org,2002:${name}`);
const BASE_60 = 'TIME';

const kubernetesTags = (tags: Tags): Tags => [
  ...tags.filter(
    (tag) =>
      typeof tag === 'string' || !(NOT_IN_KUBERNETES.includes(tag.tag) || ('format' in tag && tag.format === BASE_60)),
  ),
  GO_OCTAL,
];

/**
 * YAML as kubectl and the API server read it (sigs.k8s.io/yaml), which is nearly YAML 1.1: `0644` is octal, `yes`,
 * `no`, `on` and `off` are booleans, `<<` merges. The schema is set together with the version, because a `%YAML` line
 * in the text would override the version.
 */
export const KUBERNETES_YAML: YamlDialect = {
  options: { version: '1.1', schema: 'yaml-1.1', resolveKnownTags: false, merge: true, customTags: kubernetesTags },
  problem: (document) => aliasProblem(document),
  ambiguous: () => [],
};

/**
 * Merging copies, so yaml's own count of aliases does not notice it. The result of a document may have no more values
 * than any text.
 */
const MAX_VALUES = 500_000;

function aliasProblem(document: Document): string | undefined {
  const weights = new Map<string, number>();
  const open = new Set<string>();
  let self: string | undefined;
  const weigh = (node: unknown): number => {
    if (isAlias(node)) {
      if (open.has(node.source)) self ??= node.source;
      return weights.get(node.source) ?? 1;
    }
    if (isPair(node)) return weigh(node.key) + weigh(node.value);
    const anchor = isNode(node) && 'anchor' in node ? node.anchor : undefined;
    if (anchor !== undefined) open.add(anchor);
    const weight = isCollection(node) ? node.items.reduce<number>((sum, item) => sum + weigh(item), 1) : 1;
    if (anchor === undefined) return weight;
    open.delete(anchor);
    weights.set(anchor, weight);
    return weight;
  };
  const weight = weigh(document.contents);
  if (self !== undefined) return `the anchor ${self} contains itself`;
  return weight > MAX_VALUES ? 'its aliases and merge keys expand to more than can be read' : undefined;
}

/** What the two versions of YAML may read differently. Everything else is the same, and is not read again. */
const MAY_DIFFER = /^(y|yes|n|no|on|off|[-+.]?[0-9][0-9a-z_:.+-]*)$/i;
const IS_DECIMAL = /^(0|[1-9][0-9]*)$/;
const MERGE = '<<';

/** A part of a document that is read as kubectl reads it, and not with this dialect. */
type ReadByOthers = (pair: Pair, path: readonly unknown[]) => boolean;

/** The values without quotes that kubectl reads in another way, such as `0400` and `yes`. */
function ambiguousIn(document: Document, isLeftOut: ReadByOthers): readonly AmbiguousValue[] {
  const found: AmbiguousValue[] = [];
  const others = new Map<string, unknown>();
  const otherOf = (text: string): unknown => {
    if (!others.has(text)) others.set(text, parse(text, KUBERNETES_YAML.options));
    return others.get(text);
  };
  visit(document, {
    Pair: (_, pair, path) => (isLeftOut(pair, path) ? visit.SKIP : undefined),
    Scalar: (key, { type, source = '', value, range }: Scalar) => {
      if (type !== 'PLAIN' || !range) return;
      if (source === MERGE && key === 'key') {
        const message = 'merge keys are read by kubectl, and not by Sluice: write the fields here';
        found.push({ range, message });
      }
      if (!MAY_DIFFER.test(source) || IS_DECIMAL.test(source)) return;
      const other = otherOf(source);
      if (Object.is(other, value)) return;
      const [own, theirs] = [value, other].map((one) => JSON.stringify(one));
      const message = `${source} is ${own} in YAML 1.2, and ${theirs} for kubectl: put it in quotes if it is a text, or write ${theirs} if that is the value`;
      found.push({ range, message });
    },
  });
  return found;
}
