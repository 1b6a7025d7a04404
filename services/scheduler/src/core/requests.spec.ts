import {
  accepted,
  committed,
  ended,
  factOf,
  heard,
  joined,
  left,
  linesOf,
  pool,
  renderedChange,
  silent,
  validated,
} from '#libs/testing';
import { grants, leading, MINUTE, PAST_DEADLINE, Scheduler, settledAs, types } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);
const refusal = (s: Scheduler): string => {
  const [answer] = s.answers;
  if (answer === undefined || answer.ok) throw new Error(JSON.stringify(answer));
  return `${answer.code}: ${answer.message}`;
};

describe('steering', () => {
  it('is answered with the result', () => {
    const s = fleetOf('n0').given(accepted('c1'));
    s.pauses('c1');
    expect(s.answers).toEqual([{ ok: true, body: { change: 'c1', phase: 'waiting', paused: true, aborted: false } }]);
    s.resumes('c1');
    expect(s.answers).toEqual([{ ok: true, body: { change: 'c1', phase: 'waiting', paused: false, aborted: false } }]);
    s.aborts('c1');
    expect(s.answers).toEqual([{ ok: true, body: { change: 'c1', phase: 'ended', paused: false, aborted: true } }]);
    s.rolls('c2', ['n0']);
    s.aborts('c2');
    expect(s.answers).toEqual([{ ok: true, body: { change: 'c2', phase: 'reverting', paused: false, aborted: true } }]);
    s.given(ended('c2', 'aborted'));
    s.aborts('c2');
    expect(s.answers).toMatchObject([{ ok: true }]); // it is aborted, as requested
  });

  it('is refused with the state of the rollout', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0']);
    s.applies('n0');
    s.aborts('c1');
    expect(refusal(s)).toBe('conflict: c1 is complete on every node and about to be committed');
    s.given(committed('c1')).when();
    s.pauses('c1');
    expect(refusal(s)).toBe('conflict: c1 has ended (succeeded)');
    s.given(accepted('c2'), factOf('config.rejected', { change: 'c2', stage: 'review', attempt: 0 }));
    s.pauses('c2');
    expect(refusal(s)).toBe('conflict: c2 has ended');
    s.rolls('c3', ['n0', 'n1'], { from: 'c1-new' });
    s.applies('n0');
    s.leaseEnds('n1', 'failed');
    s.resumes('c3');
    expect(refusal(s)).toBe('conflict: c3 is already reverting');
  });

  it('needs no reason, and uses the one that it has', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    expect(s.asks({ op: 'rollout.pause', change: 'c1', by: 'me', reason: 'lunch' })).toMatchObject([
      { type: 'rollout.paused', by: 'me', reason: 'lunch', pending: 1, applied: 0 },
    ]);
    expect(s.asks({ op: 'rollout.abort', change: 'c1', by: 'me', reason: '' })).toMatchObject([
      { reason: 'aborted by me' },
      { reason: 'aborted by me' },
    ]);
  });
});

describe('skipping a node', () => {
  it('is refused for an unknown node', () => {
    const s = fleetOf('n0').given(left('n0'));
    for (const node of ['n0', 'n9']) {
      s.skips(node);
      expect(refusal(s)).toBe(`not-found: node ${node} is not in the fleet`);
    }
  });

  it('settles its lease with the reason, and records nothing more if it is repeated', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0'], { maxFailures: 1 });
    expect(s.asks({ op: 'node.skip', node: 'n0', by: 'me', reason: 'broken' }).slice(0, 2)).toMatchObject([
      { type: 'node.skipped', node: 'n0', pool: 'default', lease: 'n0-l1', change: 'c1', by: 'me', reason: 'broken' },
      { type: 'node.lease.settled', because: 'skipped', reason: 'broken' },
    ]);
    expect(s.answers).toEqual([{ ok: true, body: { node: 'n0', skipped: true } }]);
    expect(s.skips('n0')).toEqual([]);
    expect(s.answers).toEqual([{ ok: true, body: { node: 'n0', skipped: true } }]);
  });

  it('for another reason, or after the scheduler has skipped it, is recorded and explained', () => {
    const s = fleetOf('n0').given(silent('n0'), factOf('node.skipped', { node: 'n0', by: 'scheduler' }));
    const skips = (by: string, reason: string) => s.asks({ op: 'node.skip', node: 'n0', by, reason });
    expect(linesOf(skips('me', 'broken'), 'by')).toEqual(['node.skipped me']);
    expect(skips('me', 'broken')).toEqual([]);
    expect(linesOf(skips('me', 'on fire'), 'reason')).toEqual(['node.skipped on fire']);
    expect(s.why('n0').text).toContain('skipped by me (on fire) until');
    expect([skips('you', ''), linesOf(skips('you', 'on fire'), 'by')]).toEqual([[], ['node.skipped you']]);
  });

  it('without a reason names the user, also for a node that did not answer', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { maxFailures: 2 });
    s.after(PAST_DEADLINE);
    expect(s.skips('n0').filter(({ type }) => type === 'node.lease.settled')).toMatchObject([
      { because: 'skipped', reason: 'skipped by me' },
    ]);
    expect(s.after(2 * MINUTE).filter(({ type }) => type === 'node.lease.granted')).toMatchObject([{ node: 'n1' }]);
    expect(s.skips('n1').filter(({ type }) => type === 'node.lease.settled')).toMatchObject([
      { because: 'skipped', reason: 'skipped by me' },
    ]);
  });

  it('does not change a lease that has already ended in another way', () => {
    const s = fleetOf('n0');
    s.actions = [{ kind: 'drain' }];
    s.rolls('c1', ['n0']);
    s.given(factOf('node.drained', { node: 'n0', lease: 'n0-l1', pool: 'default' })).when();
    s.applies('n0');
    expect(settledAs(s.skips('n0'))).toEqual([]);
    expect(s.lease('n0')).toMatchObject({ phase: 'uncordoning', because: 'applied' });
  });
});

describe('pools', () => {
  it('are returned one by one, or in pages by name', () => {
    const s = new Scheduler();
    s.rolls('c1', [], { apply: [pool('b', 2), pool('a', '10%'), pool('c', 1)] });
    s.given(committed('c1')).when();
    s.asks({ op: 'pool.get', pool: 'a' });
    expect(s.answers).toMatchObject([{ ok: true, body: { pool: 'a', maxUnavailable: '10%' } }]);
    const page = (cursor: string, limit: number) => {
      s.asks({ op: 'pool.list', cursor, limit });
      const { pools, next } = (s.answers[0] as { body: { pools: readonly { pool: string }[]; next?: string } }).body;
      return [pools.map((one) => one.pool).join(), next];
    };
    expect([page('', 2), page('b', 2), page('', 4), page('bb', 1), page('zzz', 4)]).toEqual([
      ['a,b', 'b'],
      ['c,default', undefined],
      ['a,b,c,default', undefined],
      ['c', 'c'],
      ['', undefined],
    ]);
  });
});

describe('the start of a rollout', () => {
  it('records the number of nodes, the attempt, the replaced changes, and maxFailures', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0']);
    s.given(
      accepted('c2', { maxFailures: 2 }),
      renderedChange('c2', leading(['n0', 'n1'], 'old', 'x'), { attempt: 3, replaces: ['c1'] }),
      validated('c2', 3),
    );
    expect(s.when()).toMatchObject([
      { type: 'rollout.superseded', change: 'c1', by: 'c2', reason: 'corrected by c2', pending: 1 },
      {
        type: 'rollout.started',
        change: 'c2',
        attempt: 3,
        replaces: ['c1'],
        maxFailures: 2,
        applied: 0,
        failed: 0,
        unknown: 0,
        deferred: 0,
        pending: 2,
        reason: '',
      },
    ]);
  });

  it('waits until a change is rendered and reviewed, and happens once', () => {
    const s = fleetOf('n0').given(accepted('c1'), validated('c1', 0));
    expect(s.when()).toEqual([]);
    s.given(renderedChange('c1', leading(['n0'], 'old', 'x')), validated('c1'));
    expect(types(s.when())).toEqual(['rollout.started', 'node.lease.granted']);
    s.applies('n0');
    expect(s.when()).toEqual([]);
  });

  it('waits while a node is the target of another rollout, unless that is replaced', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0']);
    s.rolls('c2', ['n1']);
    expect(types(s.rolls('c3', ['n0', 'n1'], { replaces: ['c1'] }))).toEqual([]);
    expect(types(s.rolls('c4', ['n0', 'n1'], { replaces: ['c1', 'c2'] })).slice(0, 3)).toEqual([
      'rollout.superseded',
      'rollout.superseded',
      'rollout.started',
    ]);
  });

  it('does not happen if it would replace a change that is unknown or has ended', () => {
    const s = fleetOf('n0');
    expect(types(s.rolls('c3', ['n0'], { replaces: ['c1'] }))).toEqual([]);
    s.given(accepted('c2'), factOf('config.rejected', { change: 'c2', stage: 'review', attempt: 0 }));
    expect(types(s.rolls('c4', ['n0'], { replaces: ['c2'] }))).toEqual([]);
  });

  /** Node `x` has reported `bad` as invalid, and `bad` was cleared because the node is to blame. */
  const found = (s: Scheduler) => {
    s.leaseEnds('x', 'invalid');
    return s
      .given(
        factOf('config.judged', {
          hash: 'bad',
          recipe: 'r-bad',
          lease: 'x-l1',
          change: 'c0',
          node: 'x',
          clearedBecause: 'it serves elsewhere',
        }),
        ended('c0', 'reverted'),
      )
      .when();
  };
  const neighbours = () => {
    const s = fleetOf('n0', 'n1', 'x');
    s.rolls('c0', ['x'], { to: 'bad' });
    return s;
  };

  it('does not wait for an invalid report from before its review', () => {
    const s = neighbours();
    found(s);
    expect(grants(s.rolls('c1', ['n0'], { to: 'bad' }))).toEqual(['n0 forward bad']);
  });

  it.each([
    ['hash', 'bad', ''],
    ['recipe', 'fine', 'r-bad'],
  ])('waits if a config was reported as invalid with its %s since its review', (_, to, recipe) => {
    const s = neighbours().given(
      accepted('c1'),
      renderedChange('c1', { n0: { from: 'old', to, recipe } }),
      validated('c1'),
    );
    expect(types(found(s))).not.toContain('rollout.started');
    expect(s.state.rollouts.has('c1')).toBe(false);
  });

  it.each([
    ['alter', 'bad', 'bad', 'r-bad'],
    ['bring', 'old', 'fine', 'r-fine'],
  ])('does not wait for an invalid config that it does not %s', (_, from, to, recipe) => {
    const s = neighbours().given(accepted('c1'), renderedChange('c1', { n0: { from, to, recipe } }), validated('c1'));
    found(s);
    expect(s.state.rollouts.has('c1')).toBe(true);
  });
});

describe('a stalled rollout', () => {
  /** Two nodes of a pool with one unit are silent. The third would be next. */
  const stalled = () => {
    const s = fleetOf('n0', 'n1', 'n2').given(silent('n1'), silent('n2'));
    return { s, said: s.rolls('c1', ['n0']) };
  };

  it('names all nodes that hold the units, is recorded again if they change, and not otherwise', () => {
    const { s, said: facts } = stalled();
    expect(facts.at(-1)).toMatchObject({
      type: 'rollout.stalled',
      change: 'c1',
      nodes: ['n1', 'n2'],
      pending: 1,
      reason: 'waits for n1 (silent), n2 (silent): see sluice why c1',
    });
    expect(s.when()).toEqual([]);
    expect(s.given(heard('n1')).when()).toMatchObject([{ type: 'rollout.stalled', nodes: ['n2'] }]);
    expect(types(s.given(heard('n2')).when())).toEqual(['node.lease.granted']);
  });

  it('names five in its reason, and the others separately', () => {
    const silents = ['a', 'b', 'c', 'd', 'e', 'f'];
    const s = fleetOf('n0', ...silents).given(...silents.map((node) => silent(node)));
    expect(s.rolls('c1', ['n0']).at(-1)).toMatchObject({
      nodes: silents,
      reason: 'waits for a (silent), b (silent), c (silent), d (silent), e (silent) and 1 more: see sluice why c1',
    });
  });

  it('is not recorded while the rollout or its pool has a lease in progress, or while it is paused', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    s.rolls('c1', ['n0']);
    expect(types(s.rolls('c2', ['n1']))).toEqual(['rollout.started']); // n0 will finish
    const { s: paused } = stalled();
    paused.pauses('c1');
    expect(types(paused.given(joined('n3'), silent('n3')).when())).toEqual([]);
    expect(types(paused.resumes('c1'))).toEqual(['rollout.resumed', 'rollout.stalled']);
  });

  it('is not recorded if one of its pools has a unit left', () => {
    const s = new Scheduler().given(
      accepted('c9', { apply: [pool('edge', 1)] }),
      renderedChange('c9', {}),
      validated('c9'),
    );
    s.when();
    s.given(committed('c9')).fleet(['e0', 'e1'], { role: 'edge' }).fleet(['n0', 'n1']);
    s.given(silent('e1'));
    const facts = s.rolls('c1', ['e0', 'n0']);
    expect(grants(facts)).toEqual(['n0 forward c1-new']);
    expect(types(facts)).not.toContain('rollout.stalled');
    expect(s.applies('n0').at(-1)).toMatchObject({ type: 'rollout.stalled', nodes: ['e1'] });
  });
});
