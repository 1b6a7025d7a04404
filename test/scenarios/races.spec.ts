import { accepted, changed, file, pool, renderedChange, silent, validated } from '#libs/testing';
import { DRAIN, expectRefused, grants, Installation, PAST_DEADLINE, types } from './installation.fixture.js';

/** The numbered interleavings of two copies that broke an earlier version of the design. */
const two = () => new Installation().starts(['n0', 'n1']);
/** Facts of the other services for a rendered and reviewed change that gives this node this hash. */
const leadingTo = (change: string, node: string, hash: string) => [
  accepted(change),
  renderedChange(change, { [node]: { from: 'old', to: hash, recipe: 'other' } }),
  validated(change),
];
const motd = (content: string, role?: string) => file('motd', content, role);

describe('1: a grant and concurrent facts', () => {
  it('two copies grant the same unit: one is refused, and then sees that the unit is taken', () => {
    const i = two();
    i.publishes([motd('x')]);
    i.merger.when();
    i.validator.when();
    const other = i.newScheduler();
    const late = other.about();
    expect(grants(i.scheduler.when())).toEqual(['n0 forward']);
    expectRefused(i.ledger, late, other.folded);
    expect(grants(other.when())).toEqual([]);
  });

  it('a pause that was answered comes before every grant of the other copy', () => {
    const i = two();
    const change = i.rolls([motd('x')]);
    const other = i.newScheduler();
    const answer = i.answer('n0', 'applied');
    const late = other.about(answer);
    i.asks({ op: 'rollout.pause', change, by: 'me', reason: '' });
    expect(i.scheduler.answers).toMatchObject([{ ok: true, body: { paused: true } }]);
    expect(grants(late.facts)).toEqual(['n1 forward']);
    expectRefused(i.ledger, late, other.folded);
    expect(grants(other.when(answer))).toEqual([]);
  });
});

describe('3: a config that becomes known-bad, and concurrent grants', () => {
  it('(a) the batch that records the invalid report fails the rollout, so no copy grants a forward lease for it', () => {
    const i = new Installation().starts(['n0', 'n1', 'n2']);
    const change = i.rolls([motd('bad')]);
    const other = i.newScheduler();
    i.scheduler.when(i.answer('n0', 'invalid'));
    expect(grants(other.when())).toEqual([]);
    expect(types(i.validator.when())).toContain('config.judged');
    i.quiet();
    expect(i.rollout(change).phase).toBe('reverted');
    expect(grants(other.when())).toEqual([]);
  });

  it('(b, c) a change with the same config that was reviewed before the invalid report, and not started, is reviewed again and rejected', () => {
    const i = new Installation().starts(['a0'], { role: 'a' });
    i.rolls([file('motd', 'bad', 'a')]);
    const { hash } = i.lease('a0');
    i.starts(['b0'], { role: 'b' });
    i.scheduler.given(...leadingTo('c2', 'b0', hash));
    const facts = i.scheduler.when(i.answer('a0', 'invalid'));
    expect(types(facts)).not.toContain('rollout.started');
    expect(types(i.validator.when())).toEqual(['config.judged', 'config.rejected']);
    expect(types(i.scheduler.when())).not.toContain('rollout.started');
  });

  it('(d) a config that a completed rollout has committed is cleared', () => {
    const i = new Installation();
    i.starts(['p0'], { role: 'a' }).starts(['q0', 'q1'], { role: 'b' });
    i.commits([pool('a', 1), pool('b', 1)]);
    i.rolls([file('motd', 'same', 'a')]);
    const { hash } = i.lease('p0');
    i.scheduler.given(...leadingTo('c90', 'q0', hash)).when();
    i.scheduler.when(i.answer('p0', 'applied'));
    expect(i.rollout('c2').phase).toBe('complete');
    i.scheduler.when(i.answer('q0', 'invalid'));
    expect(i.validator.when().find((fact) => fact.type === 'config.judged')).toMatchObject({ knownBad: false });
  });
});

describe('4: a node that changes pools', () => {
  it('a grant in its old pool is refused once a copy has read the new one, and then needs the new budget', () => {
    const i = new Installation().starts(['n0'], { role: 'a' }).starts(['n1'], { role: 'b' });
    i.commits([pool('a', 1), pool('b', 1)]);
    i.publishes([motd('x')]);
    i.merger.when();
    i.validator.when();
    const other = i.newScheduler();
    const late = other.about();
    expect(grants(late.facts)).toEqual(['n0 forward', 'n1 forward']);
    i.scheduler.given(changed('n0', { role: 'b' }));
    expectRefused(i.ledger, late, other.folded);
    expect(grants(other.when()).length).toBeLessThanOrEqual(1);
  });
});

describe('5: a review names its attempt', () => {
  it('the review of a correction counts only for its first rendering', () => {
    const i = two();
    i.rolls([motd('bad')]);
    i.publishes([motd('bad'), file('more', 'x')]);
    i.validator.when(); // reviewed, attempt 1, before anything is known-bad
    i.scheduler.when(i.answer('n0', 'invalid'));
    expect(i.scheduler.state.rollouts.has('c2')).toBe(false);
    const facts = i.quiet();
    const attempts = facts.flatMap((fact) =>
      fact.type === 'config.rendered' && fact.change === 'c2' ? [fact.attempt] : [],
    );
    expect(attempts).toEqual([2]);
    const started = i.ledger.facts.find((fact) => fact.type === 'rollout.started' && fact.change === 'c2');
    expect(started).toMatchObject({ attempt: 2 });
  });

  it('is rejected if that first failure was caused by its own content', () => {
    const i = two();
    i.rolls([motd('bad')]);
    i.publishes([motd('bad')]);
    i.validator.when();
    i.scheduler.when(i.answer('n0', 'invalid'));
    i.quiet();
    expect(i.phase('c2')).toBe('rejected');
  });
});

describe('6: an abort while a forward lease is granted', () => {
  it('refuses the grant, and the rollout is reverted without a lease', () => {
    const i = two();
    const change = i.rolls([motd('x')]);
    const other = i.newScheduler();
    const answer = i.answer('n0', 'applied');
    const late = other.about(answer);
    i.asks({ op: 'rollout.abort', change, by: 'me', reason: '' });
    expectRefused(i.ledger, late, other.folded);
    expect(grants(other.when(answer))).toEqual(['n0 rollback']);
    i.answers('n0', 'applied');
    expect(i.rollout(change).phase).toBe('reverted');
    expect(i.atWork()).toEqual([]);
  });

  it('waits for a lease that was granted first', () => {
    const i = two();
    const change = i.rolls([motd('x')]);
    i.asks({ op: 'rollout.abort', change, by: 'me', reason: '' });
    expect(i.rollout(change).phase).toBe('reverting');
    expect(i.after(1_000)).toEqual([]);
    i.answers('n0', 'applied');
    expect(i.lease('n0').kind).toBe('rollback');
  });
});

describe('9: skipping a node with a live lease', () => {
  it('frees the unit only when the applier can no longer act on what it has read', () => {
    const i = two();
    const change = i.rolls([motd('x')]);
    i.scheduler.given(silent('n0'));
    i.asks({ op: 'node.skip', node: 'n0', by: 'me', reason: '' });
    expect(i.lease('n0')).toMatchObject({ phase: 'settled', because: 'skipped' });
    expect(grants(i.after(PAST_DEADLINE - 2))).toEqual([]);
    expect(grants(i.after(2))).toEqual(['n1 forward']);
    expect(i.rollout(change).deferred).toBe(1);
  });

  it('on one copy while the other grants refuses the grant', () => {
    const i = two();
    i.rolls([motd('x')]);
    const other = i.newScheduler();
    const answer = i.answer('n0', 'applied');
    const late = other.about(answer);
    i.asks({ op: 'node.skip', node: 'n1', by: 'me', reason: '' });
    expectRefused(i.ledger, late, other.folded);
    expect(grants(other.when(answer))).toEqual([]);
  });
});

describe('10: a slow drain copy', () => {
  it('that should uncordon for the first lease records nothing once there is a second', () => {
    const i = new Installation().starts(['n0']);
    i.actions = DRAIN;
    i.rolls([motd('x')]);
    i.drain.when({ type: 'request', request: { op: 'drained', node: 'n0', lease: '', evicted: 0, by: 'me' } });
    i.scheduler.when();
    i.scheduler.when(i.answer('n0', 'refused', { hash: 'mine' }));
    const slow = i.newDrain();
    const late = slow.about();
    expect(types(late.facts)).toEqual(['node.uncordoned']);
    i.quiet();
    expect(i.lease('n0')).toMatchObject({ lease: 'n0-l2', phase: 'draining' });
    expectRefused(i.ledger, late, slow.folded);
    expect(types(slow.when())).toEqual([]);
  });
});

describe('13: a superseded rollout and its grants', () => {
  it('grants nothing more, whichever copy was slow', () => {
    const i = two();
    i.rolls([motd('bad')]);
    const other = i.newScheduler();
    const answer = i.answer('n0', 'applied');
    const late = other.about(answer);
    i.rolls([motd('good')]);
    expect(i.rollout('c1')).toMatchObject({ phase: 'superseded', supersededBy: 'c2' });
    expectRefused(i.ledger, late, other.folded);
    const facts = other.when(answer);
    expect(facts.filter((fact) => fact.type === 'node.lease.granted' && fact.change === 'c1')).toEqual([]);
    i.allApply();
    expect(i.status('n0').hash).toBe(i.status('n0').desired);
    expect(i.rollout('c2').phase).toBe('succeeded');
  });
});

describe('12: two mergers that render the same attempt', () => {
  it('one of them is refused, and its rendering with other labels is never referenced', () => {
    const i = two();
    i.scheduler.given(accepted('c1', { apply: [motd('x')] }));
    const slow = i.newMerger();
    const late = slow.about();
    expect(types(late.facts)).toEqual(['config.rendered']);
    expect(types(i.merger.given(changed('n0', { zone: 'b' })).when())).toEqual(['node.rendered', 'config.rendered']);
    expectRefused(i.ledger, late, slow.folded);
    expect(types(slow.when())).toEqual([]);
    expect(i.ledger.facts.filter(({ type }) => type === 'config.rendered')).toHaveLength(1);
  });
});
