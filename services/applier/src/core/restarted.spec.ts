import { Bench, file, hash, SETTINGS } from './applier.fixture.js';

const A = hash('a');
const B = hash('b');

/** A node whose files are forgotten when the machine is restarted, as links and routes are. */
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

it('makes what the kernel forgot again before it says anything, and without any bus', () => {
  const node = bench();
  restartMachine(node);
  node.bus.up = false;
  node.settle();
  expect(Object.fromEntries(node.machine.files)).toEqual({ '/a': 'one', '/b': 'one' });
  node.bus.up = true;
  node.pass(60_000);
  expect(node.last).toMatchObject({ kind: 'announced', bootId: 'boot-2', hash: A, restored: true });
});

it('touches nothing after a restart of the applier alone', () => {
  const node = bench();
  node.machine.files.set('/a', 'edited');
  node.restart();
  node.settle();
  expect(node.machine.files.get('/a')).toBe('edited');
});

it('says that the node is not restored while it cannot be, and tries until it is', () => {
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

it('confirms a change that was under way, once what was forgotten of it is there again', () => {
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
