import { Bench, file, hash, probe, SETTINGS } from './applier.fixture.js';

const A = hash('a');
const EMPTY = SETTINGS.emptyHash;
const BUS = [probe('control-plane:bus')];
const OTHERS = [probe('control-plane:gateway')];

/** A node that a change of `/net` may cut off. */
function bench(): Bench {
  const node = new Bench({
    ...SETTINGS,
    kinds: {
      ...SETTINGS.kinds,
      mayCutOff: (_from, to) => to.fragments.some(({ name }) => name === 'net'),
      controlPlane: [...BUS, ...OTHERS],
      controlPlaneBefore: OTHERS,
    },
  });
  node.config('a', [file('/net', 'new')]);
  node.config('b', [file('/other', 'new')]);
  node.settle();
  return node;
}

it('changes nothing before a guard is set for the time of its own rollback', () => {
  const node = bench();
  const set: unknown[] = [];
  node.machine.guard = (lease, atMs) => void set.push([lease, atMs, node.machine.files.get('/net')]);
  node.grant({ hash: A, applyMs: 60_000 });
  node.settle();
  expect(set).toEqual([['l1', node.nowMs + 40_000, undefined]]);
  expect(node.last).toMatchObject({ kind: 'applied', hash: A });
});

it('sets a guard for every lease, and again in every run', () => {
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
  expect([set, node.last?.hash]).toEqual([3, hash('b')]);
});

it('sets a guard for a rollback that another process continues, and continues without one if necessary', () => {
  const node = bench();
  node.machine.probes = (name) => name !== 'gate' || !node.machine.files.has('/other');
  node.config('b', [file('/other', 'new'), probe('gate')]);
  node.grant({ hash: hash('b') });
  while (node.machine.readJournal().work?.phase !== 'rolling-back') node.step();
  let guards = 0;
  node.machine.guard = () => {
    guards += 1;
    return { fault: 'node', reason: 'guard: no more processes' };
  };
  node.restart();
  node.settle();
  expect(guards).toBe(1);
  expect(node.bus.reports).toContainEqual(
    expect.objectContaining({ kind: 'invalid', probe: 'gate', hash: EMPTY, restored: true }),
  );
  expect(node.machine.files.has('/other')).toBe(false);
});

describe('an applier that its guard killed because it hung', () => {
  const HANG = {
    lease: 'l1',
    reason: 'the applier did not respond for 20 s in the step apply, so its guard killed it',
  };

  it.each([
    ['node', 'failed'],
    ['content', 'invalid'],
  ] as const)('rolls back a change after a hang caused by the %s: %s', (fault, verdict) => {
    const node = bench();
    node.grant({ hash: hash('b') });
    while (!node.machine.files.has('/other')) node.step();
    node.hang = { ...HANG, fault };
    node.restart();
    const before = node.steps.length;
    node.settle();
    expect(node.last).toMatchObject({ lease: 'l1', verdict, reason: HANG.reason, hash: EMPTY, restored: true });
    expect(node.machine.files.has('/other')).toBe(false);
    expect(node.steps.slice(before).filter((step) => step.do === 'run-probes' || step.do === 'apply')).toEqual([]);
  });

  it.each([
    ['node', 'failed'],
    ['content', 'invalid'],
  ] as const)('does not start the change after an earlier hang caused by the %s: %s', (fault, verdict) => {
    const node = bench();
    node.grant({ hash: hash('b') });
    while (node.steps.at(-1)?.do !== 'check') node.step();
    node.hang = { ...HANG, fault };
    node.restart();
    const before = node.steps.length;
    node.settle();
    expect(node.last).toMatchObject({ lease: 'l1', verdict, reason: HANG.reason, hash: EMPTY, restored: true });
    expect(node.steps.slice(before).filter((step) => step.do === 'run-probes' || step.do === 'apply')).toEqual([]);
  });

  it('carries out the next lease', () => {
    const node = bench();
    node.hang = { ...HANG, fault: 'content' };
    node.restart();
    node.grant({ lease: 'l2', hash: hash('b') });
    node.settle();
    expect(node.last).toMatchObject({ lease: 'l2', verdict: 'applied', hash: hash('b') });
  });
});

it('fails without a guard, before it changes anything', () => {
  const node = bench();
  node.machine.guard = () => ({ fault: 'node', reason: 'guard: no more processes' });
  node.grant({ hash: A });
  node.settle();
  expect(node.last).toMatchObject({ kind: 'failed', hash: EMPTY, restored: true, reason: 'guard: no more processes' });
  expect(node.steps.filter((step) => step.do === 'apply')).toEqual([]);
});

it('rolls back a change that cuts the node off from its control plane, and blames the config', () => {
  const node = bench();
  node.machine.probes = (_name, files) => files.get('/net') !== 'new';
  node.grant({ hash: A });
  node.settle();
  expect(node.last).toMatchObject({ kind: 'invalid', probe: 'control-plane:bus', hash: EMPTY, restored: true });
  expect(node.machine.files.has('/net')).toBe(false);
});

it('does not blame a config for what was unreachable before, and reports what was not checked', () => {
  const node = bench();
  node.machine.probes = (name) => name !== 'control-plane:gateway';
  node.grant({ hash: A });
  node.settle();
  expect(node.last).toMatchObject({
    kind: 'applied',
    hash: A,
    reason: 'not checked, because they failed before the change, too: control-plane:gateway',
  });
});

it('does not probe the control plane if a change cannot cut the node off', () => {
  const node = bench();
  node.machine.probes = (_name, files) => !files.has('/other');
  node.grant({ hash: hash('b') });
  node.settle();
  expect(node.last).toMatchObject({ kind: 'applied', hash: hash('b') });
});

describe('the probes of the control plane', () => {
  const probed = (node: Bench) =>
    node.steps.flatMap((step) => (step.do === 'run-probes' ? [step.probes.map(({ name }) => name)] : []));

  it('always include NATS, because a node with a lease has reached it', () => {
    const node = bench();
    node.machine.probes = (name) => name !== 'control-plane:bus';
    node.grant({ hash: A });
    node.settle();
    expect(probed(node).slice(0, 2)).toEqual([
      ['control-plane:gateway'],
      ['control-plane:bus', 'control-plane:gateway'],
    ]);
    expect(node.last).toMatchObject({
      verdict: 'failed',
      reason: 'the probe control-plane:bus passed before and fails now: it says no',
    });
  });

  it('must pass after a change if there was no time to check them before', () => {
    const node = bench();
    let runs = 0;
    node.machine.probes = (name) => name !== 'control-plane:gateway' || (runs++ === 0 ? 'late' : false);
    node.grant({ hash: A });
    node.settle();
    expect(node.last).toMatchObject({
      verdict: 'failed',
      reason: expect.stringMatching(/there was no time to check it before the change/) as string,
    });
  });
});
