import { findKubeBinaries, LeanClusters, type LeanCluster } from '#libs/api-servers';
import { whyNoKube } from './why-no-kube.js';

/** Long enough for a build on a busy machine. */
const BUILD_MS = 20 * 60_000;
const START_MS = 5 * 60_000;

/**
 * Tests with several real API servers, started before the first test and ended after the last. If none is available,
 * they are skipped, and their name says why.
 */
export function describeOnClusters(
  name: string,
  count: number,
  tests: (clusters: () => readonly LeanCluster[]) => void,
): void {
  const why = whyNoKube();
  if (why !== undefined) {
    describe.skip(`${name} (${why})`, () => tests(() => []));
    return;
  }
  describe(name, () => {
    let clusters: LeanClusters | undefined;
    beforeAll(() => findKubeBinaries(), BUILD_MS);
    beforeAll(async () => {
      clusters = await LeanClusters.start(count);
    }, START_MS);
    afterAll(() => clusters?.stop());
    tests(() => {
      if (clusters === undefined) throw new Error('the API servers are there only while tests run');
      return clusters.all;
    });
  });
}
