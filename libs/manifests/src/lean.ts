// A second entry point for code that checks no manifests: validators and schemas are most of what this library loads.
export * from './duration.js';
export * from './kinds/cluster/bound-value.js';
export * from './kinds/cluster/field-path.js';
export * from './kinds/cluster/flux-objects.js';
export * from './kinds/cluster/kube-object.js';
export type { Field, Fields as FieldTable, FunctionKind, ServiceAction } from './kinds/functions/function-kind.js';
export * from './kinds/functions/table.js';
export * from './network/elements.js';
export * from './network/entries.js';
export { isNetworkEntry, NETWORK_KINDS, type NetworkKind } from './network/fragments.js';
export * from './network/ip-address.js';
export * from './object-ref.js';
export { API_VERSION, manifestOf } from './written-manifest.js';
export { networkOf } from './network/network.js';
export { celExpression } from './kinds/cel-expression.js';
export { probePattern, type ProbePattern } from './kinds/probe-pattern.js';
