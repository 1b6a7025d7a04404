export { isMissingRight, KubeConfigError, KubeError, KubeUnreachableError } from './errors.js';
export { FIELD_MANAGER, type KubeOptions } from './connection.js';
export { kindPath, type CustomObject, type ObjectOutcome } from './custom-objects.js';
export type { ObjectEvent } from './events.js';
export type { EvictionOutcome, PodBudget } from './eviction.js';
export { Kube, type NodesFollowing } from './kube.js';
export type { KubeNode, NodeChange, WriteOutcome } from './nodes.js';
export type { PublishedSchemas } from './published-schemas.js';
export type { KubePod } from './pods.js';
