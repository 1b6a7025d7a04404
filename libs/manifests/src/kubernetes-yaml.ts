import {
  isAlias,
  isCollection,
  isNode,
  isPair,
  type Document,
  type DocumentOptions,
  type SchemaOptions,
  type ScalarTag,
  type Tags,
} from 'yaml';

/** How YAML is read, beyond its grammar. */
export interface YamlDialect {
  readonly options: DocumentOptions & SchemaOptions;
  /** Why a document must not be converted to plain values; undefined if it may. */
  readonly problem: (document: Document) => string | undefined;
}

/** YAML 1.2, for Sluice's own manifests. */
export const SLUICE_YAML: YamlDialect = { options: {}, problem: () => undefined };

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
