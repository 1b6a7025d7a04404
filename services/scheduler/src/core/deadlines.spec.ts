import { silent } from '#libs/testing';
import { DRAIN, grants, MINUTE, Scheduler, settledAs } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);

describe('time', () => {
  it('schedules the next decision for the first deadline of leases, drains, releases and tries', () => {
    const ready = fleetOf('n0');
    ready.rolls('c1', ['n0']);
    const granted = ready.nowMs;
    ready.nowMs += 1;
    expect(ready.decide().wakeAtMs).toBe(granted + 2 * MINUTE);
    const draining = fleetOf('n0');
    draining.actions = DRAIN;
    draining.rolls('c1', ['n0']);
    expect(draining.decide().wakeAtMs).toBe(draining.nowMs + 10 * MINUTE);
    const skipped = fleetOf('n0');
    skipped.rolls('c1', ['n0']);
    skipped.skips('n0');
    expect(skipped.decide().wakeAtMs).toBe(skipped.nowMs + 2 * MINUTE);
    const failed = fleetOf('n0');
    failed.nodeReports('n0', 'strange');
    failed.leaseEnds('n0', 'failed');
    expect(failed.decide().wakeAtMs).toBe(failed.nowMs + MINUTE);
    expect(fleetOf('n0').decide().wakeAtMs).toBeUndefined();
  });

  it('grants to nodes that have waited longest first, and then by name', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    for (const [node, wait] of [
      ['n2', 1_000],
      ['n1', 0],
      ['n0', 1_000],
    ] as const) {
      s.nodeReports(node, 'strange');
      s.leaseEnds(node, 'failed');
      s.nowMs += wait;
    }
    s.nowMs += 2 * MINUTE;
    const order: string[] = [];
    for (let i = 0; i < 3; i++) {
      s.when();
      const [node] = s.atWork();
      order.push(node ?? '');
      s.applies(node ?? '');
    }
    expect(order).toEqual(['n2', 'n0', 'n1']);
  });

  it('grants no further try to a silent node, nor one that needs a unit which is not free', () => {
    const s = fleetOf('n0', 'n1');
    s.nodeReports('n0', 'strange');
    s.leaseEnds('n0', 'failed');
    s.given(silent('n0'));
    expect(s.decide().wakeAtMs).toBeUndefined();
    expect(grants(s.after(MINUTE))).toEqual([]);
    const other = fleetOf('n0', 'n1');
    other.nodeReports('n0', 'strange');
    other.leaseEnds('n0', 'failed');
    other.given(silent('n1'));
    expect(grants(other.after(MINUTE))).toEqual([]);
    // It is unavailable itself, and needs none.
    expect(grants(other.nodeReports('n0', 'strange', { verdict: 'failed', restored: false }))).toEqual([
      'n0 corrective old',
    ]);
  });
});

describe('a corrective lease with a drain', () => {
  it('is not cancelled because there is no rollout', () => {
    const s = fleetOf('n0');
    s.actions = DRAIN;
    s.nodeReports('n0', 'strange');
    expect(s.after(MINUTE)).toEqual([]);
    expect(s.lease('n0')).toMatchObject({ phase: 'draining', change: '' });
    expect(settledAs(s.after(9 * MINUTE))).toEqual(['n0 failed']);
  });
});

describe('a rollback with a drain', () => {
  it('is not cancelled while its rollout is reverting', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.actions = DRAIN;
    expect(grants(s.leaseEnds('n1', 'failed'))).toEqual(['n0 rollback old']);
    expect(s.after(MINUTE)).toEqual([]);
    expect(s.lease('n0').phase).toBe('draining');
  });
});
