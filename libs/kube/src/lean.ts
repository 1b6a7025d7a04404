// A second entry point for appliers, which load no validators: the rights of the services are derived from all kinds.
export {
  ClusterApi,
  type ApplyOptions,
  type ClusterApiOptions,
  type FieldSet,
  type KubeResource,
  type LiveMetadata,
  type LiveObject,
  type ManagedFields,
  type ObjectBody,
} from './cluster/cluster-api.js';
export { KubeConfigError, KubeError, KubeUnreachableError } from './errors.js';
