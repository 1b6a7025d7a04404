import { factOf } from '#libs/testing';
import { grants, MINUTE, PAST_DEADLINE, Scheduler, settledAs } from './scheduler.fixture.js';

const rolling = (): Scheduler => {
  const s = new Scheduler().fleet(['n0', 'n1']);
  s.rolls('c1', ['n0', 'n1']);
  return s;
};

describe('after an outage of NATS that was longer than a lease', () => {
  it('a node is not unknown if it reports in time for a repeated report', () => {
    const s = rolling();
    s.nowMs += 60 * MINUTE;
    s.leadingSinceMs = s.nowMs;
    expect(s.after(MINUTE - 1)).toEqual([]);
    expect(settledAs(s.applies('n0'))).toEqual(['n0 applied']);
    expect(s.atWork()).toEqual(['n1']);
  });

  it('a node is unknown when that time is over', () => {
    const s = rolling();
    s.nowMs += 60 * MINUTE;
    s.leadingSinceMs = s.nowMs;
    expect(s.decide().wakeAtMs).toBe(s.nowMs + MINUTE);
    expect(settledAs(s.after(MINUTE))).toEqual(['n0 unknown']);
  });

  it('a node is not unknown before REPORTS is read up to its end at that time', () => {
    const s = rolling();
    s.unread = 2;
    expect(s.after(PAST_DEADLINE)).toEqual([]);
    s.unread = 0;
    // More reports arrive than are read, which does not matter.
    expect(settledAs(s.nodeReports('n1', 'old'))).toEqual([]);
    s.unread = 7;
    expect(settledAs(s.nodeReports('n1', 'old'))).toEqual(['n0 unknown']);
  });

  it('a node is not unknown if its report is among those', () => {
    const s = rolling();
    s.unread = 1;
    expect(s.after(PAST_DEADLINE)).toEqual([]);
    s.unread = 0;
    expect(settledAs(s.applies('n0'))).toEqual(['n0 applied']);
  });

  it('an unreadable report delays it for five minutes at most', () => {
    const s = rolling();
    s.unread = 1;
    expect(s.after(PAST_DEADLINE)).toEqual([]);
    expect(s.after(5 * MINUTE - 2)).toEqual([]);
    expect(settledAs(s.after(1))).toEqual(['n0 unknown']);
  });

  it('no lease is unknown to a copy that does not lead', () => {
    const s = rolling();
    s.leadingSinceMs = undefined;
    expect(s.after(60 * MINUTE)).toEqual([]);
  });
});

describe('nodes that are already unavailable', () => {
  const out = (): Scheduler => {
    const names = ['n0', 'n1', 'n2'];
    const s = new Scheduler().fleet(names);
    for (const node of names) s.given(factOf('node.unavailable', { node, because: 'NotReady' }));
    return s;
  };

  it('change no more at once than the budget allows', () => {
    const s = out();
    expect(grants(s.rolls('c1', ['n0', 'n1', 'n2']))).toEqual(['n0 forward c1-new']);
    expect(s.why('n1')).toMatchObject({ because: 'budget', holders: ['n0'] });
    expect(grants(s.applies('n0'))).toEqual(['n1 forward c1-new']);
    expect(grants(s.applies('n1'))).toEqual(['n2 forward c1-new']);
  });

  it('are also not retried more at once than that', () => {
    const s = out();
    for (const node of ['n0', 'n1', 'n2']) {
      expect(grants(s.nodeReports(node, 'strange'))).toEqual([`${node} corrective old`]);
      s.leaseEnds(node, 'failed');
    }
    expect(grants(s.after(MINUTE))).toEqual(['n0 corrective old']);
    expect(grants(s.applies('n0'))).toEqual(['n1 corrective old']);
  });
});
