import {
  accepted,
  committed,
  ended,
  factOf,
  linesOf,
  left,
  pool,
  renderedChange,
  renderedNode,
  silent,
  validated,
} from '#libs/testing';
import { grants, leading, PAST_DEADLINE, Scheduler, settledAs, types } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);
const pageOf = (s: Scheduler): Record<string, unknown> & { next?: string } => {
  const [answer] = s.answers;
  if (answer?.ok !== true) throw new Error(JSON.stringify(answer));
  return answer.body as Record<string, unknown>;
};

describe('pause', () => {
  it('grants no forward lease after its answer, lets a ready lease finish, and continues when resumed', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    expect(types(s.pauses('c1'))).toEqual(['rollout.paused']);
    expect(s.answers).toEqual([{ ok: true, body: { change: 'c1', phase: 'rolling', paused: true, aborted: false } }]);
    expect(settledAs(s.applies('n0'))).toEqual(['n0 applied']);
    expect(s.after(PAST_DEADLINE)).toEqual([]);
    expect(s.why('n1')).toMatchObject({ because: 'paused', text: 'c1 is paused by me' });
    expect(grants(s.resumes('c1'))).toEqual(['n1 forward c1-new']);
  });

  it('is recorded once if it is repeated', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.pauses('c1');
    expect(s.pauses('c1')).toEqual([]);
    expect(s.answers).toMatchObject([{ ok: true, body: { paused: true } }]);
  });

  it('for another reason is shown with that one, also before the rollout starts', () => {
    const s = fleetOf('n0');
    s.given(accepted('c1'));
    const pauses = (reason: string) => s.asks({ op: 'rollout.pause', change: 'c1', by: 'me', reason });
    pauses('lunch');
    expect(pauses('lunch')).toEqual([]);
    expect(linesOf(pauses('a fire'), 'reason')).toEqual(['rollout.paused a fire']);
    s.given(renderedChange('c1', leading(['n0'], 'old', 'new')), validated('c1'));
    s.when();
    expect(s.why('n0')).toMatchObject({ because: 'paused', text: 'c1 is paused by me: a fire' });
    expect([pauses(''), linesOf(pauses('no fire'))]).toEqual([[], ['rollout.paused']]);
    expect(s.why('n0').text).toBe('c1 is paused by me: no fire');
  });

  it('before the start pauses the rollout when it starts', () => {
    const s = fleetOf('n0');
    s.given(accepted('c1'));
    s.pauses('c1');
    s.given(renderedChange('c1', leading(['n0'], 'old', 'new')), validated('c1'));
    expect(types(s.when())).toEqual(['rollout.started']);
    expect(grants(s.resumes('c1'))).toEqual(['n0 forward new']);
  });

  it('holds the change that corrects it, too, until that is resumed', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.pauses('c1');
    s.given(
      accepted('c2'),
      renderedChange('c2', leading(['n0', 'n1'], 'old', 'better'), { replaces: ['c1'] }),
      validated('c2'),
    );
    const facts = s.when();
    expect(types(facts)).toEqual(['rollout.superseded', 'rollout.started', 'rollout.paused']);
    expect(facts.at(-1)).toMatchObject({ change: 'c2', reason: 'it corrects c1, which was paused by me' });
    s.applies('n0');
    expect(s.view('rollouts', 'c2')).toMatchObject({ paused: true, phase: 'rolling' });
    expect(s.why('n1')).toMatchObject({ because: 'paused' });
    expect(grants(s.resumes('c2'))).toEqual(['n0 forward better']);
  });

  it('names who paused the first of several corrections', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.pauses('c1');
    for (const [change, corrected] of [
      ['c2', 'c1'],
      ['c3', 'c2'],
    ] as const) {
      const corrects = { replaces: [corrected] };
      s.given(accepted(change), renderedChange(change, leading(['n0'], 'old', change), corrects), validated(change));
      const reason = `it corrects ${corrected}, which was paused by me`;
      expect(s.when().at(-1)).toMatchObject({ type: 'rollout.paused', change, reason });
    }
  });

  it('lets a rollback continue', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.pauses('c1');
    expect(grants(s.leaseEnds('n1', 'failed'))).toEqual(['n0 rollback old']);
    expect(types(s.applies('n0'))).toContain('rollout.reverted');
  });

  it('does not hide that the rollback of a paused rollout is stalled', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2']);
    s.applies('n0');
    s.pauses('c1');
    s.given(factOf('node.unavailable', { node: 'n2', because: 'NotReady' }));
    expect(s.leaseEnds('n1', 'failed').at(-1)).toMatchObject({ type: 'rollout.stalled', nodes: ['n2'] });
  });

  it.each(['complete', 'reverted'])('is refused for a change that is %s', (phase) => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    if (phase === 'complete') s.applies('n0');
    else s.leaseEnds('n0', 'failed');
    expect(s.pauses('c1')).toEqual([]);
    expect(s.answers).toMatchObject([{ ok: false, code: 'conflict' }]);
  });
});

describe('abort', () => {
  it('reverts what was changed, without a verdict', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    const facts = s.aborts('c1');
    expect(linesOf(facts.slice(0, 2), 'by', 'reason')).toEqual([
      'rollout.aborted me aborted by me: enough',
      'rollout.reverting me aborted by me: enough',
    ]);
    expect(grants(facts)).toEqual([]); // n1 has a lease, so the unit is taken
    expect(grants(s.applies('n1'))).toEqual(['n0 rollback old']);
    s.applies('n0');
    expect(types(s.applies('n1'))).toContain('rollout.reverted');
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'reverted', aborted: true, failed: 0 });
  });

  it('waits for its ready leases before the rollout is reverted', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    expect(types(s.aborts('c1'))).toEqual(['rollout.aborted', 'rollout.reverting']);
    expect(grants(s.applies('n0'))).toEqual(['n0 rollback old']);
  });

  it('of a waiting change keeps it from ever starting', () => {
    const s = fleetOf('n0');
    s.given(accepted('c1'));
    expect(types(s.aborts('c1'))).toEqual(['rollout.aborted']);
    s.given(renderedChange('c1', leading(['n0'], 'old', 'new')), validated('c1'));
    expect(s.when()).toEqual([]);
    expect(types(s.given(ended('c1', 'aborted')).when())).toEqual([]);
  });

  it('is done once if it is repeated', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.aborts('c1');
    expect(s.aborts('c1')).toEqual([]);
    expect(s.answers).toMatchObject([{ ok: true, body: { aborted: true } }]);
  });

  it('for another reason is shown with that one, until everything is rolled back', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.aborts('c1');
    const aborts = (reason: string) => s.asks({ op: 'rollout.abort', change: 'c1', by: 'me', reason });
    expect([aborts('enough'), aborts('')]).toEqual([[], []]);
    expect(linesOf(aborts('wrong file'), 'reason')).toEqual(['rollout.aborted aborted by me: wrong file']);
    expect(s.view('rollouts', 'c1')).toMatchObject({ reason: 'aborted by me: wrong file' });
    s.leaseEnds('n0', 'failed');
    expect(aborts('too late')).toEqual([]);
  });

  it('of a paused rollout rolls it back', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.pauses('c1');
    s.applies('n0');
    expect(grants(s.aborts('c1'))).toEqual(['n0 rollback old']);
  });

  it('of an unknown change is refused', () => {
    const s = fleetOf('n0');
    s.aborts('c77');
    expect(s.answers).toMatchObject([{ ok: false, code: 'not-found' }]);
  });
});

describe('a correction', () => {
  it('supersedes the older change and starts in one batch, and nodes that have not started go straight to it', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    const facts = s.rolls('c2', ['n0', 'n1'], { replaces: ['c1'] });
    expect(linesOf(facts, 'change', 'by')).toEqual(['rollout.superseded c1 c2', 'rollout.started c2']);
    expect(s.lease('n0')).toMatchObject({ change: 'c1', phase: 'applying' }); // it finishes
    const next = s.applies('n0');
    expect(settledAs(next)).toEqual(['n0 applied']);
    expect(grants(next)).toEqual(['n1 forward c2-new']);
    expect(grants(s.applies('n1'))).toEqual(['n0 forward c2-new']);
    s.applies('n0');
    expect(s.rollout('c2').phase).toBe('complete');
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'superseded', supersededBy: 'c2' });
  });

  it('that is reviewed together with the change that it replaces starts, and the older one never does', () => {
    const s = new Scheduler().fleet(['n0']);
    s.reviewed('c9', ['n0']).reviewed('c10', ['n0'], { replaces: ['c9'] });
    expect(linesOf(s.when(), 'change').filter((line) => line.startsWith('rollout.'))).toEqual([
      'rollout.superseded c9',
      'rollout.started c10',
    ]);
  });

  it('leaves the results of the last leases of the older change to the view of that change', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.rolls('c2', ['n0'], { replaces: ['c1'] });
    s.given(...s.about(s.answer('n0', 'failed')).facts);
    expect([...s.core.takeTouched(s.state)]).toContain('rollouts/c1');
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'superseded', failed: 1 });
  });

  it('supersedes one that has not started', () => {
    const s = fleetOf('n0');
    s.given(accepted('c1'));
    expect(linesOf(s.rolls('c2', ['n0'], { replaces: ['c1'] }).slice(0, 2), 'change')).toEqual([
      'rollout.superseded c1',
      'rollout.started c2',
    ]);
    expect(types(s.given(renderedChange('c1', leading(['n0'], 'old', 'x')), validated('c1')).when())).toEqual([]);
  });

  it.each([
    ['has failed', (s: Scheduler) => s.leaseEnds('n0', 'failed')],
    ['is aborted', (s: Scheduler) => s.aborts('c1')],
    ['is complete', (s: Scheduler) => s.applies('n0')],
  ])('is rendered again before it starts if the corrected change %s meanwhile', (_, act) => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    act(s);
    expect(types(s.rolls('c2', ['n0'], { replaces: ['c1'] }))).toEqual([]);
  });

  it('that was rejected changes nothing', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.given(
      accepted('c2'),
      renderedChange('c2', leading(['n0'], 'old', 'x'), { replaces: ['c1'] }),
      factOf('config.rejected', { change: 'c2', stage: 'review', attempt: 1 }),
    );
    expect(s.when()).toEqual([]);
    expect(s.rollout('c1').phase).toBe('rolling');
  });

  it('rolls back to the committed config, including what the older change modified', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.rolls('c2', ['n0', 'n1'], { replaces: ['c1'] });
    s.leaseEnds('n1', 'failed');
    s.leaseEnds(s.atWork()[0] ?? '', 'failed');
    expect(s.rollout('c2').phase).toBe('reverting');
    const back = s.atWork().map((node) => `${node} ${s.lease(node).kind} ${s.lease(node).hash}`);
    expect(back).toEqual(['n0 rollback old']);
  });

  it('waits for another review if the older change made one of its configs invalid', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { to: 'same' });
    s.reviewed('c2', ['n0', 'n1'], { to: 'same', replaces: ['c1'] });
    expect(types(s.leaseEnds('n0', 'invalid'))).not.toContain('rollout.started');
  });
});

describe('a known-bad config', () => {
  const knownBad = (hash: string, recipe = `r-${hash}`) =>
    factOf('config.judged', { hash, recipe, lease: 'x-l1', change: 'c0', node: 'x', knownBad: true });

  it.each([
    ['hash', 'c1-new', 'other'],
    ['recipe', 'other', 'r-c1-new'],
  ])('is not granted in a forward lease, known by its %s', (_, hash, recipe) => {
    const s = fleetOf('n0').given(knownBad(hash, recipe));
    expect(grants(s.rolls('c1', ['n0']))).toEqual([]);
  });

  it('is not granted any more once it becomes known-bad during its rollout', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    expect(types(s.given(knownBad('c1-new')).when())).toEqual(['node.deferred']);
    expect(grants(s.applies('n0'))).toEqual([]);
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'complete', deferred: 1 });
  });

  it('is granted again once it is cleared and reviewed', () => {
    const s = fleetOf('n0').given(knownBad('c1-new'));
    s.rolls('c1', ['n0']);
    expect(grants(s.given(factOf('config.cleared', { hash: 'c1-new', recipe: 'r-c1-new' })).when())).toEqual([
      'n0 forward c1-new',
    ]);
  });

  it('does not matter if the change does not alter the config', () => {
    const s = fleetOf('n0').given(knownBad('zzz', 'r-old'));
    expect(types(s.rolls('c1', ['n0'], { to: 'old' }))).toEqual(['rollout.started', 'rollout.complete']);
  });

  it('that was reported as invalid since its review is reviewed again before its change starts', () => {
    const s = fleetOf('n0', 'n1');
    s.given(accepted('c9', { apply: [pool('edge', 2)] }));
    s.rolls('c1', ['n0'], { to: 'same' });
    s.reviewed('c2', ['n1'], { to: 'same' });
    const facts = s.leaseEnds('n0', 'invalid');
    expect(types(facts)).not.toContain('rollout.started');
    s.given(
      factOf('config.judged', {
        hash: 'same',
        recipe: 'r-same',
        lease: 'n0-l1',
        change: 'c1',
        node: 'n0',
        clearedBecause: 'it is the committed config of n7',
      }),
    );
    s.when();
    expect(s.state.rollouts.has('c2')).toBe(false);
    expect(grants(s.given(validated('c2')).when())).toEqual(['n1 forward same']);
  });
});

describe('why', () => {
  const cases: readonly (readonly [string, (s: Scheduler) => unknown])[] = [
    ['up-to-date', () => undefined],
    ['left', (s) => s.given(left('n0'))],
    ['silent', (s) => s.given(silent('n0'))],
    ['applying', (s) => s.rolls('c1', ['n0'])],
    ['budget', (s) => s.rolls('c1', ['m0', 'n0'])],
    ['not-started', (s) => s.given(accepted('c1'), renderedChange('c1', leading(['n0'], 'old', 'x')))],
    ['in-review', (s) => s.given(renderedNode('n0', 'next'))],
    ['settled', (s) => (s.rolls('c1', ['n0', 'm0']), s.aborts('c1'))],
    ['unknown', (s) => (s.rolls('c1', ['n0']), s.after(PAST_DEADLINE))],
    ['skipped', (s) => (s.given(silent('n0')), s.skips('n0'))],
    ['lease-settled', (s) => (s.rolls('c1', ['n0']), s.skips('n0'))],
    ['deferred', (s) => s.rolls('c1', ['m0', 'n0'], { incompatible: ['n0'] })],
  ];
  it.each(cases)('answers %s', (because, act) => {
    const s = fleetOf('m0', 'n0');
    act(s);
    expect(s.why('n0').because).toBe(because);
  });

  it('names the node that holds the unit, and what it is doing', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    expect(s.why('n1')).toMatchObject({
      holders: ['n0'],
      text: 'the budget of pool default is used up: 1 unavailable, 1 allowed: n0 (applying)',
      pool: 'default',
      change: 'c1',
    });
  });

  it('of a node that has joined and is not rendered yet does not say that all is well', () => {
    const s = new Scheduler().given(factOf('node.joined', { node: 'n0' }));
    expect(s.why('n0').because).toBe('no-report');
    s.nodeReports('n0', 'x');
    expect(s.why('n0').because).toBe('not-rendered');
  });
});

describe('lists', () => {
  it('contain every rollout once, by age', () => {
    const s = fleetOf('n0');
    for (let i = 2; i <= 11; i++) {
      s.rolls(`c${i}`, []);
      s.given(committed(`c${i}`, i)).when();
    }
    const seen: string[] = [];
    for (let cursor = '', i = 0; i < 10; i++) {
      s.asks({ op: 'rollout.list', cursor, limit: 3 });
      const { rollouts, next } = pageOf(s) as { rollouts: { change: string }[]; next?: string };
      seen.push(...rollouts.map(({ change }) => change));
      if (next === undefined) break;
      cursor = next;
    }
    expect(seen).toEqual(['c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'c9', 'c10', 'c11']);
  });

  it('continue after a cursor whose item is gone', () => {
    const s = fleetOf('n0');
    s.rolls('c2', []);
    s.rolls('c4', []);
    s.asks({ op: 'rollout.list', cursor: 'c3', limit: 3 });
    expect((pageOf(s)['rollouts'] as { change: string }[]).map(({ change }) => change)).toEqual(['c4']);
  });

  it('show a rollout node by node', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2']);
    s.applies('n0');
    s.asks({ op: 'rollout.get', change: 'c1', cursor: '', limit: 2 });
    expect(pageOf(s)).toMatchObject({
      phase: 'rolling',
      nodes: [
        { node: 'n0', state: 'applied' },
        { node: 'n1', state: 'applying' },
      ],
      next: 'n1',
    });
    s.asks({ op: 'rollout.get', change: 'c1', cursor: 'n1', limit: 2 });
    expect(pageOf(s)).toMatchObject({ nodes: [{ node: 'n2', state: 'pending' }] });
    expect(pageOf(s).next).toBeUndefined();
  });

  it('distinguish a change that has not started from an unknown one', () => {
    const s = fleetOf('n0').given(accepted('c1'));
    s.asks({ op: 'rollout.get', change: 'c1', cursor: '', limit: 2 });
    expect(s.answers).toMatchObject([{ ok: false, code: 'not-started' }]);
    s.asks({ op: 'rollout.get', change: 'c2', cursor: '', limit: 2 });
    expect(s.answers).toMatchObject([{ ok: false, code: 'not-found' }]);
  });

  it('show pools, and none that is gone', () => {
    const s = fleetOf('n0');
    s.rolls('c1', [], { apply: [pool('edge', 2)] });
    s.given(committed('c1')).when();
    s.asks({ op: 'pool.list', cursor: '', limit: 10 });
    expect((pageOf(s)['pools'] as { pool: string }[]).map((one) => one.pool)).toEqual(['default', 'edge']);
    s.rolls('c2', [], { delete: [{ kind: 'Pool', name: 'edge' }] });
    s.given(committed('c2', 2)).when();
    s.asks({ op: 'pool.get', pool: 'edge' });
    expect(s.answers).toMatchObject([{ ok: false, code: 'not-found' }]);
  });
});
