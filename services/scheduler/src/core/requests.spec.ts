import {
  accepted,
  committed,
  ended,
  factOf,
  heard,
  joined,
  left,
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
  it('is answered with what has come of it', () => {
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
    expect(s.answers).toMatchObject([{ ok: true }]); // it is aborted, as asked
  });

  it('is refused with where the rollout is', () => {
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
    s.answers_('n1', 'failed');
    s.resumes('c3');
    expect(refusal(s)).toBe('conflict: c3 is already reverting');
  });

  it('needs no reason, and tells the one that it has', () => {
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

describe('to skip a node', () => {
  it('is refused where there is none', () => {
    const s = fleetOf('n0').given(left('n0'));
    for (const node of ['n0', 'n9']) {
      s.skips(node);
      expect(refusal(s)).toBe(`not-found: node ${node} is not in the fleet`);
    }
  });

  it('settles the lease that it holds with the reason, and asked again says nothing more', () => {
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

  it('without a reason says who asked, also of one that did not answer', () => {
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

  it('leaves a lease that has ended otherwise as it ended', () => {
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
  it('are shown one by one, and page by page by name', () => {
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

describe('a start', () => {
  it('tells of how many nodes it is, for which attempt, in whose place, and what is tolerated', () => {
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

  it('waits for a change to be rendered and reviewed, and comes once', () => {
    const s = fleetOf('n0').given(accepted('c1'), validated('c1', 0));
    expect(s.when()).toEqual([]);
    s.given(renderedChange('c1', leading(['n0'], 'old', 'x')), validated('c1'));
    expect(types(s.when())).toEqual(['rollout.started', 'node.lease.granted']);
    s.applies('n0');
    expect(s.when()).toEqual([]);
  });

  it('does not come while the node is the target of another, but for the one that it replaces', () => {
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

  it('in the place of a change that nobody knows, or that has ended, does not come', () => {
    const s = fleetOf('n0');
    expect(types(s.rolls('c3', ['n0'], { replaces: ['c1'] }))).toEqual([]);
    s.given(accepted('c2'), factOf('config.rejected', { change: 'c2', stage: 'review', attempt: 0 }));
    expect(types(s.rolls('c4', ['n0'], { replaces: ['c2'] }))).toEqual([]);
  });

  /** A node `x` has found `bad` invalid, and that is judged to be its own fault. */
  const found = (s: Scheduler) => {
    s.answers_('x', 'invalid');
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

  it('is not held up by an invalid of before its review', () => {
    const s = neighbours();
    found(s);
    expect(grants(s.rolls('c1', ['n0'], { to: 'bad' }))).toEqual(['n0 forward bad']);
  });

  it.each([
    ['hash', 'bad', ''],
    ['recipe', 'fine', 'r-bad'],
  ])('is held up by an invalid with its %s since its review', (_, to, recipe) => {
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
  ])('is not held up by an invalid of a config that it does not %s', (_, from, to, recipe) => {
    const s = neighbours().given(accepted('c1'), renderedChange('c1', { n0: { from, to, recipe } }), validated('c1'));
    found(s);
    expect(s.state.rollouts.has('c1')).toBe(true);
  });
});

describe('a stall', () => {
  /** Two of a pool of one unit are silent; the third would be next. */
  const stalled = () => {
    const s = fleetOf('n0', 'n1', 'n2').given(silent('n1'), silent('n2'));
    return { s, said: s.rolls('c1', ['n0']) };
  };

  it('names all that hold the units, is said again when they are others, and not when they are the same', () => {
    const { s, said } = stalled();
    expect(said.at(-1)).toMatchObject({
      type: 'rollout.stalled',
      change: 'c1',
      nodes: ['n1', 'n2'],
      pending: 1,
      reason: 'waits for n1, n2 to report, or to be skipped or removed',
    });
    expect(s.when()).toEqual([]);
    expect(s.given(heard('n1')).when()).toMatchObject([{ type: 'rollout.stalled', nodes: ['n2'] }]);
    expect(types(s.given(heard('n2')).when())).toEqual(['node.lease.granted']);
  });

  it('names five in its reason, and the others besides it', () => {
    const silents = ['a', 'b', 'c', 'd', 'e', 'f'];
    const s = fleetOf('n0', ...silents).given(...silents.map((node) => silent(node)));
    expect(s.rolls('c1', ['n0']).at(-1)).toMatchObject({
      nodes: silents,
      reason: 'waits for a, b, c, d, e to report, or to be skipped or removed',
    });
  });

  it('is none while somebody is at work, in the rollout or in its pool, or it is paused', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    s.rolls('c1', ['n0']);
    expect(types(s.rolls('c2', ['n1']))).toEqual(['rollout.started']); // n0 will be done
    const { s: paused } = stalled();
    paused.pauses('c1');
    expect(types(paused.given(joined('n3'), silent('n3')).when())).toEqual([]);
    expect(types(paused.resumes('c1'))).toEqual(['rollout.resumed', 'rollout.stalled']);
  });

  it('is none where one of its pools has a unit left', () => {
    const s = new Scheduler().given(
      accepted('c9', { apply: [pool('edge', 1)] }),
      renderedChange('c9', {}),
      validated('c9'),
    );
    s.when();
    s.given(committed('c9')).fleet(['e0', 'e1'], { role: 'edge' }).fleet(['n0', 'n1']);
    s.given(silent('e1'));
    const said = s.rolls('c1', ['e0', 'n0']);
    expect(grants(said)).toEqual(['n0 forward c1-new']);
    expect(types(said)).not.toContain('rollout.stalled');
    expect(s.applies('n0').at(-1)).toMatchObject({ type: 'rollout.stalled', nodes: ['e1'] });
  });
});
