import { factOf, silent } from '#libs/testing';
import { grants, PAST_DEADLINE, Scheduler, types } from './scheduler.fixture.js';

const ALL = ['n0', 'n1', 'n2', 'n3'] as const;
/** Not a target of the change. */
const OTHER = 'other';

/** A pool with one unit. All nodes except `n3` have the change. The applier of `n3` died while it applied it. */
function failed(): Scheduler {
  const s = new Scheduler().fleet([...ALL, OTHER]);
  s.rolls('c1', ALL);
  s.applies('n0');
  s.applies('n1');
  s.applies('n2');
  expect(s.atWork()).toEqual(['n3']);
  return s;
}

describe('while a dead node holds the unit of its pool', () => {
  it('the others roll back one at a time, and the rollout ends', () => {
    const s = failed();
    const facts = s.after(PAST_DEADLINE);
    expect(types(facts)).toEqual(expect.arrayContaining(['node.unknown', 'rollout.failed', 'rollout.reverting']));
    expect(grants(facts)).toEqual(['n0 rollback old']);
    expect(s.why('n1')).toMatchObject({ because: 'budget', holders: ['n0', 'n3'] });
    expect(grants(s.when())).toEqual([]);
    expect(grants(s.applies('n0'))).toEqual(['n1 rollback old']);
    expect(grants(s.applies('n1'))).toEqual(['n2 rollback old']);
    expect(s.rollout('c1').stalledBy).toEqual([]);
    expect(types(s.applies('n2'))).toContain('rollout.reverted');
    expect(s.unavailable('default')).toEqual(['n3']);
  });

  it('the others also roll back if several nodes are silent', () => {
    const s = failed().given(silent(OTHER));
    expect(grants(s.after(PAST_DEADLINE))).toEqual(['n0 rollback old']);
    expect(s.unavailable('default')).toEqual(['n0', 'n3', OTHER]);
    expect(grants(s.applies('n0'))).toEqual(['n1 rollback old']);
  });

  it('only a rollback may exceed the budget', () => {
    const s = failed();
    s.after(PAST_DEADLINE);
    for (const node of ['n0', 'n1', 'n2']) s.applies(node);
    expect(s.rollout('c1').phase).toBe('reverted');
    expect(grants(s.rolls('c2', [OTHER]))).toEqual([]);
    expect(s.why(OTHER)).toMatchObject({ because: 'budget', holders: ['n3'] });
  });

  it('no other node rolls back once one that did has become unknown', () => {
    const s = failed();
    expect(grants(s.after(PAST_DEADLINE))).toEqual(['n0 rollback old']);
    const facts = s.after(PAST_DEADLINE);
    expect(types(facts)).toContain('node.unknown');
    expect(grants(facts)).toEqual([]);
    expect(s.rollout('c1').stalledBy).toEqual(['n0', 'n3']);
    // Its report lets the others continue.
    expect(grants(s.leaseEnds('n0', 'applied', { hash: 'old' }))).toEqual(['n1 rollback old']);
  });

  it.each([
    ['is out of service', factOf('node.unavailable', { node: OTHER, because: 'NotReady' })],
    ['was taken by another tool', factOf('node.taken', { node: OTHER, pool: 'default', owner: 'me', forMs: 0 })],
  ])('no other node rolls back while a node that reported %s uses the unit', (_, fact) => {
    const s = failed().given(fact);
    const facts = s.after(PAST_DEADLINE);
    expect(grants(facts)).toEqual([]);
    expect(s.rollout('c1').stalledBy).toEqual(['n3', OTHER]);
  });
});
