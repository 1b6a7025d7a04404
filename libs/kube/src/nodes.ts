import type { V1Node } from '@kubernetes/client-node';
import { isKubeStatus, outcomeOf } from './errors.js';
import type { KubeConnection } from './connection.js';

/** A Node object, as it was read. */
export interface KubeNode {
  readonly name: string;
  readonly uid: string;
  /** Its resourceVersion: a write with it is refused if the Node has changed since. */
  readonly revision: string;
  readonly unschedulable: boolean;
  /** The field managers that set `unschedulable`; empty if it is not set. */
  readonly unschedulableBy: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly ready: boolean;
  /** The boot id of the machine, as its kubelet reported it; undefined if it has not. */
  readonly bootId: string | undefined;
}

/** What to change in a Node; null removes an annotation. */
export interface NodeChange {
  readonly unschedulable?: boolean;
  readonly annotations: Readonly<Record<string, string | null>>;
}

/** `overtaken`: the Node was changed since it was read, or replaced by another one with the same name. */
export type WriteOutcome = 'written' | 'overtaken' | 'gone';

export const nodePath = (name: string): string => `/api/v1/nodes/${encodeURIComponent(name)}`;

export function nodeOf(raw: V1Node): KubeNode {
  const {
    name = '',
    uid = '',
    resourceVersion = '',
    annotations = {},
    labels = {},
    managedFields = [],
  } = raw.metadata ?? {};
  const setters = managedFields.filter(({ fieldsV1 }) =>
    Object.hasOwn((fieldsV1 as Readonly<Record<string, object>> | undefined)?.['f:spec'] ?? {}, 'f:unschedulable'),
  );
  return {
    name,
    uid,
    revision: resourceVersion,
    annotations,
    labels,
    unschedulable: raw.spec?.unschedulable === true,
    unschedulableBy: setters.map(({ manager = '' }) => manager),
    ready: raw.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false,
    bootId: raw.status?.nodeInfo?.bootID,
  };
}

/** The Node as the API server has it now, not from a cache; undefined if there is none. */
export async function readNode(connection: KubeConnection, name: string): Promise<KubeNode | undefined> {
  try {
    return nodeOf((await connection.get(nodePath(name))) as V1Node);
  } catch (error) {
    if (isKubeStatus(error, 404)) return undefined;
    throw error;
  }
}

/** Changes a Node, unless it was changed since it was read. */
export async function writeNode(connection: KubeConnection, read: KubeNode, change: NodeChange): Promise<WriteOutcome> {
  const spec =
    change.unschedulable === undefined ? {} : { spec: { unschedulable: change.unschedulable ? true : null } };
  const metadata = { uid: read.uid, resourceVersion: read.revision, annotations: change.annotations };
  return outcomeOf(connection.patch(nodePath(read.name), { metadata, ...spec }).then(() => 'written' as const));
}
