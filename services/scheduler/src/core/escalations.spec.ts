import type { Action } from '#libs/contracts';
import { ended, factOf, joined, left, renderedNode, reviewedNode } from '#libs/testing';
import { DRAIN, grants, MINUTE, NONE, deferred, Scheduler, settledAs } from './scheduler.fixture.js';

const drained = (node: string, lease: string) => factOf('node.drained', { node, lease, pool: 'default' });
const uncordoned = (node: string, lease: string) => factOf('node.uncordoned', { node, lease, pool: 'default' });
const RESTART: readonly Action[] = [{ kind: 'restart', unit: 'x.service' }];

/** A rollout to n0 and n1, one after another, that restarts a unit. */
function rolling(): Scheduler {
  const s = new Scheduler().fleet(['n0', 'n1']);
  s.actions = RESTART;
  s.rolls('c1', ['n0', 'n1']);
  return s;
}

describe('a node whose actions failed and need a reboot', () => {
  it('has not failed: its next lease drains and reboots it, before any other node gets a lease', () => {
    const s = rolling();
    const facts = s.leaseEnds('n0', 'failed', { needsRestart: true, reason: 'action restart x.service: timed out' });
    expect([settledAs(facts), deferred(facts), grants(facts)]).toEqual([['n0 escalated'], [], ['n0 forward c1-new']]);
    expect(s.lease('n0')).toMatchObject({
      lease: 'n0-l2',
      phase: 'draining',
      actions: DRAIN,
      from: 'old',
      hash: 'c1-new',
    });
    expect([s.rollout('c1').phase, s.rollout('c1').failed]).toEqual(['rolling', 0]);
    expect(s.status('n0')).toMatchObject({ verdict: 'failed', reason: 'action restart x.service: timed out' });
  });

  it('uses the planned actions again after that lease', () => {
    const s = rolling();
    s.leaseEnds('n0', 'failed', { needsRestart: true });
    s.given(drained('n0', 'n0-l2')).when();
    s.applies('n0');
    s.given(uncordoned('n0', 'n0-l2')).when();
    expect(s.lease('n1')).toMatchObject({ phase: 'applying', actions: RESTART });
    s.applies('n1');
    expect(s.rollout('c1').phase).toBe('complete');
  });

  it('has failed if it asks for what its lease already had', () => {
    const s = rolling();
    s.leaseEnds('n0', 'failed', { needsRestart: true });
    s.given(drained('n0', 'n0-l2')).when();
    const facts = s.leaseEnds('n0', 'failed', { needsRestart: true, reason: 'it does not come up' });
    expect(settledAs(facts)).toEqual(['n0 failed']);
    expect(s.rollout('c1')).toMatchObject({ phase: 'reverted', failed: 1 });
  });

  it('needs no further unit if its rollback failed', () => {
    const s = rolling();
    s.leaseEnds('n0', 'failed', { needsRestart: true, restored: false });
    expect([s.unavailable('default'), s.lease('n0').lease, s.atWork()]).toEqual([['n0'], 'n0-l2', ['n0']]);
  });

  it('is not rebooted for another config', () => {
    const s = rolling();
    s.pauses('c1');
    s.leaseEnds('n0', 'failed', { needsRestart: true });
    expect(s.atWork()).toEqual([]);
    s.aborts('c1');
    s.rolls('c2', ['n0']);
    expect(s.lease('n0')).toMatchObject({ hash: 'c2-new', phase: 'applying', actions: RESTART });
  });

  it('waits during a pause, and says so', () => {
    const s = rolling();
    s.pauses('c1');
    s.leaseEnds('n0', 'failed', { needsRestart: true });
    expect(s.why('n0').because).toBe('paused');
    expect(grants(s.resumes('c1'))).toEqual(['n0 forward c1-new']);
    expect(s.lease('n0').actions).toEqual(DRAIN);
  });

  it.each([
    [
      'during its rollback',
      'rollback',
      (s: Scheduler) => {
        s.aborts('c1');
        s.applies('n0');
      },
    ],
    [
      'outside a rollout',
      'corrective',
      (s: Scheduler) => {
        s.aborts('c1');
        s.leaseEnds('n0', 'refused');
        s.nodeReports('n0', 'strange');
      },
    ],
  ])('is also rebooted %s', (_, kind, lead) => {
    const s = rolling();
    lead(s);
    expect(s.lease('n0')).toMatchObject({ kind, phase: 'applying' });
    expect(deferred(s.leaseEnds('n0', 'failed', { needsRestart: true, hash: s.lease('n0').from }))).toEqual([]);
    expect(s.lease('n0')).toMatchObject({ kind, hash: 'old', phase: 'draining', actions: DRAIN });
  });

  it('joins normally if it was removed since', () => {
    const s = rolling();
    s.pauses('c1');
    s.leaseEnds('n0', 'failed', { needsRestart: true });
    s.aborts('c1');
    s.given(left('n0'), joined('n0'), renderedNode('n0', 'c1-new'), reviewedNode('n0', 'c1-new'));
    s.nodeReports('n0', 'old', { incarnation: 9 });
    expect(s.lease('n0')).toMatchObject({ kind: 'join', hash: 'c1-new', phase: 'applying', actions: RESTART });
  });

  it('is not rebooted for what its rollout has left behind, or if nothing is left to do', () => {
    const s = rolling();
    s.pauses('c1');
    s.leaseEnds('n0', 'failed', { needsRestart: true });
    s.actions = NONE;
    s.resumes('c1');
    expect(s.lease('n0')).toMatchObject({ phase: 'applying', actions: NONE });
    const other = rolling();
    other.pauses('c1');
    other.leaseEnds('n0', 'failed', { needsRestart: true });
    other.aborts('c1');
    other.given(ended('c1', 'aborted'));
    other.rolls('c2', ['n0'], { to: 'c1-new' });
    expect(other.lease('n0')).toMatchObject({ change: 'c2', phase: 'applying', actions: RESTART });
  });

  it('is shown as troubled, and as degraded whatever it waits for', () => {
    const s = rolling();
    s.pauses('c1');
    s.leaseEnds('n0', 'failed', { needsRestart: true, restored: false, reason: 'action restart x.service: timed out' });
    expect(s.view('rollouts', 'c1').worst).toMatchObject([
      { node: 'n0', state: 'escalated', reason: 'action restart x.service: timed out' },
    ]);
    expect(s.why('n0')).toMatchObject({
      because: 'paused',
      text: 'c1 is paused by me; degraded: rollback failed: action restart x.service: timed out',
    });
  });
});

describe('reboots outside a rollout', () => {
  /** A node with a wrong config gets its config with a reboot, and fails this many times in a row. */
  function failing(times: number): Scheduler {
    const s = new Scheduler().fleet(['n0']);
    s.actions = DRAIN;
    s.nodeReports('n0', 'strange');
    for (let i = 1; i <= times; i++) {
      const { lease } = s.lease('n0');
      s.given(drained('n0', lease)).when();
      s.leaseEnds('n0', 'failed', { hash: 'strange', bootId: `boot-${i}`, reason: 'it does not come up' });
      s.given(uncordoned('n0', lease)).when();
      if (i < times) s.after(75 * MINUTE);
    }
    return s;
  }

  it('stop after three failures, and a manual reboot allows one more try', () => {
    const s = failing(3);
    expect(s.why('n0')).toMatchObject({
      because: 'given-up',
      text: 'the machine was restarted 3 times without success; the last time: it does not come up; it is tried again when its config or labels change, or when the machine is rebooted',
    });
    expect([s.after(24 * 60 * MINUTE), s.lease('n0').phase]).toEqual([[], 'released']);
    s.nodeReports('n0', 'strange', { bootId: 'by hand' });
    const { lease } = s.lease('n0');
    s.given(drained('n0', lease)).when();
    s.leaseEnds('n0', 'failed', { hash: 'strange', bootId: 'b9' });
    s.given(uncordoned('n0', lease)).when();
    expect(s.why('n0').because).toBe('given-up');
    s.given(renderedNode('n0', 'other'), reviewedNode('n0', 'other')).when();
    expect(s.lease('n0')).toMatchObject({ hash: 'other', phase: 'draining' });
  });

  it('do not count if the machine was asked to reboot, but did not', () => {
    const s = new Scheduler().fleet(['n0']);
    s.actions = DRAIN;
    s.nodeReports('n0', 'strange');
    for (let i = 0; i < 5; i++) {
      const { lease } = s.lease('n0');
      s.given(drained('n0', lease)).when();
      s.leaseEnds('n0', 'failed', { hash: 'strange', reason: 'it does not go down' });
      s.given(uncordoned('n0', lease)).when();
      expect(s.why('n0').because).toBe('backing-off');
      s.after(75 * MINUTE);
    }
  });

  it('do not stop before that, and failed drains do not count', () => {
    expect(failing(2).why('n0').because).toBe('backing-off');
    const s = new Scheduler().fleet(['n0']);
    s.actions = DRAIN;
    s.nodeReports('n0', 'strange');
    for (let i = 0; i < 5; i++) {
      const { lease } = s.lease('n0');
      s.given(
        factOf('node.drain.stopped', { node: 'n0', lease, pool: 'default', outcome: 'failed', reason: 'a budget' }),
      ).when();
      s.given(uncordoned('n0', lease)).when();
      expect(s.why('n0').because).toBe('backing-off');
      s.after(75 * MINUTE);
    }
    expect(s.lease('n0').phase).toBe('draining');
  });
});
