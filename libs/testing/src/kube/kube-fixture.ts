import { findKubeBinaries, whyNoKube } from './binaries.js';
import { KubeCluster } from './cluster.js';
import { Kubelet } from './kubelet.js';
import { KubeScene } from './scene.js';

/** A build on a machine that is busy with other things. */
const BUILD_MS = 20 * 60_000;
/** Longer than its programs may take one after the other: then it is said which of them is not ready. */
const START_MS = 5 * 60_000;

/** What tests on a real API server are given. */
export interface KubeWorld {
  readonly cluster: KubeCluster;
  readonly scene: KubeScene;
}

/**
 * Tests with a real API server of their own, started before the first and ended after the last. Where there can be none
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
