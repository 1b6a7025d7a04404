import { silent } from '#libs/testing';
import { DRAIN, grants, MINUTE, Scheduler, settledAs } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);

describe('time', () => {
  it('is asked to come again at the first of all deadlines: of leases, drains, releases and next tries', () => {
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
    failed.reports_('n0', 'strange');
    failed.answers_('n0', 'failed');
    expect(failed.decide().wakeAtMs).toBe(failed.nowMs + MINUTE);
    expect(fleetOf('n0').decide().wakeAtMs).toBeUndefined();
  });

  it('brings those who have waited longest first, and of two that have waited as long the first by name', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    for (const [node, wait] of [
      ['n2', 1_000],
      ['n1', 0],
      ['n0', 1_000],
    ] as const) {
      s.reports_(node, 'strange');
      s.answers_(node, 'failed');
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

  it('brings no next try to a node that is silent, nor one that would take a unit which is not free', () => {
    const s = fleetOf('n0', 'n1');
    s.reports_('n0', 'strange');
    s.answers_('n0', 'failed');
    s.given(silent('n0'));
    expect(s.decide().wakeAtMs).toBeUndefined();
    expect(grants(s.after(MINUTE))).toEqual([]);
    const other = fleetOf('n0', 'n1');
    other.reports_('n0', 'strange');
    other.answers_('n0', 'failed');
    other.given(silent('n1'));
    expect(grants(other.after(MINUTE))).toEqual([]);
    // It is down itself, and takes none.
    expect(grants(other.reports_('n0', 'strange', { verdict: 'failed', restored: false }))).toEqual([
      'n0 corrective old',
    ]);
  });
});

describe('a corrective lease with a drain', () => {
  it('is not cancelled for want of a rollout', () => {
    const s = fleetOf('n0');
    s.actions = DRAIN;
    s.reports_('n0', 'strange');
    expect(s.after(MINUTE)).toEqual([]);
    expect(s.lease('n0')).toMatchObject({ phase: 'draining', change: '' });
    expect(settledAs(s.after(9 * MINUTE))).toEqual(['n0 failed']);
  });
});

describe('a rollback with a drain', () => {
  it('is not cancelled while its rollout rolls back', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.actions = DRAIN;
    expect(grants(s.answers_('n1', 'failed'))).toEqual(['n0 rollback old']);
    expect(s.after(MINUTE)).toEqual([]);
    expect(s.lease('n0').phase).toBe('draining');
  });
});
