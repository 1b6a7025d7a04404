import { REMOTE_APPLIER } from '#libs/contracts';
import {
  accepted,
  committed,
  heard,
  joined,
  pool,
  renderedChange,
  renderedNode,
  reviewedNode,
  silent,
  validated,
} from '#libs/testing';
import { grants, MINUTE, PAST_DEADLINE, Scheduler, settledAs, types } from './scheduler.fixture.js';

const NAMES = ['f0', 'f1', 'f2'];

/** Three targets whose appliers run elsewhere, in a pool with one unit. */
function fleet(settings: object = {}, capabilities: readonly string[] = []): Scheduler {
  const s = new Scheduler();
  s.given(
    accepted('c0', { apply: [pool('edge', 1, 'edge', settings)] }),
    renderedChange('c0', {}),
    validated('c0'),
  ).when();
  s.given(committed('c0')).when();
  for (const node of NAMES) {
    s.given(
      joined(node, { role: 'edge' }, { capabilities: [REMOTE_APPLIER, ...capabilities] }),
      renderedNode(node, 'old'),
      reviewedNode(node, 'old'),
    );
    s.nodeReports(node, 'old');
  }
  return s;
}

it('an unreachable target is deferred, and the rollout continues without counting a failure', () => {
  const s = fleet();
  s.rolls('c1', NAMES);
  const facts = s.leaseEnds('f0', 'unreachable', { kind: 'unreachable', untouched: true });
  expect(settledAs(facts)).toEqual(['f0 unreachable']);
  expect(facts).toContainEqual(
    expect.objectContaining({ type: 'node.deferred', node: 'f0', reason: 'unreachable: it is unreachable' }),
  );
  expect(types(facts)).not.toContain('rollout.failed');
  expect(grants(facts)).toEqual(['f1 forward c1-new']);
  s.applies('f1', 'f2');
  expect(s.rollout('c1')).toMatchObject({ phase: 'complete', failed: 0, unknown: 0 });
});

it('a target whose applier does not report by the deadline is unreachable, not unknown, and frees its unit', () => {
  const s = fleet();
  s.rolls('c1', NAMES);
  const facts = s.after(PAST_DEADLINE);
  expect(settledAs(facts)).toEqual(['f0 unreachable']);
  expect(types(facts)).not.toContain('node.unknown');
  expect(grants(facts)).toEqual(['f1 forward c1-new']);
});

describe('a target whose applier did not report by the deadline', () => {
  const late = (): Scheduler => {
    const s = fleet();
    s.rolls('c1', NAMES);
    s.after(PAST_DEADLINE);
    s.given(silent('f0')).when();
    return s;
  };

  it('does not count as rolled back, because it may have what the change brought', () => {
    const s = late();
    s.aborts('c1');
    s.leaseEnds('f1', 'refused');
    expect(s.rollout('c1').phase).toBe('reverted');
    expect(s.view('rollouts', 'c1').deferred).toBe(1);
    expect(s.view('status', 'f0').unsure).toBe(true);
    s.given(heard('f0')).when();
    expect(s.lease('f0')).toMatchObject({ kind: 'corrective', undo: true, hash: 'old', phase: 'applying' });
    s.leaseEnds('f0', 'applied', { hash: 'old' });
    expect(s.view('rollouts', 'c1').deferred).toBe(0);
    expect(s.view('status', 'f0').unsure).toBeUndefined();
  });

  it('is known again once it reports after the lease', () => {
    const s = late();
    s.aborts('c1');
    s.leaseEnds('f1', 'refused');
    s.nodeReports('f0', 'old');
    expect(s.view('rollouts', 'c1').deferred).toBe(0);
    expect(s.view('status', 'f0').unsure).toBeUndefined();
    expect(grants(s.given(heard('f0')).when())).toEqual([]);
  });
});

it('nothing becomes known-bad', () => {
  const s = fleet();
  s.rolls('c1', NAMES);
  s.leaseEnds('f0', 'unreachable', { kind: 'unreachable', restored: false });
  expect([s.state.invalids.size, s.state.unjudged.size]).toEqual([0, 0]);
});

it('a change that is too slow for every target ends without a failure, and each of them says why', () => {
  const s = fleet();
  const reason = 'not confirmed 45000 ms after the lease was read';
  s.rolls('c1', NAMES);
  for (const node of NAMES) s.leaseEnds(node, 'unreachable', { kind: 'unreachable', reason });
  expect(s.rollout('c1')).toMatchObject({ phase: 'complete', failed: 0, unknown: 0 });
  s.given(
    committed('c1'),
    ...NAMES.flatMap((node) => [renderedNode(node, 'c1-new'), reviewedNode(node, 'c1-new')]),
  ).when();
  s.leaseEnds('f0', 'unreachable', { kind: 'unreachable', reason });
  const waits = `deferred (join lease ended as unreachable: ${reason}); next try in 60 s`;
  expect(s.why('f0')).toMatchObject({ because: 'backing-off', text: waits });
});

describe('a silent target', () => {
  it('does not count against its pool', () => {
    const s = fleet().given(silent('f0'));
    const facts = s.rolls('c1', ['f1']);
    expect(facts).toContainEqual(
      expect.objectContaining({
        type: 'node.skipped',
        node: 'f0',
        by: 'scheduler',
        reason: 'it is silent, and a silent target does not count',
      }),
    );
    expect(grants(facts)).toEqual(['f1 forward c1-new']);
  });

  it('counts if its pool has silentNodes: count', () => {
    const s = fleet({ silentNodes: 'count' }).given(silent('f0'));
    expect(grants(s.rolls('c1', ['f1']))).toEqual([]);
    expect(s.unavailable('edge')).toEqual(['f0']);
  });

  it('counts for as long as its pool waits for silent nodes', () => {
    const s = fleet({ silentNodes: { ignoreAfter: '10m' } }).given(silent('f0'));
    expect(grants(s.rolls('c1', ['f1']))).toEqual([]);
    expect(grants(s.after(10 * MINUTE))).toEqual(['f1 forward c1-new']);
  });

  it('keeps its lease until that ends', () => {
    const s = fleet();
    s.rolls('c1', NAMES);
    expect(s.given(silent('f0')).when()).toEqual([]);
    expect(settledAs(s.after(PAST_DEADLINE))).toEqual(['f0 unreachable']);
  });

  it('gets the committed config as soon as it is heard from again', () => {
    const s = fleet();
    s.rolls('c1', NAMES);
    s.leaseEnds('f0', 'unreachable', { kind: 'unreachable', restored: false });
    s.given(silent('f0')).when();
    s.applies('f1', 'f2');
    s.given(
      committed('c1'),
      ...NAMES.flatMap((node) => [renderedNode(node, 'c1-new'), reviewedNode(node, 'c1-new')]),
    ).when();
    const facts = s.given(heard('f0')).when();
    expect(facts).toContainEqual(expect.objectContaining({ type: 'node.lease.granted', node: 'f0', hash: 'c1-new' }));
  });
});

it.each([
  [[], {}, 2],
  [['kind:KubeObjects'], {}, 10],
  [['kind:FleetChange'], {}, 360],
  [['kind:FleetChange'], { applyTimeout: '5m' }, 5],
])('a target with %j in a pool with %j may take %i minutes', (capabilities, settings, minutes) => {
  const facts = fleet(settings, capabilities).rolls('c1', NAMES);
  expect(facts).toContainEqual(
    expect.objectContaining({ type: 'node.lease.granted', node: 'f0', applyMs: minutes * MINUTE }),
  );
});
