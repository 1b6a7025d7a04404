export { ApiGate, type GateMode } from './api-gate.js';
export { KubeApi, type KubeObject } from './kube-api.js';
export { KubeCluster } from './cluster.js';
export { KubeScene, nodePath, podPath, type PodFields } from './scene.js';
export { Kubelet, NEVER_ENDS } from './kubelet.js';
export { Scheduler } from './scheduler.js';
export { describeOnKube, type KubeWorld } from './kube-fixture.js';
export { establish, OTHER_DEFINITIONS } from './custom-resources.js';
export { whyNoKube } from './binaries.js';
