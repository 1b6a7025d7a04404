import { findKubeBinaries } from '#libs/api-servers';
import { whyNoKube } from './why-no-kube.js';
import { KubeCluster } from './cluster.js';
import { Kubelet } from './kubelet.js';
import { KubeScene } from './scene.js';

/** Long enough for a build on a busy machine. */
const BUILD_MS = 20 * 60_000;
/** Longer than the timeouts of its programs together, so that the error names the one that is not ready. */
const START_MS = 5 * 60_000;

/** What tests on a real API server can use. */
export interface KubeWorld {
  readonly cluster: KubeCluster;
  readonly scene: KubeScene;
}

/**
 * Tests with their own real API server, started before the first test and ended after the last. If none is available,
 * they are skipped, and their name says why.
 */
export function describeOnKube(name: string, tests: (world: KubeWorld) => void): void {
  const why = whyNoKube();
  if (why !== undefined) {
    describe.skip(`${name} (${why})`, () => tests({} as KubeWorld));
    return;
  }
  describe(name, () => {
    let cluster: KubeCluster | undefined;
    let kubelet: Kubelet | undefined;
    beforeAll(() => findKubeBinaries(), BUILD_MS);
    beforeAll(async () => {
      cluster = await KubeCluster.start();
      kubelet = new Kubelet(cluster.api).start();
    }, START_MS);
    afterAll(async () => {
      kubelet?.stop();
      await cluster?.stop();
    });
    const there = (): KubeCluster => {
      if (cluster === undefined) throw new Error('the API server is there only while tests run');
      return cluster;
    };
    tests({
      get cluster() {
        return there();
      },
      get scene() {
        return new KubeScene(there().api);
      },
    });
  });
}
