import { EMPTY_HASH, type Fragment, type NewFact } from '#libs/contracts';
import { migrated } from '#libs/engine';
import { changed, factOf, file, joined, left, LedgerCopy, report, silent } from '#libs/testing';
import { answers, ends, fleet, leased, reports, rollOut } from './counts.fixture.js';
import { Merger } from './merger.fixture.js';

describe('a deleted fragment', () => {
  const b = file('b', '1', 'web');
  const everyNode = { ...b, spec: { ...b.spec, deletion: 'everyNode' } as never };
  const gone = { gone: { kind: 'File', name: 'b' } };
  const shown = (m: Merger) => m.view('fragments', 'File.b');

  it('waits for a node that gets other labels before it has dropped it', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, everyNode);
    m.publishes(2, gone);
    m.starts('c2');
    m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied'));
    m.given(factOf('node.deferred', { node: 'n1', change: 'c2', reason: 'silent' }));
    m.completes('c2');
    m.given(changed('n1', { role: 'db' }));
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
    m.when();
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'], counts: { nodes: 2, upToDate: 1 } });
    m.given(changed('n1', { role: 'cache' })).when();
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
    m.given(leased(m, 'n1', '', 'corrective'), ends(m, 'n1', '', 'applied'));
    expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
  });

  it('waits for a node that got other labels before the deletion, and still has it', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, everyNode);
    m.given(changed('n1', { role: 'db' })).when();
    m.publishes(2, gone);
    m.starts('c2');
    m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied'));
    m.completes('c2');
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
    m.given(leased(m, 'n1', '', 'corrective'), ends(m, 'n1', '', 'applied'));
    expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
  });

  it('waits for a target on which some of it is still there, until that reports that it is gone', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, everyNode, file('x', '1', 'web'));
    m.publishes(2, gone);
    m.starts('c2');
    const left = ['File/b: ConfigMap/default/b: it is still being deleted'];
    m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied'));
    m.given(leased(m, 'n1', 'c2'), ends(m, 'n1', 'c2', 'applied', { leftovers: left }));
    m.completes('c2');
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'], counts: { nodes: 2, upToDate: 1, waiting: 1 } });
    expect(m.view('fragments', 'File.x')).toMatchObject({ inSync: true });
    const hash = m.state.inForce.get('n1') ?? '';
    const says = (leftovers: readonly string[]): NewFact =>
      factOf('node.reported', { ...report('n1', hash, { leftovers }), report: 'announced' });
    m.given(silent('n1'), says(left));
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
    m.given(says(['File/b2: x: it is there']));
    expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
    m.given(says(['… and 3 more']));
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
    m.given(says([]));
    expect(shown(m)).toMatchObject({ removing: false, stillOn: [], counts: { nodes: 2, upToDate: 2 } });
  });

  it('does not wait for a target that was removed with what is left of it', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, everyNode);
    m.publishes(2, gone);
    m.starts('c2');
    m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied'));
    m.given(leased(m, 'n1', 'c2'), ends(m, 'n1', 'c2', 'applied', { leftovers: ['File/b: x: it is there'] }));
    m.completes('c2');
    expect(shown(m)).toMatchObject({ removing: true });
    m.given(left('n1'));
    expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
  });

  /** It is applied with another file. n1 does not get them, because it is silent; then it is deleted. */
  function deferred(m: Merger, before: (m: Merger) => readonly NewFact[] = () => []): Merger {
    m.publishes(1, everyNode, file('x', '1', 'web'));
    m.starts('c1');
    m.given(leased(m, 'n0', 'c1'), ends(m, 'n0', 'c1', 'applied'), ...before(m));
    m.given(factOf('node.deferred', { node: 'n1', change: 'c1', reason: 'silent' }));
    m.completes('c1');
    m.publishes(2, gone);
    m.starts('c2');
    m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied'));
    m.given(factOf('node.deferred', { node: 'n1', change: 'c2', reason: 'silent' }));
    m.completes('c2');
    return m;
  }

  it('does not wait for a node that never had it, because it was deferred all the time', () => {
    const m = deferred(fleet('n0', 'n1'));
    expect(shown(m)).toMatchObject({ gone: true, removing: false, stillOn: [] });
  });

  it('waits for a deferred node that got a lease with it and has not answered', () => {
    const unknown = (m: Merger) => [leased(m, 'n1', 'c1'), ends(m, 'n1', 'c1', 'unknown')];
    const m = deferred(fleet('n0', 'n1'), unknown);
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
    m.given(reports('n1', m.state.inForce.get('n1') ?? ''));
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
    m.given(answers(m, 'n1'));
    expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
  });

  it('waits for a node that has not answered, although its last report was of the config without it', () => {
    const m = fleet('n0', 'n1');
    m.publishes(1, everyNode);
    m.starts('c1');
    m.given(leased(m, 'n0', 'c1'), ends(m, 'n0', 'c1', 'applied'));
    m.given(leased(m, 'n1', 'c1'), ends(m, 'n1', 'c1', 'unknown'));
    m.completes('c1');
    m.publishes(2, gone);
    m.starts('c2');
    m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied'));
    m.completes('c2');
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
    m.given(answers(m, 'n1'));
    expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
    // A lease that began after the deletion cannot bring it back.
    m.given(leased(m, 'n1', '', 'corrective'));
    expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
  });

  it('waits for a deferred node that could not roll it back completely', () => {
    const degraded = (m: Merger) => {
      const had = report('n1', m.state.inForce.get('n1') ?? '');
      const failed = { report: 'failed', restored: false, lease: 'l-n1', reportSequence: 1 } as const;
      return [leased(m, 'n1', 'c1'), factOf('node.reported', { ...had, ...failed })];
    };
    expect(shown(deferred(fleet('n0', 'n1'), degraded))).toMatchObject({ removing: true, stillOn: ['n1'] });
  });

  it('waits for a node of an unknown config, and not for one that joins with none', () => {
    const m = fleet('n0');
    rollOut(m, 1, everyNode);
    rollOut(m, 2, gone);
    m.given(joined('n8', { role: 'web' }), joined('n9', { role: 'web' })).when();
    m.given(reports('n8', 'f'.repeat(64)), reports('n9', EMPTY_HASH)).when();
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n8'] });
  });

  it('waits for a node that had it before it was deleted and applied again', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, everyNode);
    m.given(silent('n1'));
    for (const [sequence, content] of [gone, everyNode, gone].entries()) {
      const change = `c${sequence + 2}`;
      m.publishes(sequence + 2, content);
      m.starts(change);
      m.given(leased(m, 'n0', change), ends(m, 'n0', change, 'applied'));
      m.given(factOf('node.deferred', { node: 'n1', change, reason: 'silent' }));
      m.completes(change);
    }
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
  });

  it('waits for a node that still has it from a change that was rolled back', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, everyNode);
    rollOut(m, 2, gone);
    m.publishes(3, everyNode);
    m.starts('c3');
    m.given(leased(m, 'n0', 'c3'), ends(m, 'n0', 'c3', 'applied'));
    m.given(factOf('rollout.reverting', { change: 'c3', reason: 'no' }));
    m.given(factOf('rollout.reverted', { change: 'c3', reason: 'no' })).when();
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n0'] });
    m.given(reports('n0', m.state.desired.get('n0')?.hash ?? '')).when();
    expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
  });

  describe('after its selector was narrowed,', () => {
    const to = (labels: Readonly<Record<string, string>>): Fragment => ({
      ...b,
      spec: { ...b.spec, deletion: 'everyNode', nodeSelector: { matchLabels: labels } } as never,
    });
    const [wide, narrow] = [to({}), to({ zone: 'a' })];
    const zones = (): Merger => {
      const m = new Merger();
      m.given(joined('n0', { zone: 'b' }), joined('n1', { zone: 'a' })).when();
      return m.given(...['n0', 'n1'].map((node) => reports(node, EMPTY_HASH)));
    };
    /** A rollout that reaches these nodes, and defers the others. */
    function reaches(m: Merger, sequence: number, nodes: readonly string[], content: typeof gone | Fragment): void {
      const change = `c${sequence}`;
      m.publishes(sequence, content);
      m.starts(change);
      for (const node of Object.keys(m.state.targets.get(change) ?? {}))
        if (nodes.includes(node)) m.given(leased(m, node, change), ends(m, node, change, 'applied'));
        else m.given(factOf('node.deferred', { node, change, reason: 'silent' }));
    }

    it('waits for a node that has it from a wider version that was rolled back', () => {
      const m = zones();
      reaches(m, 1, ['n0', 'n1'], wide);
      m.given(factOf('rollout.reverting', { change: 'c1' }), factOf('rollout.reverted', { change: 'c1' })).when();
      m.given(leased(m, 'n1', '', 'corrective'), ends(m, 'n1', '', 'applied'));
      reaches(m, 2, ['n1'], narrow);
      m.completes('c2');
      reaches(m, 3, ['n1'], gone);
      m.completes('c3');
      expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n0'], counts: { nodes: 2, upToDate: 1 } });
      m.given(leased(m, 'n0', '', 'corrective'), ends(m, 'n0', '', 'applied'));
      expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
    });

    it('waits for a silent node that has it from a wider version that was committed', () => {
      const m = zones();
      reaches(m, 1, ['n0', 'n1'], wide);
      m.completes('c1');
      reaches(m, 2, ['n1'], narrow);
      m.completes('c2');
      reaches(m, 3, ['n1'], gone);
      m.completes('c3');
      expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n0'] });
      m.given(leased(m, 'n0', '', 'corrective'), ends(m, 'n0', '', 'applied'));
      expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
    });

    it('does not wait for a silent node that only a later, wider version selected', () => {
      const m = zones();
      reaches(m, 1, ['n1'], narrow);
      m.completes('c1');
      reaches(m, 2, ['n1'], wide);
      m.completes('c2');
      reaches(m, 3, ['n1'], gone);
      m.completes('c3');
      expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
    });

    it('waits for a node that left, and came back as it was', () => {
      const m = zones();
      reaches(m, 1, ['n0', 'n1'], wide);
      m.completes('c1');
      m.given(left('n0')).when();
      reaches(m, 2, ['n1'], narrow);
      m.completes('c2');
      reaches(m, 3, ['n1'], gone);
      m.completes('c3');
      expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
      m.given(joined('n0', { zone: 'c' })).when();
      expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n0'] });
      m.given(leased(m, 'n0', '', 'corrective'), ends(m, 'n0', '', 'applied'));
      expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
    });

    it('waits for a node that came back empty, left while it was, and then came back as it was', () => {
      const m = zones();
      reaches(m, 1, ['n0', 'n1'], wide);
      m.completes('c1');
      const had = m.state.inForce.get('n0') as string;
      m.given(left('n0'), joined('n0', { zone: 'c' }), reports('n0', EMPTY_HASH)).when();
      reaches(m, 2, ['n1'], gone);
      m.completes('c2');
      expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
      m.given(reports('n0', had));
      expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n0'] });
    });

    it('waits, after many selectors, for the nodes of the oldest', () => {
      const m = zones();
      reaches(m, 1, ['n0', 'n1'], wide);
      m.completes('c1');
      for (let i = 2; i < 40; i += 1) {
        reaches(m, i, ['n1'], i % 2 === 0 ? gone : to({ zone: 'a', [`l${i}`]: 'x' }));
        m.completes(`c${i}`);
      }
      reaches(m, 40, ['n1'], gone);
      m.completes('c40');
      expect(m.state.goneFragments.get('File/b')?.selectors.length).toBeLessThan(20);
      expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n0'] });
    });
  });

  it('waits for a node that reports a config for its labels of before, and is not rendered again yet', () => {
    const m = fleet('n0', 'n1');
    m.publishes(1, everyNode);
    m.starts('c1');
    m.given(leased(m, 'n0', 'c1'), ends(m, 'n0', 'c1', 'applied'));
    m.given(leased(m, 'n1', 'c1'), changed('n1', { role: 'db' }), ends(m, 'n1', 'c1', 'applied')).when();
    m.completes('c1');
    m.publishes(2, gone);
    m.starts('c2');
    m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied'));
    m.completes('c2');
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
    m.given(leased(m, 'n1', '', 'corrective'), ends(m, 'n1', '', 'applied'));
    expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
  });

  it('does not wait for a node whose lease was cancelled during its drain', () => {
    const m = deferred(fleet('n0', 'n1'), () => {
      const lease = { node: 'n1', pool: 'default', lease: 'l-n1', change: 'c1', kind: 'forward' } as const;
      const settled = { ...lease, because: 'cancelled', restored: true, released: true } as const;
      return [factOf('node.lease.granted', { ...lease, phase: 'draining' }), factOf('node.lease.settled', settled)];
    });
    expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
  });

  it('waits for a node whose lease began after its drain, until nobody works on it and the node has reported', () => {
    const m = deferred(fleet('n0', 'n1'), () => {
      const lease = { node: 'n1', pool: 'default', lease: 'l-n1', change: 'c1', kind: 'forward' } as const;
      return [
        factOf('node.lease.granted', { ...lease, phase: 'draining' }),
        factOf('node.lease.applying', lease),
        factOf('node.lease.settled', { ...lease, because: 'skipped', restored: true, released: false }),
      ];
    });
    const had = m.state.inForce.get('n1') as string;
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
    m.given(reports('n1', had));
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
    m.given(
      factOf('node.lease.released', { node: 'n1', pool: 'default', lease: 'l-n1', change: 'c1', because: 'skipped' }),
    );
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
    m.given(reports('n1', had));
    expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
  });

  it('waits for any node whose applier has reported so many configs that nobody knows what it has', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, everyNode);
    rollOut(m, 2, gone);
    for (let i = 0; i < 20; i += 1)
      m.given(factOf('node.reported', { ...report('n1', `${i}`.repeat(10)), report: 'failed', restored: false }));
    expect(m.state.possibleConfigs.get('n1')?.configs.length).toBeLessThan(17);
    expect(shown(m)).toMatchObject({ removing: true, stillOn: ['n1'] });
  });

  it('does not wait for a node that gets other labels after it has dropped it', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, everyNode);
    rollOut(m, 2, gone);
    m.given(changed('n1', { role: 'db' })).when();
    expect(shown(m)).toMatchObject({ removing: false, stillOn: [] });
  });
});

it('a snapshot from before deletions knew who had what counts every node that is behind as one that may', () => {
  const m = fleet('n0', 'n1');
  rollOut(m, 1, { ...file('b', '1', 'web'), spec: { ...file('b', '1', 'web').spec, deletion: 'everyNode' } as never });
  m.publishes(2, { gone: { kind: 'File', name: 'b' } }, file('x', '1', 'web'));
  m.starts('c2');
  m.given(factOf('node.deferred', { node: 'n1', change: 'c2', reason: 'silent' }));
  m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied'));
  m.completes('c2');
  const dumped = m.core.dump(m.state) as Record<string, [string, Record<string, unknown>][]>;
  const without = (field: string, rows: [string, Record<string, unknown>][] = []) =>
    rows.map(([id, row]) => [id, Object.fromEntries(Object.entries(row).filter(([name]) => name !== field))]);
  const old = {
    ...dumped,
    changes: without('paused', dumped['changes']),
    behind: [['n1', { generation: 0, change: '' }]],
    former: [],
  };
  const copy = new LedgerCopy(m.core, m.ledger);
  copy.state = m.core.load(migrated({ version: m.core.version, migrations: m.core.migrations ?? {} }, 14, old), 0);
  expect(copy.view('fragments', 'File.b')).toMatchObject({ removing: true, stillOn: ['n1'] });
  expect(copy.view('changes', 'c2')).toMatchObject({ paused: '' });
});

it('a snapshot from before the selectors of old versions counts every node that was behind as one they may select', () => {
  const m = fleet('n0', 'n1');
  const b = { ...file('b', '1', 'web'), spec: { ...file('b', '1', 'web').spec, deletion: 'everyNode' } as never };
  rollOut(m, 1, b);
  m.publishes(2, file('b', '2', 'db'));
  m.starts('c2');
  m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied'));
  m.given(factOf('node.deferred', { node: 'n1', change: 'c2', reason: 'silent' }));
  m.completes('c2');
  rollOut(m, 3, { gone: { kind: 'File', name: 'b' } });
  const {
    triedSelectors: _,
    possibleConfigs: __,
    ...dumped
  } = m.core.dump(m.state) as Record<string, [string, object][]>;
  const since = (rows: [string, object][] = []) => rows.map(([id, row]) => [id, { ...row, since: 1, selectors: [] }]);
  const old = {
    ...dumped,
    fragments: since(dumped['fragments']),
    goneFragments: since(dumped['goneFragments']),
    former: [],
    unanswered: [],
  };
  const copy = new LedgerCopy(m.core, m.ledger);
  copy.state = m.core.load(m.core.migrations?.[16]?.(old), 0);
  expect(copy.view('fragments', 'File.b')).toMatchObject({ stillOn: ['n1'] });
});
