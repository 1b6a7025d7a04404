import {
  decodeFact,
  factSubject,
  type Fact,
  type FactType,
  type Fragment,
  type FragmentRef,
  type NewFact,
  type NewFactOf,
  type NodeReport,
  type Reason,
  type Targets,
} from '#libs/contracts';

/** A fact with these fields. The defaults of the wire fill the rest. */
export function factOf<T extends FactType>(type: T, body: Partial<NewFactOf<T>>): NewFactOf<T> {
  const {
    v: _,
    at: __,
    ...fact
  } = decodeFact(factSubject({ type, ...body } as unknown as NewFact), JSON.stringify({ ...body, type: undefined }));
  return fact as unknown as NewFactOf<T>;
}

/** In these tests, a blob of targets is named by its content. */
export const blobOf = (targets: Targets): string => JSON.stringify(targets);
export const targetsOf = (fact: Fact | NewFact): Targets | undefined =>
  fact.type === 'config.rendered'
    ? (Object.assign({}, ...fact.targets.map((key) => JSON.parse(key) as Targets)) as Targets)
    : undefined;

export const joined = (
  node: string,
  labels: Readonly<Record<string, string>> = {},
  more: Partial<NewFactOf<'node.joined'>> = {},
): NewFact => factOf('node.joined', { node, labels, incarnation: 1, nonce: 7, seq: 1, ...more });
export const changed = (
  node: string,
  labels: Readonly<Record<string, string>>,
  capabilities: readonly string[] = [],
): NewFact => factOf('node.changed', { node, labels, capabilities, incarnation: 1, nonce: 7, seq: 2 });
export const left = (node: string): NewFact => factOf('node.left', { node, because: 'removed', by: 'me' });
export const silent = (node: string): NewFact => factOf('node.silent', { node });
export const heard = (node: string): NewFact => factOf('node.heard', { node });
/** The committed config of a node, outside rollouts. */
export const renderedNode = (node: string, hash: string, more: Partial<NewFactOf<'node.rendered'>> = {}): NewFact =>
  factOf('node.rendered', { node, hash, recipe: `r-${hash}`, cause: 'join', ...more });
export const reviewedNode = (node: string, hash: string, reasons: readonly Reason[] = []): NewFact =>
  factOf('node.reviewed', { node, hash, compatible: reasons.length === 0, reasons });

export const reason = (code: string, message = code): Reason => ({ fragment: '', field: '', code, message, nodes: [] });

/** A fragment as the merger accepts it; without a selector it is for every node. */
export const fragment = (kind: string, name: string, spec: Readonly<Record<string, unknown>> = {}): Fragment => ({
  kind,
  name,
  labels: {},
  spec: { nodeSelector: {}, ...spec } as Fragment['spec'],
});
export const file = (name: string, content: string, role?: string): Fragment =>
  fragment('File', name, {
    path: `/etc/${name}`,
    content,
    nodeSelector: role === undefined ? {} : { matchLabels: { role } },
  });
export const pool = (name: string, maxUnavailable: number | string, role = name, more: object = {}): Fragment =>
  fragment('Pool', name, { maxUnavailable, nodeSelector: { matchLabels: { role } }, ...more });

/** The content of a change, as a short text. */
export interface ChangeContent {
  readonly apply?: readonly Fragment[];
  readonly delete?: readonly FragmentRef[];
  readonly maxFailures?: number;
  readonly maxUnavailable?: string;
}
export const accepted = (change: string, { apply = [], delete: gone = [], ...strategy }: ChangeContent = {}): NewFact =>
  factOf('config.accepted', {
    change,
    apply,
    delete: gone,
    strategy,
  });
export const renderedChange = (
  change: string,
  targets: Targets,
  more: Partial<NewFactOf<'config.rendered'>> = {},
): NewFact => factOf('config.rendered', { change, attempt: 1, targets: [blobOf(targets)], ...more });
export const validated = (change: string, attempt = 1, incompatible: readonly string[] = []): NewFact =>
  factOf('config.validated', { change, attempt, incompatible });
export const committed = (change: string, generation = 1): NewFact =>
  factOf('config.committed', { change, generation });
export const ended = (change: string, outcome: string): NewFact => factOf('config.ended', { change, outcome });

/** A report. Its defaults are those of a healthy node that has just started. */
export const report = (node: string, hash: string, more: Partial<NodeReport> = {}): NodeReport => ({
  kind: 'announced',
  v: 1,
  at: '',
  node,
  incarnation: 1,
  nonce: 7,
  seq: 1,
  bootId: 'b1',
  hash,
  lease: '',
  verdict: '',
  reason: '',
  restored: true,
  change: '',
  pool: '',
  labels: {},
  capabilities: [],
  fresh: false,
  version: '',
  durationMs: 0,
  changed: [],
  probe: '',
  differences: [],
  failingProbes: [],
  notUndone: [],
  leftovers: [],
  needsRestart: false,
  step: '',
  ...more,
});
