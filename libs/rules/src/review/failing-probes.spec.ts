import { fragment } from '#libs/testing';
import { failingEverywhere } from './failing-probes.js';

const probe = fragment('Probe', 'app', { nodeSelector: { matchLabels: { role: 'edge' } } });
const node = (name: string, ...failing: readonly string[]) => ({
  node: name,
  labels: { role: name.startsWith('e') ? 'edge' : 'core' },
  failingProbes: failing.map((one) => ({ probe: one, reason: `${one} says no` })),
});

test('a probe that fails on every node that has it is a warning with the nodes and a reason', () => {
  expect(failingEverywhere(probe, [node('e1', 'app'), node('e2', 'b', 'app'), node('c1')])).toEqual({
    fragment: 'Probe/app',
    field: '',
    code: 'fails-everywhere',
    message:
      'it fails on all 2 nodes that have it, so changes are confirmed without it: fix what it checks, or the probe (app says no)',
    nodes: ['e1', 'e2'],
  });
});

test.each([
  ['the probe passes on one of the nodes', [node('e1', 'app'), node('e2', 'b')]],
  ['no node has the probe', [node('c1', 'app')]],
])('there is no warning if %s', (_, nodes) => {
  expect(failingEverywhere(probe, nodes)).toBeUndefined();
});
