import {
  accepted,
  committed,
  factOf,
  heard,
  joined,
  left,
  linesOf,
  pool,
  renderedChange,
  silent,
  validated,
} from '#libs/testing';
import { DRAIN, grants, MINUTE, PAST_DEADLINE, Scheduler, settledAs, types } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);
const drained = (s: Scheduler, node: string, lease = s.lease(node).lease) =>
  factOf('node.drained', { node, lease, pool: 'default' });
const uncordoned = (s: Scheduler, node: string, lease = s.lease(node).lease) =>
  factOf('node.uncordoned', { node, lease, pool: 'default' });

describe('a lease', () => {
  it('contains the actions for the node, its current config, and the time', () => {
    const s = fleetOf('n0');
    s.actions = [{ kind: 'reload', unit: 'frr.service' }];
    s.rolls('c1', ['n0']);
    expect(s.lease('n0')).toMatchObject({
      lease: 'n0-l1',
      change: 'c1',
      kind: 'forward',
      phase: 'applying',
      hash: 'c1-new',
      from: 'old',
      applyMs: 120_000,
      drainMs: 600_000,
      pool: 'default',
      actions: [{ kind: 'reload', unit: 'frr.service' }],
    });
  });

  it('without a drain is released when it is settled', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    const { facts } = s.about(s.answer('n0', 'applied', { hash: 'c1-new' }));
    expect(types(facts)).toEqual(['node.lease.settled', 'rollout.complete']);
    expect(facts[0]).toMatchObject({ because: 'applied', released: true });
  });

  it('is settled by the report that names it, and a redelivered one changes nothing', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    const answer = s.answer('n0', 'applied', { hash: 'c1-new' });
    expect(settledAs(s.when(answer))).toEqual(['n0 applied']);
    expect(s.when(answer, answer)).toEqual([]);
  });

  it('is not settled by a report that names an earlier lease or none', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    expect(types(s.nodeReports('n0', 'old', { lease: 'n0-l0', verdict: 'applied' }))).toEqual(['node.reported']);
    expect(types(s.nodeReports('n0', 'old'))).toEqual(['node.reported']);
    expect(s.lease('n0').phase).toBe('applying');
  });

  it('has failed if the report says applied with another hash', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    expect(linesOf(s.leaseEnds('n0', 'applied', { hash: 'strange' }).slice(0, 1), 'because', 'reason')).toEqual([
      'node.lease.settled failed it reported applied, but its active config is strange',
    ]);
  });

  it("that is refused ends as stale, does not count as a failure, and is planned again from the node's config", () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    const facts = s.leaseEnds('n0', 'refused', { hash: 'mine' });
    expect(settledAs(facts)).toEqual(['n0 stale']);
    expect(grants(facts)).toEqual(['n0 forward c1-new']);
    expect(s.lease('n0')).toMatchObject({ lease: 'n0-l2', from: 'mine' });
    expect(s.rollout('c1')).toMatchObject({ phase: 'rolling', failed: 0, unknown: 0 });
  });

  it('schedules a decision for its deadline', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    expect(s.decide().wakeAtMs).toBe(s.nowMs + 2 * MINUTE);
  });
});

describe('a lease without an answer', () => {
  it('is unknown at its deadline, not before, and keeps its unit until a report names it', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { maxFailures: 1 });
    expect(s.after(2 * MINUTE - 1)).toEqual([]);
    expect(types(s.after(1))).toEqual(['node.unknown', 'node.lease.settled', 'node.deferred', 'rollout.stalled']);
    expect(s.unavailable('default')).toEqual(['n0']);
    expect(types(s.nodeReports('n0', 'old'))).toEqual(['node.reported']); // names no lease
    expect(s.unavailable('default')).toEqual(['n0']);
    expect(grants(s.nodeReports('n0', 'old', { lease: 'n0-l1' }))).toEqual(['n1 forward c1-new']);
    expect(s.unavailable('default')).toEqual(['n1']);
  });

  it.each([
    ['skipped', (s: Scheduler) => s.skips('n0')],
    ['removed', (s: Scheduler) => s.given(left('n0')).when()],
  ])('stalls no rollout once its node was %s', (_, settle) => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { maxFailures: 1 });
    s.after(2 * MINUTE);
    expect(s.view('rollouts', 'c1').stalledBy).toEqual(['n0']);
    expect(types(settle(s))).not.toContain('rollout.stalled');
    expect(s.view('rollouts', 'c1').stalledBy).toEqual([]);
    expect(grants(s.after(2 * MINUTE))).toEqual(['n1 forward c1-new']);
  });

  it('keeps its cordon for as long', () => {
    const s = fleetOf('n0');
    s.actions = DRAIN;
    s.rolls('c1', ['n0'], { maxFailures: 1 });
    s.given(drained(s, 'n0')).when();
    expect(types(s.after(PAST_DEADLINE))).not.toContain('node.lease.uncordoning');
    expect(types(s.nodeReports('n0', 'c1-new', { lease: 'n0-l1', verdict: 'applied' }))).toContain(
      'node.lease.uncordoning',
    );
  });

  it('restarts its time in a copy that starts from a snapshot', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.nowMs += MINUTE;
    s.restart();
    expect(s.after(2 * MINUTE - 1)).toEqual([]);
    expect(types(s.after(1))).toContain('node.unknown');
  });
});

describe('a lease with a drain', () => {
  it('goes through draining, applying, settled, uncordoning, released', () => {
    const s = fleetOf('n0');
    s.actions = DRAIN;
    s.rolls('c1', ['n0']);
    expect(s.lease('n0').phase).toBe('draining');
    expect(types(s.given(drained(s, 'n0')).when())).toEqual(['node.lease.applying']);
    expect(types(s.applies('n0'))).toEqual(['node.lease.settled', 'node.lease.uncordoning', 'rollout.complete']);
    expect(s.unavailable('default')).toEqual(['n0']);
    expect(types(s.given(uncordoned(s, 'n0')).when())).toEqual(['node.lease.released']);
    expect(s.unavailable('default')).toEqual([]);
  });

  it.each([
    ['is skipped', (s: Scheduler) => s.skips('n0')],
    ['leaves', (s: Scheduler) => s.given(left('n0')).when()],
  ])('that was unknown and is being uncordoned after an answer does not end again when its node %s', (_, act) => {
    const s = fleetOf('n0');
    s.actions = DRAIN;
    s.rolls('c1', ['n0'], { maxFailures: 1 });
    s.given(drained(s, 'n0')).when();
    s.after(2 * MINUTE);
    expect(types(s.nodeReports('n0', 'old', { lease: 'n0-l1', verdict: 'refused' }))).toContain(
      'node.lease.uncordoning',
    );
    expect(settledAs(act(s))).toEqual([]);
    expect(types(s.given(uncordoned(s, 'n0')).when())).toContain('node.lease.released');
  });

  it('starts its deadline when the node may change', () => {
    const s = fleetOf('n0');
    s.actions = DRAIN;
    s.rolls('c1', ['n0']);
    expect(s.after(5 * MINUTE)).toEqual([]);
    s.given(drained(s, 'n0')).when();
    expect(s.after(2 * MINUTE - 1)).toEqual([]);
    expect(types(s.after(1))).toContain('node.unknown');
  });

  it('ignores facts about another lease', () => {
    const s = fleetOf('n0');
    s.actions = DRAIN;
    s.rolls('c1', ['n0']);
    expect(s.given(drained(s, 'n0', 'n0-l0'), uncordoned(s, 'n0', 'n0-l0')).when()).toEqual([]);
  });

  it('has failed if it is not drained in time, and the node is uncordoned', () => {
    const s = fleetOf('n0');
    s.actions = DRAIN;
    s.rolls('c1', ['n0']);
    const facts = s.after(10 * MINUTE);
    expect(settledAs(facts)).toEqual(['n0 failed']);
    expect(types(facts)).toContain('node.lease.uncordoning');
    expect(s.rollout('c1').reason).toBe('n0 is failed: not drained within 600 s');
  });

  it.each([
    ['fails', (s: Scheduler) => s.leaseEnds('n0', 'failed')],
    ['is aborted', (s: Scheduler) => s.aborts('c1')],
    ['is superseded', (s: Scheduler) => s.rolls('c2', ['n0', 'n1'], { replaces: ['c1'] })],
  ])('that is still draining when its rollout %s is cancelled and uncordoned', (_, act) => {
    const s = inPool(2, 'n0', 'n1');
    s.actions = DRAIN;
    s.rolls('c1', ['n0', 'n1']);
    s.given(drained(s, 'n0')).when();
    expect([s.lease('n0').phase, s.lease('n1').phase]).toEqual(['applying', 'draining']);
    const facts = act(s);
    expect(settledAs([...facts, ...s.when()])).toContain('n1 cancelled');
    expect(s.lease('n1').phase).toBe('uncordoning');
    expect(s.rollout('c1').failed).toBeLessThan(2);
    expect(types(s.given(factOf('node.uncordoned', { node: 'n1', lease: 'n1-l1', pool: 'edge' })).when())).toContain(
      'node.lease.released',
    );
  });
});

/** Nodes of a pool `edge` with this budget. */
function inPool(budget: number | string, ...names: readonly string[]): Scheduler {
  const s = new Scheduler();
  s.given(accepted('c9', { apply: [pool('edge', budget)] }), renderedChange('c9', {}), validated('c9')).when();
  s.given(committed('c9')).fleet(names, { role: 'edge' });
  return s;
}

describe('a node that is skipped', () => {
  it('counts until applyTimeout after its view was written', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.given(silent('n0'));
    expect(types(s.skips('n0'))).toEqual(['node.skipped', 'node.lease.settled', 'node.deferred']);
    expect(s.unavailable('default')).toEqual(['n0']);
    expect(s.after(2 * MINUTE - 1)).toEqual([]);
    expect(grants(s.after(1))).toEqual(['n1 forward c1-new']);
    expect(s.unavailable('default')).toEqual(['n1']);
  });

  it('is not released while its view may not be written', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.given(silent('n0'));
    s.showViews = () => undefined;
    s.skips('n0');
    expect(s.after(10 * MINUTE)).toEqual([]);
  });

  it('is released even if the batch with that fact was refused at first', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.given(silent('n0'));
    s.skips('n0');
    s.nowMs += PAST_DEADLINE;
    expect(types(s.decide().facts)).toEqual(['node.lease.released']); // and never appended
    expect(types(s.when())).toEqual(['node.lease.released']);
  });

  it('is released sooner if a report names the lease', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.skips('n0');
    expect(grants(s.nodeReports('n0', 'old', { lease: 'n0-l1', verdict: 'refused' }))).toEqual(['n1 forward c1-new']);
  });

  it('also ends its unknown lease', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { maxFailures: 1 });
    s.after(PAST_DEADLINE);
    expect(settledAs(s.skips('n0'))).toEqual(['n0 skipped']);
    expect(grants(s.after(2 * MINUTE))).toEqual(['n1 forward c1-new']);
  });

  it('counts again when it is heard', () => {
    const s = fleetOf('n0', 'n1');
    s.given(silent('n0'));
    s.skips('n0');
    expect(s.unavailable('default')).toEqual([]);
    s.given(heard('n0'), silent('n0'));
    expect(s.unavailable('default')).toEqual(['n0']);
  });

  it('and is alive stays skipped until its rollout ends', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.skips('n1');
    s.applies('n0');
    expect(s.status('n1')).toMatchObject({ skipped: 'me', deferred: 'skipped by me' });
    expect(grants(s.given(committed('c1')).when())).toEqual(['n1 corrective c1-new']);
    expect(s.status('n1').skipped).toBe('');
  });

  it('cannot be skipped while it is alive and idle', () => {
    const s = fleetOf('n0');
    expect(s.skips('n0')).toEqual([]);
    expect(s.answers).toMatchObject([{ ok: false, code: 'conflict' }]);
  });
});

describe('a node that is removed', () => {
  it('has its lease settled as left, and counts until applyTimeout after its view was written', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    expect(settledAs(s.given(left('n0')).when())).toEqual(['n0 left']);
    expect(s.unavailable('default')).toEqual(['n0']);
    expect(grants(s.after(2 * MINUTE))).toEqual(['n1 forward c1-new']);
  });

  it('no longer holds the unit of its unknown lease', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { maxFailures: 1 });
    s.after(PAST_DEADLINE);
    s.given(left('n0')).when();
    expect(grants(s.after(2 * MINUTE))).toEqual(['n1 forward c1-new']);
  });

  it('gets no second lease if it is back before the first is released', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.given(left('n0')).when();
    s.given(
      joined('n0'),
      factOf('node.rendered', { node: 'n0', hash: 'other', recipe: 'r' }),
      factOf('node.reviewed', { node: 'n0', hash: 'other', compatible: true }),
    );
    expect(grants(s.when())).toEqual([]);
    expect(grants(s.after(2 * MINUTE))).toEqual(['n0 join other']);
  });
});

describe('reports', () => {
  it('of a lower incarnation never count', () => {
    const s = new Scheduler().given(joined('n0'));
    s.nodeReports('n0', 'b', { incarnation: 2, nonce: 9, seq: 1 });
    expect(s.nodeReports('n0', 'a', { incarnation: 1, nonce: 7, seq: 50 })).toEqual([]);
    expect(s.status('n0')).toMatchObject({ hash: 'b', incarnation: 2, nonce: 9 });
  });

  it('of the same incarnation with another nonce are from another applier', () => {
    const s = new Scheduler().given(joined('n0'));
    s.nodeReports('n0', 'a', { incarnation: 1, nonce: 7, seq: 1 });
    expect(s.nodeReports('n0', 'b', { incarnation: 1, nonce: 8, seq: 2 })).toEqual([]);
    expect(s.status('n0').hash).toBe('a');
  });

  it('are ordered by seq within an incarnation', () => {
    const s = new Scheduler().given(joined('n0'));
    s.nodeReports('n0', 'new', { seq: 9 });
    expect(s.nodeReports('n0', 'old', { seq: 8 })).toEqual([]);
  });

  it('about progress cause no fact', () => {
    const s = fleetOf('n0');
    expect(s.when(s.message('n0', 'old', { kind: 'progress', step: 'probing' }))).toEqual([]);
  });

  it('of a node that is not restored keep it unavailable until it is', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { maxFailures: 2 });
    expect(grants(s.leaseEnds('n0', 'failed', { restored: false }))).toEqual([]);
    expect(s.unavailable('default')).toEqual(['n0']);
    expect(grants(s.nodeReports('n0', 'old', { lease: 'n0-l1', verdict: 'failed', restored: true }))).toEqual([
      'n1 forward c1-new',
    ]);
  });

  it('count even before the node has joined', () => {
    const s = new Scheduler();
    s.nodeReports('n0', 'mine');
    s.given(
      joined('n0'),
      factOf('node.rendered', { node: 'n0', hash: 'old', recipe: 'r' }),
      factOf('node.reviewed', { node: 'n0', hash: 'old', compatible: true }),
    );
    expect(grants(s.when())).toEqual(['n0 join old']);
  });
});
