import { accepted, file, heard, pool, renderedChange, silent, validated } from '#libs/testing';
import { EMPTY, grants, Installation, MINUTE, PAST_DEADLINE, types } from './installation.fixture.js';

/** The numbered interleavings of reports and time that broke an earlier version of the design. */
const two = () => new Installation().starts(['n0', 'n1']);
const motd = (content: string, role?: string) => file('motd', content, role);

describe('2: an old report and an unknown', () => {
  it('a report that was sent before the lease was read does not settle the unknown lease', () => {
    const i = two();
    const slow = i.message('n0');
    i.rolls([motd('x')], { maxFailures: 1 });
    i.after(PAST_DEADLINE);
    expect(i.lease('n0').because).toBe('unknown');
    expect(grants(i.scheduler.when(slow))).toEqual([]);
    expect(grants(i.answers('n0', 'applied'))).toEqual(['n1 forward']);
  });
});

describe('7: unknown forever on a healthy node', () => {
  it('ends when the restarted applier announces itself with that lease', () => {
    const i = two();
    i.rolls([motd('x')], { maxFailures: 1 });
    i.after(PAST_DEADLINE);
    expect(i.status('n0').lease).toBe('');
    i.node('n0').lease = i.lease('n0').lease;
    expect(grants(i.announces('n0'))).toEqual(['n1 forward']);
    expect(i.lease('n0').phase).toBe('released');
  });
});

describe('8: a cleared hash', () => {
  it('needs no wait: `reverted` waits for the judgement', () => {
    const i = two();
    i.commits([motd('good')]);
    const { hash } = i.status('n0');
    i.node('n1').hash = 'other';
    i.announces('n1');
    // A rollout leads it to n0's config, and it reports that config as invalid.
    i.scheduler.given(
      accepted('c50'),
      renderedChange('c50', { n1: { from: 'other', to: hash, recipe: 'r' } }),
      validated('c50'),
    );
    i.answers('n1', 'failed');
    i.quiet();
    expect(i.lease('n1')).toMatchObject({ kind: 'forward', change: 'c50' });
    i.scheduler.when(i.answer('n1', 'invalid'));
    expect(i.rollout('c50').phase).toBe('reverting');
    expect(i.validator.when()).toMatchObject([{ type: 'config.judged', knownBad: false }]);
    expect(types(i.scheduler.when())).toContain('rollout.reverted');
  });

  it('that was cleared does not become known-bad again for the same lease', () => {
    const i = two();
    i.rolls([motd('bad')]);
    const { hash } = i.lease('n0');
    i.answers('n0', 'invalid');
    i.validator.when({ type: 'request', request: { op: 'clear', hash, by: 'me', reason: 'fixed' } });
    expect(types(i.newValidator().when())).toEqual([]);
    expect(types(i.quiet())).toEqual([]);
    i.rolls([motd('bad')]);
    expect(i.lease('n0')).toMatchObject({ kind: 'forward', hash, change: 'c2' });
  });
});

describe('11: incarnations', () => {
  it('an announcement from before the loss of a disk changes nothing after it', () => {
    const i = two();
    i.commits([motd('x')]);
    const slow = i.message('n0');
    i.losesItsDisk('n0');
    expect(grants(i.announces('n0'))).toEqual(['n0 corrective']);
    expect(i.status('n0')).toMatchObject({ incarnation: 2, hash: EMPTY });
    expect(i.scheduler.when(slow)).toEqual([]);
    expect(i.status('n0').hash).toBe(EMPTY);
  });
});

describe('14: results are recorded before the phase changes', () => {
  it('the report, the end of the lease and its place in the rollout are in one batch', () => {
    const i = two();
    i.rolls([motd('x')]);
    const { facts } = i.scheduler.about(i.answer('n0', 'applied'));
    expect(facts[0]).toMatchObject({
      type: 'node.lease.settled',
      because: 'applied',
      report: { incarnation: 1 },
      released: true,
    });
  });
});

describe('15: an applier with another config', () => {
  it('ends its lease as stale at once, which does not count as a failure', () => {
    const i = new Installation().starts(['n0']);
    const change = i.rolls([motd('x')]);
    i.node('n0').hash = 'mine';
    expect(grants(i.answers('n0', 'refused'))).toEqual(['n0 forward']);
    expect(i.rollout(change)).toMatchObject({ phase: 'rolling', failed: 0, unknown: 0 });
    expect(i.lease('n0')).toMatchObject({ from: 'mine', phase: 'applying' });
  });
});

describe('16: a deferred target of an open rollout', () => {
  it('waits until the rollout has ended, and then gets the new config directly', () => {
    const i = new Installation().starts(['n0', 'n1'], { role: 'edge' });
    i.commits([pool('edge', 2)]);
    i.scheduler.given(silent('n1'));
    i.rolls([motd('x')]);
    expect(i.status('n1').deferred).toBe('silent');
    expect(grants(i.scheduler.given(heard('n1')).when())).toEqual([]);
    expect(grants(i.answers('n0', 'applied'))).toEqual(['n1 corrective']);
    expect(i.lease('n1').hash).toBe(i.status('n0').hash);
  });
});

describe('17: the rollback after a correction', () => {
  it('also rolls back what the superseded rollout changed', () => {
    const i = two();
    i.rolls([motd('one')]);
    i.answers('n0', 'applied');
    i.rolls([motd('two')]);
    // n1 is still applying c1. Then one of the two gets c2 and fails.
    i.answers('n1', 'applied');
    const [first] = i.atWork();
    i.answers(first ?? '', 'failed', { hash: i.lease(first ?? '').from });
    i.allApply();
    expect(i.rollout('c2').phase).toBe('reverted');
    expect([i.node('n0').hash, i.node('n1').hash]).toEqual([EMPTY, EMPTY]);
  });
});

describe('18: consecutive commits', () => {
  it('are recorded once each and in ledger order, however many copies read', () => {
    const i = new Installation().starts(['a0'], { role: 'a' }).starts(['b0'], { role: 'b' });
    i.commits([pool('a', 1), pool('b', 1)]);
    i.rolls([file('one', 'x', 'a')]);
    i.rolls([file('two', 'x', 'b')]);
    i.scheduler.when(i.answer('a0', 'applied'), i.answer('b0', 'applied'));
    const slow = i.newMerger();
    const late = slow.about();
    expect(types(late.facts)).toEqual(['config.committed', 'config.committed']);
    i.merger.when();
    expect(i.ledger.append(late.facts, slow.folded)).toBe(false);
    expect(types(slow.when())).toEqual([]);
    expect(
      i.ledger.facts.flatMap((fact) => (fact.type === 'config.committed' ? [`${fact.change} ${fact.generation}`] : [])),
    ).toEqual(['c1 1', 'c2 2', 'c3 3']);
  });
});

describe('19: retrying an invalid config', () => {
  it('happens once on a deferred node, and again only after something has changed', () => {
    const i = new Installation().starts(['n0', 'n1'], { role: 'edge' });
    i.commits([pool('edge', 2)]);
    i.scheduler.given(silent('n1'));
    i.commits([motd('x')]);
    i.scheduler.given(heard('n1'));
    i.quiet();
    expect(i.lease('n1')).toMatchObject({ kind: 'corrective', phase: 'applying' });
    i.answers('n1', 'invalid');
    expect(grants(i.after(48 * 60 * MINUTE))).toEqual([]);
    expect(i.validator.read().state.knownBad.size).toBe(0);
    expect(grants(i.announces('n1', { bootId: 'b2', labels: { role: 'edge' } }))).toEqual(['n1 corrective']);
  });
});

describe("20: an applier that acts long after the scheduler's deadline", () => {
  it('counts all the time: its unit is free when its report names the lease', () => {
    const i = two();
    i.rolls([motd('x')], { maxFailures: 1 });
    i.after(PAST_DEADLINE);
    expect(grants(i.after(PAST_DEADLINE))).toEqual([]);
    expect(i.scheduler.view('pools', 'default')).toMatchObject({
      unavailable: [{ node: 'n0', because: 'unknown: it did not report by the deadline of its lease', lease: 'n0-l1' }],
    });
    expect(grants(i.answers('n0', 'applied'))).toEqual(['n1 forward']);
  });
});

describe('21: a lowered budget applies', () => {
  const lowered = () => {
    const i = new Installation().starts(['n0', 'n1', 'n2'], { role: 'edge' });
    i.commits([pool('edge', 3)]);
    i.rolls([pool('edge', 1), motd('x')]);
    return i;
  };

  it('from the first grant of the change that contains it', () => {
    expect(lowered().atWork()).toEqual(['n0']);
  });

  it('until that change rolls back', () => {
    const i = lowered();
    i.answers('n0', 'failed');
    expect(i.scheduler.view('pools', 'edge').budget).toBe(3);
    i.rolls([motd('y')]);
    expect(i.atWork()).toEqual(['n0', 'n1', 'n2']);
  });
});
