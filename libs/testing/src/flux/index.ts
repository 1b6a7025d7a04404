export { FLUX_CONTROLLERS, findFlux, mayHaveFlux, whyNoFlux } from './binaries.js';
export { RunningController } from './controllers.js';
export { describeOnFlux } from './flux-fixture.js';
export { GitServer } from './git-server.js';
export { ObjectStore } from './object-store.js';
export { OciRegistry } from './oci-registry.js';
export { PlayedSource } from './played-source.js';
