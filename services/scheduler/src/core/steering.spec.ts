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
  it('grants nothing forward from its answer on, lets a ready lease finish, and goes on when resumed', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    expect(types(s.pauses('c1'))).toEqual(['rollout.paused']);
    expect(s.answers).toEqual([{ ok: true, body: { change: 'c1', phase: 'rolling', paused: true, aborted: false } }]);
    expect(settledAs(s.applies('n0'))).toEqual(['n0 applied']);
    expect(s.after(PAST_DEADLINE)).toEqual([]);
    expect(s.why('n1')).toMatchObject({ because: 'paused', text: 'c1 is paused by me' });
    expect(grants(s.resumes('c1'))).toEqual(['n1 forward c1-new']);
  });

  it('asked twice is said once', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.pauses('c1');
    expect(s.pauses('c1')).toEqual([]);
    expect(s.answers).toMatchObject([{ ok: true, body: { paused: true } }]);
  });

  it('before the start holds the rollout when it starts', () => {
    const s = fleetOf('n0');
    s.given(accepted('c1'));
    s.pauses('c1');
    s.given(renderedChange('c1', leading(['n0'], 'old', 'new')), validated('c1'));
    expect(types(s.when())).toEqual(['rollout.started']);
    expect(grants(s.resumes('c1'))).toEqual(['n0 forward new']);
  });

  it('lets a rollback go on', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.pauses('c1');
    expect(grants(s.answers_('n1', 'failed'))).toEqual(['n0 rollback old']);
    expect(types(s.applies('n0'))).toContain('rollout.reverted');
  });

  it('does not hide that the rollback of what was paused is stalled', () => {
    const s = fleetOf('n0', 'n1', 'n2');
    s.rolls('c1', ['n0', 'n1', 'n2']);
    s.applies('n0');
    s.pauses('c1');
    s.given(factOf('node.unavailable', { node: 'n2', because: 'NotReady' }));
    expect(s.answers_('n1', 'failed').at(-1)).toMatchObject({ type: 'rollout.stalled', nodes: ['n2'] });
  });

  it.each(['complete', 'reverted'])('comes too late for what is %s', (phase) => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    if (phase === 'complete') s.applies('n0');
    else s.answers_('n0', 'failed');
    expect(s.pauses('c1')).toEqual([]);
    expect(s.answers).toMatchObject([{ ok: false, code: 'conflict' }]);
  });
});

describe('abort', () => {
  it('takes back what was changed, without a verdict', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    const said = s.aborts('c1');
    expect(linesOf(said.slice(0, 2), 'by', 'reason')).toEqual([
      'rollout.aborted me aborted by me: enough',
      'rollout.reverting me aborted by me: enough',
    ]);
    expect(grants(said)).toEqual([]); // n1 is at work: the unit is taken
    expect(grants(s.applies('n1'))).toEqual(['n0 rollback old']);
    s.applies('n0');
    expect(types(s.applies('n1'))).toContain('rollout.reverted');
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'reverted', aborted: true, failed: 0 });
  });

  it('waits for its ready leases before it is reverted', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    expect(types(s.aborts('c1'))).toEqual(['rollout.aborted', 'rollout.reverting']);
    expect(grants(s.applies('n0'))).toEqual(['n0 rollback old']);
  });

  it('of what still waits keeps it from ever starting', () => {
    const s = fleetOf('n0');
    s.given(accepted('c1'));
    expect(types(s.aborts('c1'))).toEqual(['rollout.aborted']);
    s.given(renderedChange('c1', leading(['n0'], 'old', 'new')), validated('c1'));
    expect(s.when()).toEqual([]);
    expect(types(s.given(ended('c1', 'aborted')).when())).toEqual([]);
  });

  it('asked twice is done once', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.aborts('c1');
    expect(s.aborts('c1')).toEqual([]);
    expect(s.answers).toMatchObject([{ ok: true, body: { aborted: true } }]);
  });

  it('of a paused rollout rolls back all the same', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.pauses('c1');
    s.applies('n0');
    expect(grants(s.aborts('c1'))).toEqual(['n0 rollback old']);
  });

  it('of what nobody knows is refused', () => {
    const s = fleetOf('n0');
    s.aborts('c77');
    expect(s.answers).toMatchObject([{ ok: false, code: 'not-found' }]);
  });
});

describe('a correction', () => {
  it('supersedes the older and starts in one batch, and nodes not yet started go straight to it', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    const said = s.rolls('c2', ['n0', 'n1'], { replaces: ['c1'] });
    expect(linesOf(said, 'change', 'by')).toEqual(['rollout.superseded c1 c2', 'rollout.started c2']);
    expect(s.lease('n0')).toMatchObject({ change: 'c1', phase: 'applying' }); // it finishes
    const next = s.applies('n0');
    expect(settledAs(next)).toEqual(['n0 applied']);
    expect(grants(next)).toEqual(['n1 forward c2-new']);
    expect(grants(s.applies('n1'))).toEqual(['n0 forward c2-new']);
    s.applies('n0');
    expect(s.rollout('c2').phase).toBe('complete');
    expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'superseded', supersededBy: 'c2' });
  });

  it('that is reviewed together with what it replaces starts, and the older never does', () => {
    const s = new Scheduler().fleet(['n0']);
    s.reviewed('c9', ['n0']).reviewed('c10', ['n0'], { replaces: ['c9'] });
    expect(linesOf(s.when(), 'change').filter((line) => line.startsWith('rollout.'))).toEqual([
      'rollout.superseded c9',
      'rollout.started c10',
    ]);
  });

  it('leaves to the view of the older what its last leases come to', () => {
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
    ['has failed', (s: Scheduler) => s.answers_('n0', 'failed')],
    ['is aborted', (s: Scheduler) => s.aborts('c1')],
    ['is complete', (s: Scheduler) => s.applies('n0')],
  ])('does not start when what it corrects %s meanwhile: it is rendered again', (_, happens) => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    happens(s);
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

  it('takes its rollback to the committed config, for what the older changed, too', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.rolls('c2', ['n0', 'n1'], { replaces: ['c1'] });
    s.answers_('n1', 'failed');
    s.answers_(s.atWork()[0] ?? '', 'failed');
    expect(s.rollout('c2').phase).toBe('reverting');
    const back = s.atWork().map((node) => `${node} ${s.lease(node).kind} ${s.lease(node).hash}`);
    expect(back).toEqual(['n0 rollback old']);
  });

  it('has what the older left invalid counted against its own start', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { to: 'same' });
    s.reviewed('c2', ['n0', 'n1'], { to: 'same', replaces: ['c1'] });
    expect(types(s.answers_('n0', 'invalid'))).not.toContain('rollout.started');
  });
});

describe('a known-bad config', () => {
  const knownBad = (hash: string, recipe = `r-${hash}`) =>
    factOf('config.judged', { hash, recipe, lease: 'x-l1', change: 'c0', node: 'x', knownBad: true });

  it.each([
    ['hash', 'c1-new', 'other'],
    ['recipe', 'other', 'r-c1-new'],
  ])('is granted to nobody forward, known by its %s', (_, hash, recipe) => {
    const s = fleetOf('n0').given(knownBad(hash, recipe));
    expect(grants(s.rolls('c1', ['n0']))).toEqual([]);
  });

  it('is granted to nobody more once it is known-bad while its rollout is under way', () => {
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

  it('is not asked about where the change alters nothing', () => {
    const s = fleetOf('n0').given(knownBad('zzz', 'r-old'));
    expect(types(s.rolls('c1', ['n0'], { to: 'old' }))).toEqual(['rollout.started', 'rollout.complete']);
  });

  it('that was found invalid since its review is reviewed again before it starts', () => {
    const s = fleetOf('n0', 'n1');
    s.given(accepted('c9', { apply: [pool('edge', 2)] }));
    s.rolls('c1', ['n0'], { to: 'same' });
    s.reviewed('c2', ['n1'], { to: 'same' });
    const said = s.answers_('n0', 'invalid');
    expect(types(said)).not.toContain('rollout.started');
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
  it.each(cases)('says %s', (because, happens) => {
    const s = fleetOf('m0', 'n0');
    happens(s);
    expect(s.why('n0').because).toBe(because);
  });

  it('names who holds the unit, and what he is at', () => {
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
    s.reports_('n0', 'x');
    expect(s.why('n0').because).toBe('not-rendered');
  });
});

describe('answers in pages', () => {
  it('list every rollout once, by age', () => {
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

  it('go on behind a cursor that is gone', () => {
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

  it('tell a change that has not started from one that is not known', () => {
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
