import { setTimeout as sleep } from 'node:timers/promises';
import type { V1CustomResourceDefinition } from '@kubernetes/client-node';
import { FIELD_MANAGER, type KubeConnection } from './connection.js';
import { isKubeStatus } from './errors.js';

/** A desired CustomResourceDefinition. */
export interface WantedDefinition {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: object;
}

/** How the definition on the server compares with the desired one. */
export interface DefinitionState {
  readonly name: string;
  readonly state: 'missing' | 'same' | 'different';
  readonly version: string;
  /** The Helm release that it belongs to, as namespace/name; empty if there is none. */
  readonly release: string;
}

/** The annotation of a definition with the version of Sluice that wrote it. */
const VERSION_MARK = 'sluice.dev/version';
const COLLECTION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const POLL_MS = 50;

/** Compares by a dry run: only the server knows what it would change. */
export async function lookAtDefinition(
  connection: KubeConnection,
  definition: WantedDefinition,
): Promise<DefinitionState> {
  const { name } = definition.metadata;
  try {
    const { metadata, spec } = (await connection.get(`${COLLECTION}/${name}`)) as V1CustomResourceDefinition;
    const {
      [VERSION_MARK]: version = '',
      'meta.helm.sh/release-name': release,
      'meta.helm.sh/release-namespace': namespace,
    } = metadata?.annotations ?? {};
    const { spec: then } = (await apply(connection, definition, '&dryRun=All')) as V1CustomResourceDefinition;
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

/** Applies a definition, and resolves when the server serves its kind. */
export async function applyDefinition(
  connection: KubeConnection,
  definition: WantedDefinition,
  version: string,
  signal: AbortSignal,
): Promise<void> {
  const annotations = { [VERSION_MARK]: version };
  await apply(connection, { ...definition, metadata: { ...definition.metadata, annotations } } as WantedDefinition);
  for (;;) {
    const { status } = (await connection.get(
      `${COLLECTION}/${definition.metadata.name}`,
    )) as V1CustomResourceDefinition;
    if (status?.conditions?.some((one) => one.type === 'Established' && one.status === 'True') === true) return;
    await sleep(POLL_MS, undefined, { signal });
  }
}

const apply = (connection: KubeConnection, definition: WantedDefinition, more = ''): Promise<unknown> =>
  connection.apply(`${COLLECTION}/${definition.metadata.name}`, definition, FIELD_MANAGER, more);

/** The schemas that an API server publishes for a group and version; `version` changes whenever they change. */
export interface PublishedSchemas {
  readonly versions: readonly string[];
  readonly version: string;
  /** The OpenAPI document; undefined if there is none, or if it was read before. */
  readonly document: unknown;
}

/** Reads the schemas of a group and version, unless they are still those of `before`. */
export async function readSchemas(
  connection: KubeConnection,
  group: string,
  version: string,
  before: string,
): Promise<PublishedSchemas> {
  const { paths = {} } = (await connection.get('/openapi/v3')) as {
    readonly paths?: Readonly<Record<string, { readonly serverRelativeURL: string }>>;
  };
  const prefix = `apis/${group}/`;
  const versions = Object.keys(paths)
    .filter((path) => path.startsWith(prefix))
    .map((path) => path.slice(prefix.length));
  // The URL contains a digest of the document.
  const url = paths[`${prefix}${version}`]?.serverRelativeURL ?? '';
  return { versions, version: url, document: url === '' || url === before ? undefined : await connection.get(url) };
}
