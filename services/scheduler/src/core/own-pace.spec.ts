import { accepted, committed, pool, renderedChange, validated } from '#libs/testing';
import { grants, PAST_DEADLINE, Scheduler, types } from './scheduler.fixture.js';

const NODES = ['a0', 'a1', 'a2', 'b0', 'b1', 'b2'];

/** Two pools of three nodes; all of them may change at once. */
const pools = (budget: number | string = '100%'): Scheduler => {
  const s = new Scheduler();
  s.given(accepted('c9', { apply: [pool('a', budget), pool('b', budget)] }), renderedChange('c9', {}), validated('c9'));
  s.when();
  s.given(committed('c9')).when();
  return s.fleet(['a0', 'a1', 'a2'], { role: 'a' }).fleet(['b0', 'b1', 'b2'], { role: 'b' });
};

describe('the maxUnavailable of a change', () => {
  it.each([
    [undefined, 6],
    ['1', 1],
    ['4', 4],
    ['9', 6],
    ['1%', 1], // never less than one
    ['49%', 2], // rounded down
    ['100%', 6],
  ])('%s of six nodes in two pools lets %i change at once', (maxUnavailable, expected) => {
    const strategy = maxUnavailable === undefined ? {} : { maxUnavailable };
    expect(grants(pools().rolls('c1', NODES, strategy))).toHaveLength(expected);
  });

  it('does not exceed the budget of a pool', () => {
    expect(grants(pools(1).rolls('c1', NODES, { maxUnavailable: '100%' }))).toEqual([
      'a0 forward c1-new',
      'b0 forward c1-new',
    ]);
  });

  it('lets the next node start when one is done, in whichever pool, until all are', () => {
    const s = pools();
    const order = [...grants(s.rolls('c1', NODES, { maxUnavailable: '1' }))];
    while (s.atWork().length > 0) {
      expect(s.atWork()).toHaveLength(1);
      order.push(...grants(s.applies(...s.atWork())));
    }
    expect(order.map((grant) => grant.split(' ')[0])).toEqual(NODES);
    expect(s.rollout('c1').phase).toBe('complete');
  });

  it('leaves the units of the pool to other changes', () => {
    const s = pools();
    s.rolls('c1', ['a0', 'a1'], { maxUnavailable: '1' });
    expect(grants(s.rolls('c2', ['a2']))).toEqual(['a2 forward c2-new']);
  });

  it('also counts nodes that are already unavailable', () => {
    const s = pools();
    s.asks({ op: 'pool.take', node: 'b0', owner: 'fw', reason: '', by: 'me' });
    s.rolls('c1', ['a0', 'b0'], { maxUnavailable: '1' });
    expect(grants(s.asks({ op: 'pool.give', node: 'b0', owner: 'fw', by: 'me' }))).toEqual([]);
  });

  it('does not slow down a rollback', () => {
    const s = pools();
    s.rolls('c1', NODES, { maxUnavailable: '1' });
    for (const node of ['a0', 'a1', 'a2']) s.applies(node);
    s.aborts('c1');
    expect(s.atWork()).toEqual(['a0', 'a1', 'a2', 'b0']);
    s.applies('b0');
    expect(s.atWork()).toEqual(['a0', 'a1', 'a2', 'b0']);
  });

  it('is the reason that a node waits, and that a rollout stalls', () => {
    const s = pools();
    s.rolls('c1', NODES, { maxUnavailable: '1', maxFailures: 3 });
    expect(s.why('b1')).toMatchObject({
      because: 'budget',
      text: 'c1 changes at most 1 node at once (its maxUnavailable): a0',
      holders: ['a0'],
    });
    s.after(PAST_DEADLINE);
    expect(s.view('rollouts', 'c1')).toMatchObject({ unknown: 1, maxUnavailable: 1, stalledBy: ['a0'] });
    expect(types(s.skips('a0'))).not.toContain('rollout.stalled');
    expect(grants(s.after(PAST_DEADLINE))).toEqual(['a1 forward c1-new']);
    expect(s.view('rollouts', 'c1').stalledBy).toEqual([]);
  });
});
