import { Bench, file, hash, probe, SETTINGS } from './applier.fixture.js';

const A = hash('a');
const B = hash('b');

/** A node whose files are lost when the machine reboots, as links and routes are. */
function bench(): Bench {
  const made = new Bench({ ...SETTINGS, kinds: { ...SETTINGS.kinds, forgotten: ['File'] } });
  made.config('a', [file('/a', 'one'), file('/b', 'one')]);
  made.config('b', [file('/a', 'two')]);
  made.settle();
  made.grant({ hash: A });
  made.settle();
  return made;
}

function restartMachine(node: Bench): void {
  node.machine.files.clear();
  node.boot = 'boot-2';
  node.restart();
}

it('recreates what the kernel lost before it reports anything, without NATS', () => {
  const node = bench();
  restartMachine(node);
  node.bus.up = false;
  node.settle();
  expect(Object.fromEntries(node.machine.files)).toEqual({ '/a': 'one', '/b': 'one' });
  node.bus.up = true;
  node.pass(60_000);
  expect(node.last).toMatchObject({ kind: 'announced', bootId: 'boot-2', hash: A, restored: true });
});

it('changes nothing after a restart of the applier alone', () => {
  const node = bench();
  node.machine.files.set('/a', 'edited');
  node.restart();
  node.settle();
  expect(node.machine.files.get('/a')).toBe('edited');
});

it('reports that the node is not restored while it cannot be, and retries until it is', () => {
  const node = bench();
  restartMachine(node);
  node.machine.refuses = (entry) => (entry.spec['path'] === '/b' ? { fault: 'node', reason: 'not yet' } : undefined);
  node.settle();
  expect(node.last).toMatchObject({ kind: 'announced', hash: A, restored: false });
  expect(node.machine.files.get('/a')).toBe('one');
  node.machine.refuses = () => undefined;
  node.pass(120_000);
  expect(node.last).toMatchObject({ kind: 'announced', hash: A, restored: true });
  expect(node.machine.files.get('/b')).toBe('one');
});

it('confirms a change that was under way once its lost parts are recreated', () => {
  const node = bench();
  node.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
  while (node.state.journal.work === undefined) node.step();
  node.step();
  restartMachine(node);
  node.settle();
  expect(node.last).toMatchObject({ verdict: 'applied', lease: 'l2', hash: B, bootId: 'boot-2' });
  expect(Object.fromEntries(node.machine.files)).toEqual({ '/a': 'two' });
  node.restart();
  node.settle();
  expect(node.bus.reports.at(-1)).toMatchObject({ hash: B, restored: true });
});

describe('on a machine that is still starting', () => {
  /** In the middle of a change, on a machine where something is missing until it is up. */
  function restartedInAChange(): Bench {
    const node = bench();
    node.config('c', [file('/a', 'two'), probe('service')]);
    node.grant({ lease: 'l2', hash: hash('c'), from: A, ledger: 9 });
    while (node.state.journal.work === undefined) node.step();
    node.step();
    restartMachine(node);
    return node;
  }
  const settlings = (node: Bench): number => node.steps.filter((step) => step.do === 'settle').length;

  it('does not count what cannot be created yet as a failure of the change', () => {
    const node = restartedInAChange();
    node.machine.refuses = () => ({ fault: 'node', reason: 'not yet' });
    node.machine.settles = () => (node.machine.refuses = () => undefined);
    node.settle();
    expect(node.last).toMatchObject({ verdict: 'applied', lease: 'l2', hash: hash('c'), bootId: 'boot-2' });
    expect(settlings(node)).toBe(1);
  });

  it('retries a probe that fails before the machine is up', () => {
    const node = restartedInAChange();
    node.machine.probes = () => false;
    node.machine.settles = () => (node.machine.probes = () => true);
    node.settle();
    expect(node.last).toMatchObject({ verdict: 'applied', lease: 'l2', hash: hash('c') });
  });

  it('rolls back if it still fails when the machine is up', () => {
    const node = restartedInAChange();
    node.machine.probes = () => false;
    node.settle();
    node.pass(60_000);
    expect(node.last).toMatchObject({
      verdict: 'failed',
      lease: 'l2',
      hash: A,
      restored: true,
      reason: expect.stringContaining('probe service passed before and fails now') as string,
    });
    expect(settlings(node)).toBe(1);
  });

  it('waits for nothing if all is well', () => {
    const node = restartedInAChange();
    node.settle();
    expect(node.last).toMatchObject({ verdict: 'applied', hash: hash('c') });
    expect(settlings(node)).toBe(0);
  });

  it('does not report what the kernel lost before it has retried with the machine up', () => {
    const node = bench();
    restartMachine(node);
    node.machine.refuses = () => ({ fault: 'node', reason: 'not yet' });
    node.machine.settles = () => (node.machine.refuses = () => undefined);
    node.settle();
    expect(node.bus.reports.filter(({ restored }) => !restored)).toEqual([]);
    expect(Object.fromEntries(node.machine.files)).toEqual({ '/a': 'one', '/b': 'one' });
  });
});

it('recreates what was lost without a reboot, once per check, and reports no drift', () => {
  const node = bench();
  node.pass(10);
  node.machine.files.delete('/a');
  node.machine.forgets = true;
  const reports = node.bus.reports.length;
  node.pass(200_000);
  expect(Object.fromEntries(node.machine.files)).toEqual({ '/a': 'one', '/b': 'one' });
  expect(node.bus.reports.length).toBe(reports);
  // What cannot be created is retried a limited number of times.
  node.machine.files.delete('/a');
  node.machine.refuses = () => ({ fault: 'node', reason: 'no' });
  node.steps.length = 0;
  node.pass(60_000);
  expect(node.last).toMatchObject({ kind: 'announced', restored: false });
  expect(node.steps.filter((step) => step.do === 'apply').length).toBeLessThan(30);
});
