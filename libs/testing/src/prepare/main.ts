import { findNatsServer } from '#libs/process';
import { findHelm, whyNoHelm } from '../helm/binary.js';
import { findKubeBinaries, whyNoKube } from '../kube/binaries.js';
import { findNatsCli, whyNoNatsCli } from '../nats-cli.js';
import { whyNoVm } from '../vm/why-no-vm.js';

/**
 * Builds what the tests need and this machine does not have: `first` what nearly all of them start, `rest` what takes
 * minutes and few need. Without Go nothing is built: those tests say so themselves, each by its name.
 */
const STEPS: Readonly<Record<string, () => Promise<unknown>>> = {
  first: async () => {
    await findNatsServer();
    if (whyNoNatsCli() === undefined) await findNatsCli();
  },
  rest: async () => {
    if (whyNoKube() === undefined) await findKubeBinaries();
    if (whyNoHelm() === undefined) await findHelm();
    whyNoVm(); // it tries to build one
  },
};

STEPS[process.argv[2] ?? '']?.().catch((error: unknown) => {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
});
