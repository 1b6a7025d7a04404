import { Bench, file, hash, probe, SETTINGS } from './applier.fixture.js';

const A = hash('a');
const EMPTY = SETTINGS.emptyHash;
const BUS = [probe('control-plane:bus')];

/** A node where changes of `/net` may cut it off. */
function bench(): Bench {
  const node = new Bench({
    ...SETTINGS,
    kinds: {
      ...SETTINGS.kinds,
      mayCutOff: (_from, to) => to.fragments.some(({ name }) => name === 'net'),
      controlPlane: BUS,
      controlPlaneBefore: BUS,
    },
  });
  node.config('a', [file('/net', 'new')]);
  node.config('b', [file('/other', 'new')]);
  node.settle();
  return node;
}

it('changes nothing before a guard outside of it is set, for the time at which it would roll back itself', () => {
  const node = bench();
  const set: unknown[] = [];
  node.machine.guard = (lease, atMs) => void set.push([lease, atMs, node.machine.files.get('/net')]);
  node.grant({ hash: A, applyMs: 60_000 });
  node.settle();
  expect(set).toEqual([['l1', node.nowMs + 40_000, undefined]]);
  expect(node.last).toMatchObject({ kind: 'applied', hash: A });
});

it('sets one again in every run, and none where nothing can cut the node off', () => {
  const node = bench();
  let set = 0;
  node.machine.guard = () => void (set += 1);
  node.grant({ hash: A });
  while (!node.steps.some((step) => step.do === 'apply')) node.step();
  node.restart();
  node.settle();
  expect(set).toBe(2);
  node.grant({ lease: 'l2', hash: hash('b'), from: A, ledger: 9 });
  node.settle();
  expect([set, node.last?.hash]).toEqual([2, hash('b')]);
});

it('fails without a guard, and has then touched nothing', () => {
  const node = bench();
  node.machine.guard = () => ({ fault: 'node', reason: 'guard: no more processes' });
  node.grant({ hash: A });
  node.settle();
  expect(node.last).toMatchObject({ kind: 'failed', hash: EMPTY, restored: true, reason: 'guard: no more processes' });
  expect(node.steps.filter((step) => step.do === 'apply')).toEqual([]);
});

it('takes back what cut it off from its control plane, and says that the config is to blame', () => {
  const node = bench();
  node.machine.probes = (_name, files) => files.get('/net') !== 'new';
  node.grant({ hash: A });
  node.settle();
  expect(node.last).toMatchObject({ kind: 'invalid', probe: 'control-plane:bus', hash: EMPTY, restored: true });
  expect(node.machine.files.has('/net')).toBe(false);
});

it('does not blame a config for what could not be reached before', () => {
  const node = bench();
  node.machine.probes = () => false;
  node.grant({ hash: A });
  node.settle();
  expect(node.last).toMatchObject({ kind: 'applied', hash: A });
});

it('asks nothing of the control plane where nothing can cut the node off', () => {
  const node = bench();
  node.machine.probes = (_name, files) => !files.has('/other');
  node.grant({ hash: hash('b') });
  node.settle();
  expect(node.last).toMatchObject({ kind: 'applied', hash: hash('b') });
});
