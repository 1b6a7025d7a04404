export { REQUESTS, type Input, type Request } from './inputs.js';
export { hear, hearReport, inventoryCore, type Settings } from './inventory.js';
export { forgetNodes, kubernetesNode, noteAnnounced, noteListed, noteNode } from './kubernetes.js';
export { askedPaceMs, paceFor } from './pace.js';
export { SharedNames } from './shared-names.js';
export type { KubernetesNode, State } from './state.js';
