import type { LeanCluster } from '#libs/api-servers';
import { describeOnClusters } from '../kube/lean-fixture.js';
import { whyNoFlux, type FluxController } from './binaries.js';

export interface FluxNeeds {
  readonly controllers?: readonly FluxController[];
  /** It runs only with `npm run test:flux`. */
  readonly isLong?: boolean;
}

/**
 * Tests with real API servers and real controllers of Flux. If a controller is not in the cache, they are skipped, and
 * their name says why and how to build it.
 */
export function describeOnFlux(
  name: string,
  count: number,
  tests: (clusters: () => readonly LeanCluster[]) => void,
  { controllers = ['kustomize-controller'], isLong = false }: FluxNeeds = {},
): void {
  const isLeftOut = isLong && process.env['SLUICE_FLUX_LONG'] === undefined;
  const why = isLeftOut
    ? 'npm run test:flux runs it'
    : controllers.map((controller) => whyNoFlux(controller)).find((one) => one !== undefined);
  // In a group of its own, whose hooks run before the API servers end.
  if (why === undefined) describeOnClusters(name, count, (clusters) => describe('with Flux', () => tests(clusters)));
  else describe.skip(`${name} (${why})`, () => tests(() => []));
}
