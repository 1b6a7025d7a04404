import type { Action } from '#libs/contracts';
import { factOf } from '#libs/testing';
import { DRAIN, grants, owed, Scheduler, settledAs } from './scheduler.fixture.js';

const drained = (node: string, lease: string) => factOf('node.drained', { node, lease, pool: 'default' });
const uncordoned = (node: string, lease: string) => factOf('node.uncordoned', { node, lease, pool: 'default' });
const RESTART: readonly Action[] = [{ kind: 'restart', unit: 'x.service' }];

/** A rollout to n0 and n1, one after the other, whose nodes are to have a unit restarted. */
function rolling(): Scheduler {
  const s = new Scheduler().fleet(['n0', 'n1']);
  s.actions = RESTART;
  s.rolls('c1', ['n0', 'n1']);
  return s;
}

describe('a node whose actions failed for want of a restart', () => {
  it('is not failed: its next lease drains it and restarts it, before any other node\'s', () => {
    const s = rolling();
    const facts = s.answers_('n0', 'failed', { needsRestart: true, reason: 'action restart x.service: timed out' });
    expect([settledAs(facts), owed(facts), grants(facts)]).toEqual([['n0 escalated'], [], ['n0 forward c1-new']]);
    expect(s.lease('n0')).toMatchObject({ lease: 'n0-l2', phase: 'draining', actions: DRAIN, from: 'old', hash: 'c1-new' });
    expect([s.rollout('c1').phase, s.rollout('c1').failed]).toEqual(['rolling', 0]);
    expect(s.status('n0')).toMatchObject({ verdict: 'failed', reason: 'action restart x.service: timed out' });
  });

  it('goes on with what it was planned for once that lease is over', () => {
    const s = rolling();
    s.answers_('n0', 'failed', { needsRestart: true });
    s.given(drained('n0', 'n0-l2')).when();
    s.applies('n0');
    s.given(uncordoned('n0', 'n0-l2')).when();
    expect(s.lease('n1')).toMatchObject({ phase: 'ready', actions: RESTART });
    s.applies('n1');
    expect(s.rollout('c1').phase).toBe('complete');
  });

  it('has failed when it asks for what its lease gave', () => {
    const s = rolling();
    s.answers_('n0', 'failed', { needsRestart: true });
    s.given(drained('n0', 'n0-l2')).when();
    const facts = s.answers_('n0', 'failed', { needsRestart: true, reason: 'it does not come up' });
    expect(settledAs(facts)).toEqual(['n0 failed']);
    expect(s.rollout('c1')).toMatchObject({ phase: 'reverted', failed: 1 });
  });

  it('needs no unit more where it did not come back', () => {
    const s = rolling();
    s.answers_('n0', 'failed', { needsRestart: true, restored: false });
    expect([s.unavailable('default'), s.lease('n0').lease, s.atWork()]).toEqual([['n0'], 'n0-l2', ['n0']]);
  });

  it('gets no restart for another config', () => {
    const s = rolling();
    s.pauses('c1');
    s.answers_('n0', 'failed', { needsRestart: true });
    expect(s.atWork()).toEqual([]);
    s.aborts('c1');
    s.rolls('c2', ['n0']);
    expect(s.lease('n0')).toMatchObject({ hash: 'c2-new', phase: 'ready', actions: RESTART });
  });

  it('waits with it for a paused rollout, and says that', () => {
    const s = rolling();
    s.pauses('c1');
    s.answers_('n0', 'failed', { needsRestart: true });
    expect(s.why('n0').because).toBe('paused');
    expect(grants(s.resumes('c1'))).toEqual(['n0 forward c1-new']);
    expect(s.lease('n0').actions).toEqual(DRAIN);
  });

  it.each([
    ['on its way back', 'back', (s: Scheduler) => { s.aborts('c1'); s.applies('n0'); }],
    ['outside a rollout', 'corrective', (s: Scheduler) => { s.aborts('c1'); s.answers_('n0', 'refused'); s.reports_('n0', 'strange'); }],
  ])('is restarted %s as well', (_, kind, lead) => {
    const s = rolling();
    lead(s);
    expect(s.lease('n0')).toMatchObject({ kind, phase: 'ready' });
    expect(owed(s.answers_('n0', 'failed', { needsRestart: true, hash: s.lease('n0').from }))).toEqual([]);
    expect(s.lease('n0')).toMatchObject({ kind, hash: 'old', phase: 'draining', actions: DRAIN });
  });
});
