export { findKubeBinaries, whyNoKubeBinaries, type KubeBinaries } from './binaries.js';
export { etcdIn, isReady, kubeconfigText, socketIn, startApiServer, writeSecrets } from './control-plane.js';
export { findKubectl, whyNoKubectl } from './kubectl.js';
export { whyNoGo } from './go.js';
export { GO_SETTINGS } from './modules.js';
export { KubeApi, type KubeAccess, type KubeObject } from './kube-api.js';
export { LeanCluster, LeanClusters } from './lean-clusters.js';
export { Program } from './program.js';
