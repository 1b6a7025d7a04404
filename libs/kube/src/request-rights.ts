import type { Logger } from '#libs/process';
import type { KubeError } from './errors.js';

/** A right as the rules of an API server name it. */
export interface Right {
  readonly verb: string;
  /** With its subresource: `pods/eviction`. */
  readonly resource: string;
  /** Empty for the core group. */
  readonly group: string;
  /** Empty for the whole cluster. */
  readonly namespace: string;
}

interface ResourceRequest {
  readonly method: string;
  readonly path: string;
}

const VERBS: Readonly<Record<string, string>> = { POST: 'create', PUT: 'update', PATCH: 'patch' };

/** The right that a request needs; undefined if it is not about a resource. */
export function rightOf({ method, path }: ResourceRequest): Right | undefined {
  const [place = '', query = ''] = path.split('?', 2);
  const [, root, ...rest] = place.split('/').map(decodeURIComponent);
  if (root !== 'api' && root !== 'apis') return undefined;
  const group = root === 'api' ? '' : (rest.shift() ?? '');
  const [, ...below] = rest;
  const namespace = below[0] === 'namespaces' && below.length > 2 ? (below.splice(0, 2)[1] ?? '') : '';
  const [resource, name = '', part = ''] = below;
  if (resource === undefined || resource === '') return undefined;
  return {
    verb: verbOf(method, name, query),
    resource: part === '' ? resource : `${resource}/${part}`,
    group,
    namespace,
  };
}

function verbOf(method: string, name: string, query: string): string {
  if (method === 'GET') return name !== '' ? 'get' : new URLSearchParams(query).has('watch') ? 'watch' : 'list';
  if (method === 'DELETE') return name === '' ? 'deletecollection' : 'delete';
  return VERBS[method] ?? method.toLowerCase();
}

/** For messages: `list files.sluice.dev`. */
export const rightWords = (right: Right): string => `${right.verb} ${whatOf(right)}`;

/** Many rights, shortened: `list, watch files.sluice.dev, pools.sluice.dev; patch nodes`. */
export function rightsWords(rights: readonly Right[]): string {
  const verbs = grouped(rights, whatOf, ({ verb }) => verb);
  const whats = grouped(
    [...verbs],
    ([, of]) => of.join(', '),
    ([what]) => what,
  );
  return [...whats].map(([of, what]) => `${of} ${what.join(', ')}`).join('; ');
}

function whatOf({ resource, group, namespace }: Right): string {
  const [whole = '', part] = resource.split('/');
  const name = `${whole}${group === '' ? '' : `.${group}`}${part === undefined ? '' : `/${part}`}`;
  return `${name}${namespace === '' ? '' : ` in the namespace ${namespace}`}`;
}

function grouped<T>(
  all: readonly T[],
  key: (one: T) => string,
  value: (one: T) => string,
): ReadonlyMap<string, readonly string[]> {
  return new Map([...Map.groupBy(all, key)].map(([name, some]) => [name, some.map(value)]));
}

/** Logs each missing right once, and once that it was granted. */
export class MissingRights {
  private readonly missing = new Set<string>();

  constructor(private readonly logger: Logger) {}

  refused(request: ResourceRequest, { message }: KubeError): void {
    const right = wordsOf(request);
    if (right === undefined || this.missing.has(right)) return;
    this.missing.add(right);
    this.logger.error({ right }, `the permission to ${right} is missing; waiting for it: ${message}`);
  }

  granted(request: ResourceRequest): void {
    // Usually none is missing.
    if (this.missing.size === 0) return;
    const right = wordsOf(request);
    if (right !== undefined && this.missing.delete(right))
      this.logger.info({ right }, `the permission to ${right} was granted`);
  }
}

function wordsOf(request: ResourceRequest): string | undefined {
  const right = rightOf(request);
  return right === undefined ? undefined : rightWords(right);
}
