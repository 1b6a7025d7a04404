import { setTimeout as sleep } from 'node:timers/promises';
import { FIELD_MANAGER, type KubeConnection } from './connection.js';
import { isKubeStatus } from './errors.js';

/** A CustomResourceDefinition that shall be there. */
export interface WantedDefinition {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: object;
}

/** How the server's definition of that name stands to the one that shall be there. */
export interface DefinitionSeen {
  readonly name: string;
  readonly state: 'missing' | 'same' | 'different';
  /** The version of Sluice that it came with; empty where it does not say. */
  readonly version: string;
  /** The Helm release that it belongs to, as namespace/name; empty for none. */
  readonly release: string;
}

interface RawDefinition {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec?: unknown;
  readonly status?: { readonly conditions?: readonly { readonly type?: string; readonly status?: string }[] };
}

/** On a definition: the version of Sluice that it came with. */
export const VERSION_MARK = 'sluice.dev/version';
const COLLECTION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const POLL_MS = 50;

/** Compares by a dry run: only the server knows what of a definition it would change. */
export async function lookAtDefinition(connection: KubeConnection, wanted: WantedDefinition): Promise<DefinitionSeen> {
  const { name } = wanted.metadata;
  try {
    const { metadata, spec } = (await connection.get(`${COLLECTION}/${name}`)) as RawDefinition;
    const {
      [VERSION_MARK]: version = '',
      'meta.helm.sh/release-name': release,
      'meta.helm.sh/release-namespace': namespace,
    } = metadata?.annotations ?? {};
    const { spec: then } = (await apply(connection, wanted, '&dryRun=All')) as RawDefinition;
    return {
      name,
      state: JSON.stringify(then) === JSON.stringify(spec) ? 'same' : 'different',
      version,
      release: release === undefined ? '' : `${namespace}/${release}`,
    };
  } catch (error) {
    if (isKubeStatus(error, 404)) return { name, state: 'missing', version: '', release: '' };
    throw error;
  }
}

/** Puts a definition in place by server-side apply, and resolves when the server serves its kind. */
export async function applyDefinition(
  connection: KubeConnection,
  wanted: WantedDefinition,
  version: string,
  signal: AbortSignal,
): Promise<void> {
  await apply(
    connection,
    { ...wanted, metadata: { ...wanted.metadata, annotations: { [VERSION_MARK]: version } } } as WantedDefinition,
    '',
  );
  for (;;) {
    const { status } = (await connection.get(`${COLLECTION}/${wanted.metadata.name}`)) as RawDefinition;
    if (status?.conditions?.some((one) => one.type === 'Established' && one.status === 'True') === true) return;
    await sleep(POLL_MS, undefined, { signal });
  }
}

const apply = (connection: KubeConnection, wanted: WantedDefinition, more: string): Promise<unknown> =>
  connection.ask({
    method: 'PATCH',
    path: `${COLLECTION}/${wanted.metadata.name}?fieldManager=${FIELD_MANAGER}&force=true${more}`,
    type: 'application/apply-patch+yaml',
    body: wanted,
  });
