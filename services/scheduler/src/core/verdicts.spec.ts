import { accepted, committed, pool, renderedChange, validated } from '#libs/testing';
import { DRAIN, grants, leading, deferred, Scheduler, types } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);

describe('an answer', () => {
  it('that names a lease which still drains, or says nothing of it, settles nothing', () => {
    const s = fleetOf('n0');
    s.actions = DRAIN;
    s.rolls('c1', ['n0']);
    expect(types(s.answers_('n0', 'failed'))).toEqual(['node.reported']);
    const other = fleetOf('n0');
    other.rolls('c1', ['n0']);
    expect(types(other.reports_('n0', 'old', { lease: 'n0-l1', verdict: '' }))).toEqual(['node.reported']);
  });

  it('that says nothing but how its lease ended is a part of that fact; an announcement that ends it stands before it', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    const [settled] = s.answers_('n0', 'applied', { hash: 'c1-new', seq: 50 });
    expect(settled).toMatchObject({
      type: 'node.lease.settled',
      because: 'applied',
      report: { seq: 50, hash: '', verdict: '', bootId: '' },
    });
    expect(s.status('n0')).toMatchObject({ seq: 50, hash: 'c1-new', lease: 'n0-l1', verdict: 'applied' });
    const facts = s.answers_('n1', 'applied', { kind: 'announced', hash: 'c1-new', seq: 60, bootId: 'b2' });
    expect(facts.slice(0, 2)).toEqual([
      expect.objectContaining({ type: 'node.reported', report: 'announced', seq: 60, bootId: 'b2' }),
      expect.not.objectContaining({ report: expect.anything() as unknown }),
    ]);
    expect(s.status('n1')).toMatchObject({ seq: 60, hash: 'c1-new', verdict: 'applied' });
  });

  it('that went well in another way than planned keeps what it says of that', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    expect(
      s.answers_('n0', 'applied', {
        hash: 'c1-new',
        reason: 'reload frr.service failed; the machine was restarted instead',
      })[0],
    ).toMatchObject({ because: 'applied', reason: expect.stringMatching(/restarted instead/) as string });
    expect(s.status('n0')).toMatchObject({
      verdict: 'applied',
      reason: 'reload frr.service failed; the machine was restarted instead',
    });
  });

  it('of a corrective lease that is refused is not deferred and planned again at once', () => {
    const s = fleetOf('n0');
    s.reports_('n0', 'strange');
    const said = s.answers_('n0', 'refused', { hash: 'stranger' });
    expect([deferred(said), grants(said)]).toEqual([[], ['n0 corrective old']]);
    expect(s.lease('n0').from).toBe('stranger');
  });

  it('without a verdict says that the node is on what it has; with a bad one only if that says so', () => {
    const s = fleetOf('n0');
    s.reports_('n0', 'old', { restored: false });
    expect(s.status('n0').restored).toBe(true);
    s.reports_('n0', 'old', { verdict: 'applied', restored: false });
    expect(s.status('n0').restored).toBe(true);
    s.reports_('n0', 'old', { verdict: 'refused', restored: false });
    expect([s.status('n0').restored, s.unavailable('default')]).toEqual([false, ['n0']]);
  });
});

describe('an invalid', () => {
  it('turns no other rollout that has that config on the node already, or from which the node has left', () => {
    const s = new Scheduler().given(
      accepted('c9', { apply: [pool('a', 1), pool('b', 1), pool('c', 1)] }),
      renderedChange('c9', {}),
      validated('c9'),
    );
    s.when();
    s.given(committed('c9')).fleet(['a0'], { role: 'a' }).fleet(['b0', 'b1'], { role: 'b' });
    s.rolls('c1', ['a0'], { to: 'same' });
    s.reviewed('c2', ['b0', 'b1'], { to: 'mine' })
      .given(
        renderedChange('c2', { ...leading(['b0'], 'old', 'same'), ...leading(['b1'], 'old', 'mine') }, { attempt: 2 }),
        validated('c2', 2),
      )
      .when();
    s.applies('b0');
    s.answers_('a0', 'invalid');
    expect([s.rollout('c1').phase, s.rollout('c2').phase]).toEqual(['reverting', 'rolling']);
    s.applies('b1');
    expect(s.rollout('c2').phase).toBe('complete');
  });

  it('of a rollout that is rolled back already turns the others all the same', () => {
    const s = new Scheduler().given(
      accepted('c9', { apply: [pool('a', 2), pool('b', 1)] }),
      renderedChange('c9', {}),
      validated('c9'),
    );
    s.when();
    s.given(committed('c9')).fleet(['a0', 'a1'], { role: 'a' }).fleet(['b0'], { role: 'b' });
    s.rolls('c1', ['a0', 'a1'], { to: 'same' });
    s.rolls('c2', ['b0'], { to: 'same' });
    s.answers_('a0', 'failed');
    expect(types(s.answers_('a1', 'invalid'))).toEqual(expect.arrayContaining(['rollout.failed', 'rollout.reverting']));
    expect(s.rollout('c2')).toMatchObject({
      phase: 'reverting',
      reason: 'a1 in c1 reported its config as invalid: it is invalid',
    });
  });
});
