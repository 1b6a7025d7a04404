import {
  accepted,
  changed,
  committed,
  factOf,
  heard,
  joined,
  left,
  pool,
  renderedChange,
  renderedNode,
  reason,
  reviewedNode,
  silent,
  validated,
} from '#libs/testing';
import { schedulerCore } from './index.js';
import { DRAIN, PAST_DEADLINE, Scheduler } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);
const names = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${String(i).padStart(4, '0')}`);
/** Three nodes of a pool with a budget of two. */
const inEdge = (...nodes: readonly string[]) => {
  const s = new Scheduler().given(
    accepted('c9', { apply: [pool('edge', 2)] }),
    renderedChange('c9', {}),
    validated('c9'),
  );
  s.when();
  return s.given(committed('c9')).fleet(nodes, { role: 'edge' });
};
const touchedBy = (s: Scheduler, act: () => unknown): readonly string[] => {
  schedulerCore.takeTouched(s.state);
  act();
  return [...schedulerCore.takeTouched(s.state)].sort();
};

describe('the view of a node', () => {
  it('says since when the newest lease is as it is', () => {
    const s = new Scheduler().fleet(['n0']);
    s.rolls('c1', ['n0']);
    // The facts of a ledger in memory are numbered from 1.
    const last = (type: string): number => 1 + s.ledger.facts.findLastIndex((fact) => fact.type === type);
    expect(s.view('status', 'n0').leaseLedger).toBe(last('node.lease.granted'));
    s.applies('n0');
    expect(s.view('status', 'n0').leaseLedger).toBe(last('node.lease.settled'));
  });

  it('that has only reported has no known config', () => {
    const s = new Scheduler().given(joined('n0'));
    expect(s.status('n0')).toEqual({
      leaseLedger: 0,
      node: 'n0',
      incarnation: 0,
      nonce: 0,
      seq: 0,
      hash: '',
      lease: '',
      verdict: '',
      reason: '',
      restored: true,
      desired: '',
      pool: 'default',
      deferred: '',
      incompatible: false,
      incompatibleReasons: [],
      drifted: [],
      driftedSince: '',
      failingProbes: [],
      notUndone: [],
      leftovers: [],
      skipped: '',
      change: '',
    });
    expect(schedulerCore.view(s.state, { bucket: 'leases', key: 'n0' })).toBeUndefined();
  });

  it('contains its last report, its desired config, and its rollout', () => {
    const s = inEdge('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { maxFailures: 1 });
    s.leaseEnds('n0', 'failed', { restored: false });
    expect(s.status('n0')).toEqual({
      leaseLedger: expect.any(Number) as number,
      node: 'n0',
      incarnation: 1,
      nonce: 7,
      seq: 3,
      hash: 'old',
      lease: 'n0-l1',
      verdict: 'failed',
      reason: 'it is failed',
      restored: false,
      desired: 'old',
      pool: 'edge',
      deferred: 'failed: it is failed',
      incompatible: false,
      incompatibleReasons: [],
      drifted: [],
      driftedSince: '',
      failingProbes: [],
      notUndone: [],
      leftovers: [],
      skipped: '',
      change: 'c1',
    });
  });

  it('with a name with dots is found by its token', () => {
    const s = fleetOf('n0.example.org');
    s.rolls('c1', ['n0.example.org']);
    expect(s.view('status', 'n0_example_org').node).toBe('n0.example.org');
    expect(s.view('leases', 'n0_example_org')).toMatchObject({ node: 'n0.example.org', lease: 'n0_example_org-l1' });
  });

  it('is touched with each fact about the node, and so are its pool and its rollout', () => {
    const s = inEdge('n0', 'n1', 'n2');
    expect(touchedBy(s, () => s.given(silent('n2')))).toEqual(['pools/edge', 'status/n2']);
    s.showViews = () => undefined;
    expect(touchedBy(s, () => s.rolls('c1', ['n0']))).toEqual(['leases/n0', 'pools/edge', 'rollouts/c1', 'status/n0']);
    expect(touchedBy(s, () => s.applies('n0'))).toEqual(['leases/n0', 'pools/edge', 'rollouts/c1', 'status/n0']);
  });
});

describe('the view of a lease', () => {
  it('contains everything, even after it has ended', () => {
    const s = fleetOf('n0');
    s.actions = [{ kind: 'reload', unit: 'frr.service' }];
    s.rolls('c1', ['n0']);
    const open = s.lease('n0');
    expect(open).toEqual({
      node: 'n0',
      pool: 'default',
      lease: 'n0-l1',
      change: 'c1',
      kind: 'forward',
      phase: 'applying',
      hash: 'c1-new',
      from: 'old',
      actions: [{ kind: 'reload', unit: 'frr.service' }],
      applyMs: 120_000,
      drainMs: 600_000,
      because: '',
      reason: '',
      grantedAt: expect.stringMatching(/^2026-/),
      settledAt: '',
      drift: { differences: [], overwrite: false },
    });
    s.leaseEnds('n0', 'failed');
    expect(s.lease('n0')).toEqual({
      ...open,
      drift: undefined,
      phase: 'released',
      because: 'failed',
      reason: 'it is failed',
      settledAt: expect.stringMatching(/^2026-/),
    });
  });
});

describe('the view of a pool', () => {
  it('contains its budget, which nodes hold its units and why, and how many wait', () => {
    const s = inEdge('n0', 'n1', 'n2', 'n3', 'n4').given(silent('n4'));
    s.rolls('c1', ['n0', 'n1', 'n2', 'n3']);
    expect(s.view('pools', 'edge')).toEqual({
      pool: 'edge',
      maxUnavailable: '2',
      budget: 2,
      members: 5,
      unavailable: [
        { node: 'n0', because: 'applying', lease: 'n0-l1' },
        { node: 'n4', because: 'silent', lease: '' },
      ],
      waiting: 3,
      applyMs: 120_000,
      drainMs: 600_000,
      drift: 'report',
      gone: false,
      silent: 1,
      silentNodes: ['n4'],
      unhealthy: 0,
      unhealthyNodes: [],
      targetsUnavailable: 0,
      unavailableTargets: [],
      used: 2,
    });
    expect(s.view('pools', 'default')).toMatchObject({
      pool: 'default',
      budget: 1,
      members: 0,
      unavailable: [],
      waiting: 0,
      gone: false,
    });
    expect(s.view('pools', 'never')).toMatchObject({ gone: true });
  });

  it('counts silent nodes in their current pool, and names the first ten', () => {
    const s = inEdge(...names('e', 12), 'n0').given(...names('e', 12).map((node) => silent(node)));
    expect(s.view('pools', 'edge')).toMatchObject({ silent: 12, silentNodes: [...names('e', 12)].sort().slice(0, 10) });
    s.given(heard('e0000'), left('e0001'), factOf('node.changed', { node: 'e0002', labels: {} })).when();
    expect([s.view('pools', 'edge').silent, s.view('pools', 'default').silentNodes]).toEqual([9, ['e0002']]);
  });

  it('shows for each node that holds a unit what it is doing', () => {
    const s = inEdge('n0', 'n1', 'n2', 'n3', 'n4');
    s.given(accepted('c8', { apply: [pool('edge', 5)] }), renderedChange('c8', {}), validated('c8')).when();
    s.given(committed('c8')).when();
    s.rolls('c1', ['n0'], { maxFailures: 9 });
    s.after(PAST_DEADLINE);
    s.actions = DRAIN;
    s.rolls('c2', ['n1', 'n2'], { maxFailures: 9 });
    s.given(factOf('node.drained', { node: 'n2', lease: 'n2-l1', pool: 'edge' })).when();
    s.applies('n2');
    s.nodeReports('n3', 'old', { verdict: 'failed', restored: false });
    expect(s.view('pools', 'edge').unavailable.map(({ node, because }) => `${node} ${because}`)).toEqual([
      'n0 unknown: it did not report by the deadline of its lease',
      'n1 draining',
      'n2 applied, not yet released',
      'n3 degraded: rollback failed',
    ]);
  });

  it('is gone with its Pool', () => {
    const s = inEdge('n0');
    s.rolls('c1', [], { delete: [{ kind: 'Pool', name: 'edge' }] });
    expect(touchedBy(s, () => s.given(committed('c1', 2)))).toContain('pools/edge');
    expect(s.view('pools', 'edge')).toMatchObject({ gone: true, members: 0 });
    expect(s.view('pools', 'default').members).toBe(1);
  });

  it('names a hundred of the nodes that hold its units, and counts all', () => {
    const nodes = names('n', 101);
    const s = new Scheduler().given(...nodes.flatMap((node) => [joined(node), silent(node)]));
    expect(s.view('pools', 'default').unavailable.map(({ node }) => node)).toEqual(nodes.slice(0, 100));
    expect(s.view('pools', 'default')).toMatchObject({ members: 101, used: 101 });
  });
});

describe('the view of a rollout', () => {
  it('shows its progress, in total and per pool, and failures first', () => {
    const s = inEdge('n0', 'n1', 'n2', 'n3', 'n4').fleet(['d0']);
    s.rolls('c1', ['n0', 'n1', 'n2', 'n3', 'd0'], { maxFailures: 3, incompatible: ['n3'] });
    s.applies('n0');
    s.leaseEnds('n1', 'failed');
    expect(s.view('rollouts', 'c1')).toEqual({
      change: 'c1',
      phase: 'rolling',
      paused: false,
      nodes: 5,
      applied: 1,
      failed: 1,
      unknown: 0,
      deferred: 2,
      pending: 2,
      maxFailures: 3,
      maxUnavailable: 0,
      reason: '',
      pools: {
        default: { nodes: 1, done: 0, active: 1, untouched: 0, degraded: 0 },
        edge: { nodes: 4, done: 1, active: 1, untouched: 0, degraded: 0 },
      },
      worst: [
        { node: 'n1', pool: 'edge', state: 'failed', reason: 'it is failed', since: expect.stringMatching(/^2026-/) },
        {
          node: 'n3',
          pool: 'edge',
          state: 'deferred',
          reason: 'it is incompatible with this change, and with the committed config too',
          since: '',
        },
        { node: 'd0', pool: 'default', state: 'applying', reason: 'forward', since: expect.stringMatching(/^2026-/) },
        { node: 'n2', pool: 'edge', state: 'applying', reason: 'forward', since: expect.stringMatching(/^2026-/) },
      ],
      stalledBy: [],
      startedAt: expect.stringMatching(/^2026-/),
      endedAt: '',
      supersededBy: '',
      aborted: false,
    });
  });

  it('that is reverting counts the remaining nodes, and shows which are rolled back', () => {
    const s = inEdge('n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2']);
    s.applies('n0');
    s.applies('n1');
    s.leaseEnds('n2', 'failed');
    expect(s.view('rollouts', 'c1')).toMatchObject({
      phase: 'reverting',
      applied: 2,
      pending: 2,
      failed: 1,
      reason: 'n2 is failed: it is failed',
    });
    s.applies('n0');
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'reverting', applied: 1, pending: 1 });
    s.asks({ op: 'rollout.get', change: 'c1', cursor: '', limit: 9 });
    expect(s.answers).toMatchObject([
      {
        body: {
          nodes: [
            { node: 'n0', state: 'rolled-back' },
            { node: 'n1', state: 'applying', reason: 'rollback' },
            { node: 'n2', state: 'failed' },
          ],
        },
      },
    ]);
    s.applies('n1');
    expect(s.view('rollouts', 'c1')).toMatchObject({
      phase: 'reverted',
      applied: 0,
      pending: 0,
      endedAt: expect.stringMatching(/^2026-/),
    });
  });

  it('shows node by node which are draining, are uncordoning, have left, or wait', () => {
    const s = inEdge('n0', 'n1', 'n2', 'n3');
    s.actions = DRAIN;
    s.rolls('c1', ['n0', 'n1', 'n2', 'n3']);
    s.given(factOf('node.drained', { node: 'n0', lease: 'n0-l1', pool: 'edge' }), left('n3')).when();
    s.applies('n0');
    s.asks({ op: 'rollout.get', change: 'c1', cursor: '', limit: 9 });
    expect(s.answers).toMatchObject([
      {
        body: {
          nodes: [
            { node: 'n0', state: 'applied' },
            { node: 'n1', state: 'draining' },
            { node: 'n2', state: 'pending' },
            { node: 'n3', state: 'left' },
          ],
        },
      },
    ]);
  });

  it('names the fifty worst of its nodes', () => {
    const nodes = names('n', 60);
    const s = new Scheduler().given(
      ...nodes.flatMap((node) => [joined(node), renderedNode(node, 'old'), reviewedNode(node, 'old')]),
    );
    s.rolls('c1', nodes);
    expect(s.view('rollouts', 'c1').worst.map(({ node }) => node)).toEqual(nodes.slice(0, 50));
    expect(s.view('rollouts', 'c1').deferred).toBe(60);
  });

  it('that is superseded shows no deferred nodes and none in progress', () => {
    const s = inEdge('n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2'], { incompatible: ['n2'] });
    s.rolls('c2', ['n0', 'n1', 'n2'], { replaces: ['c1'] });
    expect(s.view('rollouts', 'c1')).toMatchObject({
      phase: 'superseded',
      supersededBy: 'c2',
      deferred: 0,
      worst: [],
      pools: { edge: { active: 0 } },
      endedAt: expect.stringMatching(/^2026-/),
    });
    s.asks({ op: 'rollout.get', change: 'c1', cursor: '', limit: 9 });
    const nodes = ['n0 superseded', 'n1 superseded', 'n2 superseded'].map((row) => {
      const [node, state] = row.split(' ');
      return { node, state };
    });
    expect(s.answers).toMatchObject([{ ok: true, body: { phase: 'superseded', nodes } }]);
  });

  it('that has ended counts a node that has left as such, and no longer as deferred', () => {
    const s = inEdge('n0', 'n1').given(silent('n1'));
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.given(committed('c1')).when();
    const before = s.view('rollouts', 'c1');
    expect(before).toMatchObject({
      applied: 1,
      deferred: 1,
      worst: [{ node: 'n1', state: 'deferred' }],
      pools: { edge: { nodes: 2, done: 1 } },
    });
    s.nodeReports('n1', 'strange');
    expect(s.view('rollouts', 'c1')).toEqual(before);
    s.given(left('n1')).when();
    expect(s.view('rollouts', 'c1')).toMatchObject({
      applied: 1,
      deferred: 0,
      worst: [],
      pools: { edge: { nodes: 2, done: 1 } },
    });
  });
});

describe('an ended rollout with a node that is incompatible with it', () => {
  const MISFIT = { fragment: 'Exec/e', field: 'kind', code: 'capability', message: 'it cannot do this', nodes: [] };
  const kept = 'it is incompatible with this change, and with the committed config too';
  /** The change c1 is committed, and n1 keeps its config. */
  const committedWithoutN1 = (): Scheduler => {
    const s = inEdge('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { incompatible: ['n1'] });
    s.applies('n0');
    s.given(committed('c1'), renderedNode('n1', 'c1-new'));
    s.given(factOf('node.reviewed', { node: 'n1', hash: 'c1-new', compatible: false, reasons: [MISFIT] }));
    s.when();
    return s;
  };
  const nodesOf = (s: Scheduler, change: string): unknown => {
    s.asks({ op: 'rollout.get', change, cursor: '', limit: 9 });
    return s.answers.map((answer) => ('body' in answer ? answer.body : answer));
  };

  it('shows it as deferred, as long as it keeps its config', () => {
    const s = committedWithoutN1();
    const worst = [{ node: 'n1', pool: 'edge', state: 'deferred', reason: kept, since: '' }];
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'succeeded', applied: 1, deferred: 1, worst });
    expect(nodesOf(s, 'c1')).toMatchObject([{ nodes: [{ node: 'n0', state: 'applied' }, { state: 'deferred' }] }]);
  });

  it('shows it as deferred until it has applied the config, once it is compatible', () => {
    const s = committedWithoutN1();
    s.given(renderedNode('n1', 'c1-new'), reviewedNode('n1', 'c1-new')).when();
    expect(s.view('rollouts', 'c1')).toMatchObject({ applied: 1, deferred: 1 });
    s.applies('n1');
    expect(s.view('rollouts', 'c1')).toMatchObject({ applied: 2, deferred: 0, worst: [] });
    expect(nodesOf(s, 'c1')).toMatchObject([{ nodes: [{ state: 'applied' }, { node: 'n1', state: 'applied' }] }]);
  });

  it('never says that it applied the config if a later change takes it over', () => {
    const s = committedWithoutN1();
    s.rolls('c2', ['n1']);
    expect(s.view('rollouts', 'c1')).toMatchObject({ applied: 1, deferred: 0, worst: [] });
    expect(nodesOf(s, 'c1')).toMatchObject([{ nodes: [{ state: 'applied' }, { node: 'n1', state: 'superseded' }] }]);
  });
});

describe('the keys of all views', () => {
  it('are those of every node, pool and rollout', () => {
    const s = inEdge('n0.a');
    s.rolls('c1', []);
    expect([...schedulerCore.viewKeys(s.state)]).toEqual([
      'status/n0_a',
      'leases/n0_a',
      'pools/default',
      'pools/edge',
      'rollouts/c9',
      'rollouts/c1',
    ]);
  });

  it('lead to all existing views', () => {
    const s = fleetOf('n0');
    for (const [bucket, key] of [
      ['status', 'n9'],
      ['leases', 'n9'],
      ['rollouts', 'c9'],
      ['changes', 'c9'],
    ] as const)
      expect(schedulerCore.view(s.state, { bucket, key })).toBeUndefined();
  });
});

const drifts = (s: Scheduler, ...differences: readonly string[]) =>
  s.when(s.message('n0', 'old', { kind: 'drifted', differences }));

describe('why, as text', () => {
  const cases: readonly (readonly [string, (s: Scheduler) => unknown, object])[] = [
    [
      'a skipped node that is silent',
      (s) => (s.given(silent('n0')), s.skips('n0')),
      {
        because: 'skipped',
        text: 'it is silent, and skipped by me until it reports again or its rollout ends',
        holders: [],
      },
    ],
    [
      'a node that drains',
      (s) => ((s.actions = DRAIN), s.rolls('c1', ['n0'])),
      { because: 'draining', lease: 'n0-l1', change: 'c1' },
    ],
    [
      'a node that applies',
      (s) => s.rolls('c1', ['n0'], { to: '0123456789abcdef' }),
      { because: 'applying', text: 'it has a forward lease and is applying 0123456789ab' },
    ],
    [
      'a node that did not answer',
      (s) => (s.rolls('c1', ['n0']), s.after(PAST_DEADLINE)),
      { because: 'unknown', holders: ['n0'], lease: 'n0-l1' },
    ],
    [
      'a node that a paused change will reach',
      (s) => (s.rolls('c1', ['m0', 'n0']), s.pauses('c1')),
      { because: 'paused', change: 'c1' },
    ],
    [
      'a node that already has the config of a paused change',
      (s) => (s.rolls('c1', ['m0', 'n0']), s.applies('m0'), s.applies('n0')),
      { because: 'settled', text: 'it is done with c1', change: 'c1' },
    ],
    [
      'a node with drift that keeps changes from it',
      (s) => drifts(s, '/a', '/b'),
      {
        because: 'drifted',
        text: 'it is up to date, except for drift (/a; /b): changes are deferred until it is undone, or the pool has drift: overwrite',
      },
    ],
    [
      'a node with drift that no change could overwrite',
      (s) => drifts(s, 'a.service: is failed instead of started'),
      {
        because: 'drifted',
        text: 'it is up to date, except for drift (a.service: is failed instead of started): it is only reported',
      },
    ],
    [
      'a node with drift in a pool that overwrites it',
      (s) => {
        s.given(accepted('c9', { apply: [pool('edge', 1, 'edge', { drift: 'overwrite' })] }));
        s.given(renderedChange('c9', {}), validated('c9')).when();
        s.given(committed('c9'), changed('n0', { role: 'edge' })).when();
        drifts(s, '/a');
      },
      {
        because: 'drifted',
        pool: 'edge',
        text: 'it is up to date, except for drift (/a): the next change of the node overwrites it',
      },
    ],
    [
      'a node whose drift the committed config would overwrite',
      (s) => (drifts(s, '/a: content differs'), s.given(renderedNode('n0', 'x'), reviewedNode('n0', 'x'))),
      {
        because: 'blocked',
        text: 'the committed config waits: it has drift that would be overwritten (/a: content differs): undo it on the node, or select it with a Pool that has drift: overwrite',
      },
    ],
    [
      'a node that is incompatible',
      (s) => s.given(renderedNode('n0', 'x'), reviewedNode('n0', 'x', [reason('a', 'one'), reason('b', 'two')])),
      { because: 'incompatible', text: 'the committed config is incompatible with it: one; two' },
    ],
    [
      'a node that waits for changes to start',
      (s) =>
        s.given(
          accepted('c1'),
          renderedChange('c1', { n0: { from: 'old', to: 'x', recipe: '' } }),
          accepted('c2'),
          renderedChange('c2', { n0: { from: 'old', to: 'y', recipe: '' } }),
        ),
      { because: 'not-started', text: 'it waits for c1, c2 to start', change: 'c1' },
    ],
    ['a node that is next', (s) => s.given(renderedNode('n0', 'x'), reviewedNode('n0', 'x')), { because: 'next' }],
  ];
  it.each(cases)('is answered for %s', (_, act, answer) => {
    const s = fleetOf('m0', 'n0');
    act(s);
    expect(
      (
        s.core
          .decide(s.state, [{ type: 'request', request: { op: 'node.why', node: 'n0' } }], new Map(), s.now)
          .answers.values()
          .next().value as { body: object }
      ).body,
    ).toMatchObject({ node: 'n0', pool: 'default', ...answer });
  });

  it('names five of the nodes that hold the units, and lists all of them', () => {
    const s = fleetOf('n0', ...names('m', 7)).given(...names('m', 7).map((node) => silent(node)));
    s.rolls('c1', ['n0']);
    expect(s.why('n0')).toMatchObject({
      because: 'budget',
      holders: names('m', 7),
      text: `the budget of pool default is used up: 7 unavailable, 1 allowed: ${names('m', 5)
        .map((node) => `${node} (silent)`)
        .join(', ')} and 2 more`,
    });
  });

  it('is refused for an unknown node', () => {
    const s = fleetOf('n0');
    s.asks({ op: 'node.why', node: 'n9' });
    expect(s.answers).toMatchObject([{ ok: false, code: 'not-found' }]);
  });
});
