export { ApiGate, type GateMode } from './api-gate.js';
export { whyNoKube } from './binaries.js';
export { KubeCluster } from './cluster.js';
export { KubeApi, type KubeObject } from './kube-api.js';
export { describeOnKube, type KubeWorld } from './kube-fixture.js';
export { Kubelet, NEVER_ENDS } from './kubelet.js';
export { KubeScene, nodePath, podPath, type PodSays } from './scene.js';
