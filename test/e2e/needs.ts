import { spawnSync } from 'node:child_process';
import { whyNoHelm, whyNoVm, whyNoNatsCli } from '#libs/testing';
import { whyNoPods } from '../kube/pod-process.js';
import { whyNoRealNode } from '../vm/real-node.js';

/** What only some machines have. */
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

function without(program: string, asked: readonly string[] = ['--version']): string | undefined {
  return spawnSync(program, asked).status === 0 ? undefined : `there is no ${program} in PATH`;
}

const whyNot = (needs: readonly Need[]): string => needs.flatMap((need) => WHY_NOT[need]() ?? []).join('; ');

/** A test that needs programs of this machine: where one is missing it is skipped, and its name says why. */
export function testWith(needs: readonly Need[], name: string, run: () => Promise<void>, timeoutMs?: number): void {
  const why = whyNot(needs);
  if (why === '') test(name, run, timeoutMs);
  else test.skip(`${name} (${why})`, run);
}

/** The same for tests that share what they need. */
export function describeWith(needs: readonly Need[], name: string, tests: () => void): void {
  const why = whyNot(needs);
  if (why === '') describe(name, tests);
  else describe.skip(`${name} (${why})`, tests);
}
