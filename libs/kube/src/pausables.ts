import type { PausedObject } from '#libs/manifests';
import type { KubeConnection } from './connection.js';
import { isKubeStatus, isMissingRight, KubeError, outcomeOf } from './errors.js';
import type { WriteOutcome } from './nodes.js';
import type { RawObject } from './objects.js';

/** Which object it is. */
export type PausableName = Pick<PausedObject, 'apiVersion' | 'kind' | 'namespace' | 'name'>;

/** An object that can be paused by `spec.paused`, as it was read. */
export interface KubePausable {
  readonly uid: string;
  readonly revision: string;
  readonly paused: boolean;
  /** The field managers that set `spec.paused`; empty if it is not set. */
  readonly pausedBy: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
  /** The types of its conditions that are True. */
  readonly conditions: readonly string[];
  /** Its controller has not processed its latest spec yet, as far as its status says. */
  readonly isBehind: boolean;
}

/** What to change; null removes an annotation. */
export interface PausableChange {
  readonly paused?: boolean;
  readonly annotations: Readonly<Record<string, string | null>>;
}

interface RawPausable extends RawObject {
  readonly spec?: { readonly paused?: unknown };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly conditions?: readonly { readonly type?: string; readonly status?: string }[];
  };
}

interface Resource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** The object as the API server has it now, not from a cache; `absent` if there is none, or no such kind. */
export async function readPausable(connection: KubeConnection, object: PausableName): Promise<KubePausable | 'absent'> {
  try {
    const path = await pathOf(connection, object);
    return path === undefined ? 'absent' : pausableOf((await connection.get(path)) as RawPausable);
  } catch (error) {
    if (isKubeStatus(error, 404)) return 'absent';
    throw withRemedy(error);
  }
}

/** Changes an object, unless it was changed since it was read. */
export async function writePausable(
  connection: KubeConnection,
  object: PausableName,
  { uid, revision }: Pick<KubePausable, 'uid' | 'revision'>,
  { paused, annotations }: PausableChange,
): Promise<WriteOutcome> {
  try {
    const path = await pathOf(connection, object);
    if (path === undefined) return 'gone';
    const metadata = { uid, resourceVersion: revision, annotations };
    const spec = paused === undefined ? {} : { spec: { paused } };
    return await outcomeOf(connection.patch(path, { metadata, ...spec }).then(() => 'written' as const));
  } catch (error) {
    throw withRemedy(error);
  }
}

function pausableOf({ metadata = {}, spec, status }: RawPausable): KubePausable {
  const { uid = '', resourceVersion = '', generation = 0, annotations = {}, managedFields = [] } = metadata;
  const setters = managedFields.filter(({ fieldsV1 }) =>
    Object.hasOwn((fieldsV1 as Readonly<Record<string, object>> | undefined)?.['f:spec'] ?? {}, 'f:paused'),
  );
  return {
    uid,
    revision: resourceVersion,
    paused: spec?.paused === true,
    pausedBy: setters.map(({ manager = '' }) => manager),
    annotations,
    conditions: (status?.conditions ?? []).flatMap((one) => (one.status === 'True' ? (one.type ?? []) : [])),
    isBehind: (status?.observedGeneration ?? generation) < generation,
  };
}

/** The path of an object, as the API server says where objects of its kind are; undefined if it has no such kind. */
async function pathOf(
  connection: KubeConnection,
  { apiVersion, kind, namespace, name }: PausableName,
): Promise<string | undefined> {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const { resources = [] } = (await connection.get(root)) as { readonly resources?: readonly Resource[] };
  const resource = resources.find((one) => one.kind === kind && !one.name.includes('/'));
  if (resource === undefined || resource.namespaced !== (namespace !== '')) return undefined;
  const place = namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${root}${place}/${resource.name}/${encodeURIComponent(name)}`;
}

/** Which objects to pause is up to the pools, so nobody has these rights by default. */
const withRemedy = (error: unknown): unknown =>
  isMissingRight(error) && error instanceof KubeError
    ? new KubeError(
        error.code,
        error.reason,
        `${error.message}; grant the drain service get and patch on it, with the chart by drain.pausable`,
      )
    : error;
