import { CUT } from '#libs/contracts';
import type { KubeManifest } from '#libs/manifests/lean';
import { RefusedError } from '../ports.js';
import type { ProbeType } from './probe-types.js';

interface Condition {
  readonly type?: unknown;
  readonly status?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
}

/** `kube {apiVersion, kind, name}`: an object exists, has a condition, meets an expression, or does not exist. */
export const kubeProbe: ProbeType = {
  field: 'kube',
  check: (spec, { kube }) => {
    if (kube === undefined) throw new RefusedError('node', 'a kube probe needs a cluster: this node is none');
    headOf(spec);
  },
  tryOnce: async (spec, { kube, expressions }, timeoutMs) => {
    if (kube === undefined || expressions === undefined) return 'this node is no cluster';
    const head = headOf(spec);
    const untilMs = performance.now() + timeoutMs;
    const found = await kube.read(head, timeoutMs);
    const words = [head.kind, head.metadata.namespace, head.metadata.name]
      .filter((part) => part !== undefined)
      .join('/');
    if (spec['absent'] === true) return found === undefined ? undefined : `${words} exists`;
    if (found === undefined) return `${words} does not exist`;
    const { condition, expression } = spec;
    if (condition === undefined && expression === undefined) return undefined;
    if (!isObserved(found)) return `${words}: its controller has not seen its latest generation`;
    const problem = condition === undefined ? undefined : conditionProblem(words, found, spec);
    if (problem !== undefined || typeof expression !== 'string') return problem;
    const why = await expressions.problem(expression, found, untilMs - performance.now());
    return why === undefined ? undefined : `${words}: ${shown(expression)}: ${why}`;
  },
};

const SHOWN = 200;
const shown = (expression: string): string =>
  expression.length > SHOWN ? `${expression.slice(0, SHOWN - 1)}${CUT}` : expression;

function isObserved(found: object): boolean {
  const { metadata, status } = found as {
    readonly metadata?: { readonly generation?: number };
    readonly status?: { readonly observedGeneration?: number };
  };
  return status?.observedGeneration === undefined || status.observedGeneration === metadata?.generation;
}

function conditionProblem(words: string, found: object, spec: Readonly<Record<string, unknown>>): string | undefined {
  const { status } = found as { readonly status?: { readonly conditions?: unknown } };
  const type = String(spec['condition']);
  const wanted = String(spec['status'] ?? 'True');
  const conditions = (Array.isArray(status?.conditions) ? status.conditions : []) as readonly (Condition | null)[];
  const condition = conditions.find((one) => one?.type === type);
  if (condition?.status === wanted) return undefined;
  if (condition === undefined || condition === null) return `${words} has no condition ${type}`;
  const why = [condition.reason, condition.message]
    .filter((text) => typeof text === 'string' && text !== '')
    .join(': ');
  return `${words}: ${type} is ${String(condition.status)} instead of ${wanted}${why === '' ? '' : ` (${why})`}`;
}

function headOf(spec: Readonly<Record<string, unknown>>): Pick<KubeManifest, 'apiVersion' | 'kind' | 'metadata'> {
  const { apiVersion, kind, name, namespace } = spec;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string' || typeof name !== 'string')
    throw new RefusedError('content', 'kube needs apiVersion, kind and name');
  return { apiVersion, kind, metadata: { name, ...(typeof namespace === 'string' ? { namespace } : {}) } };
}
