import { findNatsServer } from '#libs/process';
import { FLUX_CONTROLLERS, findFlux, mayHaveFlux } from '../flux/binaries.js';
import { findStore, STORE_PROGRAMS } from '../flux/stores.js';
import { findHelm, whyNoHelm } from '../helm/binary.js';
import { findKubeBinaries, findKubectl } from '#libs/api-servers';
import { whyNoKube } from '../kube/why-no-kube.js';
import { findNatsCli, whyNoNatsCli } from '../nats-cli.js';
import { whyNoVm } from '../vm/why-no-vm.js';

/**
 * Builds what the tests need and this machine does not have. `first`: what nearly all tests start. `rest`: what takes
 * minutes and few tests need; last of it what no test waits for. `flux`: what `npm run test:flux` needs. Without Go
 * nothing is built, and the names of those tests say so.
 */
const STEPS: Readonly<Record<string, () => Promise<unknown>>> = {
  first: async () => {
    await findNatsServer();
    if (whyNoNatsCli() === undefined) await findNatsCli();
  },
  rest: async () => {
    if (whyNoKube() === undefined) {
      await findKubeBinaries();
      await findKubectl();
    }
    if (whyNoHelm() === undefined) await findHelm();
    whyNoVm(); // builds an image, if that is possible
    if (mayHaveFlux()) await findFlux('kustomize-controller', { isInPassing: true });
  },
  flux: async () => {
    if (!mayHaveFlux()) return;
    for (const program of STORE_PROGRAMS) await findStore(program);
    for (const controller of FLUX_CONTROLLERS) await findFlux(controller);
  },
};

STEPS[process.argv[2] ?? '']?.().catch((error: unknown) => {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
});
