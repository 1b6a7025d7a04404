import {
  accepted,
  committed,
  factOf,
  joined,
  pool,
  reason,
  renderedChange,
  renderedNode,
  reviewedNode,
  silent,
  validated,
} from '#libs/testing';
import { leading, MINUTE, Scheduler } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);
const inPool = (budget: number, ...names: readonly string[]): Scheduler => {
  const s = new Scheduler().given(
    accepted('c9', { apply: [pool('edge', budget)] }),
    renderedChange('c9', {}),
    validated('c9'),
  );
  s.when();
  return s.given(committed('c9')).fleet(names, { role: 'edge' });
};
const down = (node: string) => factOf('node.unavailable', { node, because: 'NotReady' });

describe('the reason why a node waits', () => {
  it('names a change only if the change touches it', () => {
    const s = fleetOf('n0', 'n1').given(accepted('c1'), renderedChange('c1', leading(['n1'], 'old', 'x')));
    expect(s.why('n0')).toEqual({
      node: 'n0',
      pool: 'default',
      holders: [],
      because: 'up-to-date',
      text: 'it is up to date',
    });
    expect(s.why('n1')).toMatchObject({ because: 'not-started', change: 'c1', text: 'it waits for c1 to start' });
    s.given(factOf('rollout.paused', { change: 'c1', by: 'bob', reason: 'not now' }));
    expect(s.why('n1')).toMatchObject({ because: 'not-started', text: 'it waits for c1 (which is paused) to start' });
  });

  it('in a rollout with another config for it is the rollout, not the incompatible committed config', () => {
    const s = fleetOf('n0', 'n1').given(renderedNode('n1', 'x'), reviewedNode('n1', 'x', [reason('conflict')]));
    expect(s.why('n1').because).toBe('incompatible');
    s.rolls('c1', ['n0', 'n1']);
    expect(s.why('n1')).toMatchObject({ because: 'budget', holders: ['n0'] });
  });

  it('is a known-bad config until the node is deferred because of it', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.given(factOf('config.judged', { hash: 'c1-new', lease: 'x-l1', change: 'c0', node: 'x', knownBad: true }));
    expect(s.why('n1')).toMatchObject({ because: 'blocked', text: 'its config is known-bad' });
    expect(s.why('n1').because).toBe('deferred');
  });

  it('is a pause only for nodes that wait for a forward lease', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2']);
    s.applies('n0');
    s.pauses('c1');
    expect(['n0', 'n1', 'n2'].map((node) => s.why(node).because)).toEqual(['settled', 'applying', 'paused']);
    s.aborts('c1');
    expect(s.why('n2')).toMatchObject({ because: 'settled', text: 'it is done with c1' });
    s.resumes('c1');
    expect(s.why('n2').because).toBe('settled');
  });

  it('in a rollout is the missing unit, whatever failed before', () => {
    const s = inPool(1, 'n0', 'n1');
    s.nodeReports('n1', 'strange');
    s.leaseEnds('n1', 'failed');
    s.rolls('c1', ['n0']);
    s.rolls('c2', ['n1'], { from: 'strange' });
    expect(s.why('n1')).toMatchObject({ because: 'budget', holders: ['n0'], change: 'c2' });
  });

  it('is not a missing unit if it needs none because it is already unavailable', () => {
    const s = inPool(1, 'n0', 'n1').given(down('n0'), down('n1'), renderedNode('n0', 'x'), reviewedNode('n0', 'x'));
    expect(s.why('n0')).toMatchObject({ because: 'next', holders: [] });
  });

  it('names a hundred of the nodes that hold the units', () => {
    const many = Array.from({ length: 101 }, (_, i) => `m${String(i).padStart(3, '0')}`);
    const s = fleetOf('n0').given(...many.flatMap((node) => [joined(node), silent(node)]));
    s.given(renderedNode('n0', 'x'), reviewedNode('n0', 'x'));
    expect(s.why('n0').holders).toEqual(many.slice(0, 100));
  });
});

describe('the view of a rollout', () => {
  it('contains its progress, and nothing of other rollouts', () => {
    const s = inPool(1, 'n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2'], { maxFailures: 2 });
    s.applies('n0');
    s.leaseEnds('n1', 'failed');
    expect(s.pauses('c1')).toEqual([
      {
        type: 'rollout.paused',
        change: 'c1',
        applied: 1,
        failed: 1,
        unknown: 0,
        deferred: 1,
        pending: 1,
        maxFailures: 2,
        maxUnavailable: 0,
        reason: '',
        attempt: 0,
        replaces: [],
        by: 'me',
        nodes: [],
      },
    ]);
  });

  it('contains only what was requested before it has started', () => {
    const s = fleetOf('n0').given(accepted('c1', { maxFailures: 2 }));
    expect(s.pauses('c1')).toEqual([
      {
        type: 'rollout.paused',
        change: 'c1',
        applied: 0,
        failed: 0,
        unknown: 0,
        deferred: 0,
        pending: 0,
        maxFailures: 0,
        maxUnavailable: 0,
        reason: '',
        attempt: 0,
        replaces: [],
        by: 'me',
        nodes: [],
      },
    ]);
  });

  it('counts the remaining nodes as applied during its rollback, and none once it is reverted', () => {
    const s = inPool(1, 'n0', 'n1', 'n2', 'n3');
    s.rolls('c1', ['n0', 'n1', 'n2']);
    s.applies('n0');
    s.given(factOf('node.unavailable', { node: 'n3', because: 'NotReady' }));
    expect(s.leaseEnds('n1', 'failed').at(-1)).toMatchObject({
      type: 'rollout.stalled',
      applied: 1,
      pending: 1,
      failed: 1,
    });
    s.given(factOf('node.available', { node: 'n3' })).when();
    expect(s.applies('n0').at(-1)).toMatchObject({ type: 'rollout.reverted', applied: 0, pending: 0, failed: 1 });
  });
});

describe('a node that reports before it has joined', () => {
  it('is not part of the fleet yet, and counts nowhere', () => {
    const s = new Scheduler();
    s.nodeReports('n0', 'mine', { restored: false, verdict: 'failed' });
    expect(s.view('pools', 'default')).toMatchObject({ members: 0, unavailable: [], silent: 0, waiting: 0 });
    expect(s.status('n0')).toMatchObject({ hash: 'mine', pool: 'default', skipped: '' });
    expect(s.why('n0').because).toBe('left');
    s.given(joined('n0'));
    expect(s.view('pools', 'default')).toMatchObject({
      members: 1,
      unavailable: [{ node: 'n0', because: 'degraded: rollback failed' }],
    });
  });
});

describe('the waiting nodes of a pool', () => {
  it('include every node that should get a lease, whether or not it needs a unit', () => {
    const s = inPool(1, 'n0', 'n1', 'n2').given(silent('n2'), down('n1'));
    for (const node of ['n0', 'n1']) s.given(renderedNode(node, 'x'), reviewedNode(node, 'x'));
    expect(s.view('pools', 'edge').waiting).toBe(2);
    expect(s.after(MINUTE).filter(({ type }) => type === 'node.lease.granted')).toMatchObject([{ node: 'n1' }]);
    expect(s.view('pools', 'edge').waiting).toBe(1);
  });
});
