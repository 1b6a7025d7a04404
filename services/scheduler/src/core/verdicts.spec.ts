import { accepted, committed, pool, renderedChange, validated } from '#libs/testing';
import { DRAIN, grants, leading, deferred, Scheduler, types } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);

describe('a report', () => {
  it('that names a draining lease, or does not name the lease, settles nothing', () => {
    const s = fleetOf('n0');
    s.actions = DRAIN;
    s.rolls('c1', ['n0']);
    expect(types(s.leaseEnds('n0', 'failed'))).toEqual(['node.reported']);
    const other = fleetOf('n0');
    other.rolls('c1', ['n0']);
    expect(types(other.nodeReports('n0', 'old', { lease: 'n0-l1', verdict: '' }))).toEqual(['node.reported']);
  });

  it('that only ends its lease becomes part of that fact; an announcement that ends it is a separate fact before it', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    const [settled] = s.leaseEnds('n0', 'applied', { hash: 'c1-new', seq: 50 });
    expect(settled).toMatchObject({
      type: 'node.lease.settled',
      because: 'applied',
      report: { seq: 50, hash: '', verdict: '', bootId: '' },
    });
    expect(s.status('n0')).toMatchObject({ seq: 50, hash: 'c1-new', lease: 'n0-l1', verdict: 'applied' });
    const facts = s.leaseEnds('n1', 'applied', { kind: 'announced', hash: 'c1-new', seq: 60, bootId: 'b2' });
    expect(facts.slice(0, 2)).toEqual([
      expect.objectContaining({ type: 'node.reported', report: 'announced', seq: 60, bootId: 'b2' }),
      expect.not.objectContaining({ report: expect.anything() as unknown }),
    ]);
    expect(s.status('n1')).toMatchObject({ seq: 60, hash: 'c1-new', verdict: 'applied' });
  });

  it('that succeeded in another way than planned keeps its reason', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    expect(
      s.leaseEnds('n0', 'applied', {
        hash: 'c1-new',
        reason: 'reload frr.service failed; the machine was restarted instead',
      })[0],
    ).toMatchObject({ because: 'applied', reason: expect.stringMatching(/restarted instead/) as string });
    expect(s.status('n0')).toMatchObject({
      verdict: 'applied',
      reason: 'reload frr.service failed; the machine was restarted instead',
    });
  });

  it('that refuses a corrective lease does not defer it, and the lease is planned again at once', () => {
    const s = fleetOf('n0');
    s.nodeReports('n0', 'strange');
    const facts = s.leaseEnds('n0', 'refused', { hash: 'stranger' });
    expect([deferred(facts), grants(facts)]).toEqual([[], ['n0 corrective old']]);
    expect(s.lease('n0').from).toBe('stranger');
  });

  it('without a verdict says which config the node has, and with a bad one only if it names it', () => {
    const s = fleetOf('n0');
    s.nodeReports('n0', 'old', { restored: false });
    expect(s.status('n0').restored).toBe(true);
    s.nodeReports('n0', 'old', { verdict: 'applied', restored: false });
    expect(s.status('n0').restored).toBe(true);
    s.nodeReports('n0', 'old', { verdict: 'refused', restored: false });
    expect([s.status('n0').restored, s.unavailable('default')]).toEqual([false, ['n0']]);
  });
});

describe('an invalid report', () => {
  it('does not affect another rollout if the node already has that config there, or has left it', () => {
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
    s.leaseEnds('a0', 'invalid');
    expect([s.rollout('c1').phase, s.rollout('c2').phase]).toEqual(['reverting', 'rolling']);
    s.applies('b1');
    expect(s.rollout('c2').phase).toBe('complete');
  });

  it('in a rollout that is already reverting still fails the others', () => {
    const s = new Scheduler().given(
      accepted('c9', { apply: [pool('a', 2), pool('b', 1)] }),
      renderedChange('c9', {}),
      validated('c9'),
    );
    s.when();
    s.given(committed('c9')).fleet(['a0', 'a1'], { role: 'a' }).fleet(['b0'], { role: 'b' });
    s.rolls('c1', ['a0', 'a1'], { to: 'same' });
    s.rolls('c2', ['b0'], { to: 'same' });
    s.leaseEnds('a0', 'failed');
    expect(types(s.leaseEnds('a1', 'invalid'))).toEqual(
      expect.arrayContaining(['rollout.failed', 'rollout.reverting']),
    );
    expect(s.rollout('c2')).toMatchObject({
      phase: 'reverting',
      reason: 'a1 in c1 reported its config as invalid: it is invalid',
    });
  });
});
