export type { Input, Request } from './inputs.js';
export { hear, inventoryCore, type Settings } from './inventory.js';
export { forgetNodes, isAnotherCluster, noteAnnounced, noteListed, noteNode } from './kubernetes.js';
export { askedPaceMs, DEFAULT_PER_SECOND, paceFor } from './pace.js';
export type { KubernetesNode, State } from './state.js';
