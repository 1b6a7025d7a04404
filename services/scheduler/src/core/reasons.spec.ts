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

describe('why a node is where it is', () => {
  it('names no change where none has to do with it, and only changes that touch it', () => {
    const s = fleetOf('n0', 'n1').given(accepted('c1'), renderedChange('c1', leading(['n1'], 'old', 'x')));
    expect(s.why('n0')).toEqual({
      node: 'n0',
      pool: 'default',
      holders: [],
      because: 'up-to-date',
      text: 'it is up to date',
    });
    expect(s.why('n1')).toMatchObject({ because: 'not-started', change: 'c1' });
  });

  it('in a rollout that brings it another config is that, and not that the committed one does not fit it', () => {
    const s = fleetOf('n0', 'n1').given(renderedNode('n1', 'x'), reviewedNode('n1', 'x', [reason('conflict')]));
    expect(s.why('n1').because).toBe('incompatible');
    s.rolls('c1', ['n0', 'n1']);
    expect(s.why('n1')).toMatchObject({ because: 'budget', holders: ['n0'] });
  });

  it('is what keeps it from going on, as long as it has not been left behind for that', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.given(factOf('config.judged', { hash: 'c1-new', lease: 'x-l1', change: 'c0', node: 'x', knownBad: true }));
    expect(s.why('n1')).toMatchObject({ because: 'blocked', text: 'its config is known-bad' });
    expect(s.why('n1').because).toBe('deferred');
  });

  it('is a pause only for who waits for it to go forward', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2']);
    s.applies('n0');
    s.pauses('c1');
    expect(['n0', 'n1', 'n2'].map((node) => s.why(node).because)).toEqual(['settled', 'applying', 'paused']);
    s.aborts('c1');
    expect(s.why('n2')).toMatchObject({ because: 'settled', text: 'it is done in c1' });
    s.resumes('c1');
    expect(s.why('n2').because).toBe('settled');
  });

  it('in a rollout is the unit that it waits for, whatever went wrong before', () => {
    const s = inPool(1, 'n0', 'n1');
    s.reports_('n1', 'strange');
    s.answers_('n1', 'failed');
    s.rolls('c1', ['n0']);
    s.rolls('c2', ['n1'], { from: 'strange' });
    expect(s.why('n1')).toMatchObject({ because: 'budget', holders: ['n0'], change: 'c2' });
  });

  it('is no want of a unit where it needs none, for it is unavailable already', () => {
    const s = inPool(1, 'n0', 'n1').given(down('n0'), down('n1'), renderedNode('n0', 'x'), reviewedNode('n0', 'x'));
    expect(s.why('n0')).toMatchObject({ because: 'next', holders: [] });
  });

  it('names a hundred of those that hold the units', () => {
    const many = Array.from({ length: 101 }, (_, i) => `m${String(i).padStart(3, '0')}`);
    const s = fleetOf('n0').given(...many.flatMap((node) => [joined(node), silent(node)]));
    s.given(renderedNode('n0', 'x'), reviewedNode('n0', 'x'));
    expect(s.why('n0').holders).toEqual(many.slice(0, 100));
  });
});

describe('what is said of a rollout', () => {
  it('has in it how far it is, and nothing that is not of it', () => {
    const s = inPool(1, 'n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2'], { maxFailures: 2 });
    s.applies('n0');
    s.answers_('n1', 'failed');
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
        reason: '',
        attempt: 0,
        replaces: [],
        by: 'me',
        nodes: [],
      },
    ]);
  });

  it('before it has started is nothing but what was asked', () => {
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
        reason: '',
        attempt: 0,
        replaces: [],
        by: 'me',
        nodes: [],
      },
    ]);
  });

  it('during its rollback counts as applied who is still to go, and none once it is reverted', () => {
    const s = inPool(1, 'n0', 'n1', 'n2', 'n3');
    s.rolls('c1', ['n0', 'n1', 'n2']);
    s.applies('n0');
    s.given(factOf('node.unavailable', { node: 'n3', because: 'NotReady' }));
    expect(s.answers_('n1', 'failed').at(-1)).toMatchObject({
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
  it('is none of the fleet yet, and counts nowhere', () => {
    const s = new Scheduler();
    s.reports_('n0', 'mine', { restored: false, verdict: 'failed' });
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

describe('what waits for a pool', () => {
  it('is everybody who is to get a lease, whether that needs a unit or not', () => {
    const s = inPool(1, 'n0', 'n1', 'n2').given(silent('n2'), down('n1'));
    for (const node of ['n0', 'n1']) s.given(renderedNode(node, 'x'), reviewedNode(node, 'x'));
    expect(s.view('pools', 'edge').waiting).toBe(2);
    expect(s.after(MINUTE).filter(({ type }) => type === 'node.lease.granted')).toMatchObject([{ node: 'n1' }]);
    expect(s.view('pools', 'edge').waiting).toBe(1);
  });
});
