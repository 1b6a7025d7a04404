import { spawnSync } from 'node:child_process';
import { whyNoHelm, whyNoVm, whyNoNatsCli } from '#libs/testing';
import { whyNoPods } from '../kube/pod-process.js';
import { whyNoRealNode } from '../vm/real-node.js';

/** Programs and features that only some machines have. */
export type Need =
  | 'systemd-namespaces'
  | 'vm'
  | 'vm-long'
  | 'nats'
  | 'kubectl'
  | 'python3'
  | 'dpkg-deb'
  | 'systemd-analyze'
  | 'helm'
  | 'mount-namespaces';

const WHY_NOT: Readonly<Record<Need, () => string | undefined>> = {
  'systemd-namespaces': whyNoRealNode,
  vm: () => whyNoVm(),
  'vm-long': () => ((process.env['SLUICE_VM_LONG'] ?? '') === '' ? 'npm run test:vm runs it' : whyNoVm()),
  nats: () => whyNoNatsCli(),
  kubectl: () => without('kubectl', ['version', '--client']),
  python3: () => without('python3'),
  'dpkg-deb': () => without('dpkg-deb'),
  'systemd-analyze': () => without('systemd-analyze'),
  helm: () => whyNoHelm(),
  'mount-namespaces': () => whyNoPods(),
};

function without(program: string, args: readonly string[] = ['--version']): string | undefined {
  return spawnSync(program, args).status === 0 ? undefined : `there is no ${program} in PATH`;
}

const whyNot = (needs: readonly Need[]): string => needs.flatMap((need) => WHY_NOT[need]() ?? []).join('; ');

/** A test that needs programs of this machine. If one is missing, the test is skipped, and its name says why. */
export function testWith(needs: readonly Need[], name: string, run: () => Promise<void>, timeoutMs?: number): void {
  const why = whyNot(needs);
  if (why === '') test(name, run, timeoutMs);
  else test.skip(`${name} (${why})`, run);
}

/** The same for a group of tests with the same needs. */
export function describeWith(needs: readonly Need[], name: string, tests: () => void): void {
  const why = whyNot(needs);
  if (why === '') describe(name, tests);
  else describe.skip(`${name} (${why})`, tests);
}
