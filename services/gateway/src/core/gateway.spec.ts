import type { ChangeView } from '#libs/contracts';
import { MAX_CHANGE_BYTES, utf8Bytes } from '#libs/manifests';
import { DEBOUNCE_MS, GatewayWorld } from './gateway.fixture.js';
import { FINALIZER } from './resource.js';

let world: GatewayWorld;
beforeEach(() => {
  world = new GatewayWorld().restart();
});

const refusal = (fragment: string): Partial<ChangeView> => ({
  reasons: [{ fragment, field: 'spec.path', code: 'conflict', message: 'two of a kind', nodes: [] }],
});

describe('publishing', () => {
  it('publishes a new object once, behind the debounce, and only once it holds it', () => {
    world.apply('a', '1').act();
    expect([world.lines, world.objects.get('File/a')?.finalizers]).toEqual([[], [FINALIZER]]);
    expect(world.look().wakeAtMs).toBe(10_000 + DEBOUNCE_MS);
    world.rest();
    expect(world.lines).toEqual(['+a=1']);
  });

  it('takes into one change what comes within a debounce of each other', () => {
    world.apply('a', '1').act();
    world.nowMs += DEBOUNCE_MS - 1;
    world.apply('b', '1').act();
    world.nowMs += DEBOUNCE_MS - 1;
    expect(world.act().lines).toEqual([]);
    expect(world.rest().lines).toEqual(['+a=1 +b=1']);
  });

  it('publishes in the end what never stops being edited', () => {
    for (let i = 0; i < 30; i += 1) {
      world.apply('a', String(i)).act();
      world.nowMs += DEBOUNCE_MS / 2;
    }
    expect(world.lines.length).toBe(1);
  });

  it.each<[what: string, again: (world: GatewayWorld) => void]>([
    ['the same again', (w) => w.apply('a', '1')],
    ['an annotation, or whatever else is no part of a fragment', (w) => w.edit('a', {})],
    ['a status that somebody wrote', (w) => w.edit('a', { status: { phase: 'Odd' } })],
    ['a restart', (w) => w.restart()],
    ['two restarts before the merger has taken it', (w) => w.restart().restart()],
  ])('publishes nothing for %s', (_what, again) => {
    world.apply('a', '1').rest();
    again(world);
    expect(world.rest().lines).toEqual(['+a=1']);
    world.stand('c1', 'committed');
    again(world);
    expect(world.rest().lines).toEqual(['+a=1']);
  });

  it('publishes nothing that it cannot hold, and the others once that was tried', () => {
    world.unheld.add('a');
    world.apply('a', '1').apply('b', '1');
    world.nowMs += DEBOUNCE_MS;
    expect([world.look().publish, world.look().wakeAtMs]).toEqual([[], world.nowMs + DEBOUNCE_MS]);
    world.nowMs += DEBOUNCE_MS;
    expect(world.look().publish).toEqual([]);
    expect(world.act().lines).toEqual(['+b=1']);
    world.unheld.clear();
    world.nowMs += 60_000;
    world.act();
    world.nowMs += 60_000;
    expect(world.act().lines).toEqual(['+b=1', '+a=1']);
  });

  it.each<[phase: ChangeView['phase']]>([['rolling'], ['committed'], ['rejected']])(
    'holds an object too that others published: %s',
    (phase) => {
      world.stand(
        world.publish({
          apply: [{ kind: 'File', metadata: { name: 'a' }, spec: { nodeSelector: {}, path: '/etc/a', content: '1' } }],
        }),
        phase,
      );
      world.apply('a', '1').rest();
      expect([world.lines, world.objects.get('File/a')?.finalizers]).toEqual([[], [FINALIZER]]);
    },
  );

  it('publishes labels as a part of the fragment', () => {
    world.apply('a', '1').rest();
    expect(world.edit('a', { labels: { team: 'x' } }).rest().lines).toEqual(['+a=1', '+a=1']);
    expect(world.saidBy('c2').apply[0]?.metadata).toEqual({ name: 'a', labels: { team: 'x' } });
  });

  it('corrects what is on its way, and rolls back to what was before', () => {
    world.apply('a', '1').rest();
    world.apply('a', '2').rest();
    world.apply('a', '1').rest();
    expect(world.lines).toEqual(['+a=1', '+a=2', '+a=1']);
  });

  it.each<[what: string, phase: ChangeView['phase'], more: Partial<ChangeView>, lines: readonly string[]]>([
    ['publishes nothing that others committed already', 'committed', {}, []],
    ['publishes nothing that others have on its way', 'rolling', {}, []],
    ['does not try again what others tried and was refused', 'rejected', {}, []],
    ['publishes what was superseded, and so never tried', 'ended', { outcome: 'superseded' }, ['+a=1']],
  ])('%s', (_what, phase, more, lines) => {
    const change = world.publish({
      apply: [{ kind: 'File', metadata: { name: 'a' }, spec: { nodeSelector: {}, path: '/etc/a', content: '1' } }],
    });
    world.stand(change, phase, more);
    expect(world.apply('a', '1').rest().lines).toEqual(lines);
  });

  it('puts an object in force again that others changed, and not what they tried in vain', () => {
    world.apply('a', '1').rest().stand('c1', 'committed');
    const other = (content: string): string =>
      world.publish({
        apply: [{ kind: 'File', metadata: { name: 'a' }, spec: { nodeSelector: {}, path: '/etc/a', content } }],
      });
    world.stand(other('theirs'), 'rejected').rest();
    expect(world.lines).toEqual(['+a=1']);
    world.stand(other('theirs'), 'committed').rest();
    expect(world.lines).toEqual(['+a=1', '+a=1']);
  });

  it('reads what was refused for its form, and does not publish it again', () => {
    world.apply('a', '1').rest();
    world.stand('c1', 'rejected', {
      apply: [],
      delete: [],
      reasons: [{ fragment: 'File/a', field: 'kind', code: 'unknown-kind', message: 'unknown kind', nodes: [] }],
    });
    expect(world.restart().rest().lines).toEqual(['+a=1']);
    expect([world.condition('a', 'Accepted'), world.status('a')['phase']]).toEqual(['False UnknownKind', 'Rejected']);
  });

  it('splits what does not fit into one message', () => {
    for (const name of ['a', 'b', 'c']) world.apply(name, 'x'.repeat(400 * 1_024));
    world.rest();
    expect(world.published.map(({ text }) => utf8Bytes(text) < MAX_CHANGE_BYTES)).toEqual([true, true, true]);
    expect(world.apply('d', 'x'.repeat(MAX_CHANGE_BYTES)).rest().published.length).toBe(3);
    expect(world.condition('d', 'Accepted')).toBe('False TooLarge');
  });
});

describe('what cannot be', () => {
  it('is not published, says why, and holds up no other', () => {
    world
      .apply('bad', '1', { spec: { path: 'relative' } })
      .apply('good', '1')
      .rest();
    expect(world.lines).toEqual(['+good=1']);
    expect(world.condition('bad', 'Accepted')).toBe('False BadPath');
    expect(world.status('bad')).toMatchObject({
      phase: 'Rejected',
      message: 'spec.path: must be absolute',
      observedGeneration: 1,
    });
    expect(world.objects.get('File/bad')?.finalizers).toEqual([]);
  });

  it('is not tried again as it is, but what was refused with it is, once the culprit has changed', () => {
    world.apply('a', '1').apply('b', '1').rest().stand('c1', 'rejected', refusal('File/a')).restart().rest();
    expect([world.lines, world.condition('a', 'Validated'), world.condition('b', 'Validated')]).toEqual([
      ['+a=1 +b=1'],
      'False Conflict',
      'False RefusedWithOthers',
    ]);
    world.apply('a', '2').rest();
    expect(world.lines).toEqual(['+a=1 +b=1', '+a=2 +b=1']);
  });

  it('goes without a trace, and what was refused with it is tried again', () => {
    world.apply('a', '1').apply('b', '1').rest().stand('c1', 'rejected', refusal('File/a')).remove('a').rest();
    expect([world.lines, world.objects.has('File/a')]).toEqual([['+a=1 +b=1', '+b=1'], false]);
    expect(world.stand('c2', 'rejected', refusal('File/b')).rest().lines.length).toBe(2);
  });

  it('is tried again when a person names the change that failed, once', () => {
    world.apply('a', '1').rest().stand('c1', 'ended', { outcome: 'reverted', reason: 'w-1 said no' }).rest();
    expect(world.status('a')).toMatchObject({ phase: 'Reverted', message: 'w-1 said no' });
    world.edit('a', { retry: 'c1' }).rest();
    world.stand('c2', 'ended', { outcome: 'reverted' }).rest();
    expect(world.lines).toEqual(['+a=1', '+a=1']);
  });
});

describe('deleting', () => {
  it('publishes the deletion, and lets the object go when that is committed', () => {
    world.apply('a', '1').rest().stand('c1', 'committed').rest().remove('a').rest();
    expect([world.lines, world.objects.has('File/a'), world.condition('a', 'Ready')]).toEqual([
      ['+a=1', '-a'],
      true,
      'False Deleting',
    ]);
    world.stand('c2', 'rolling').restart().rest();
    expect(world.objects.has('File/a')).toBe(true);
    world.stand('c2', 'committed').rest();
    expect([world.lines, world.objects.size]).toEqual([['+a=1', '-a'], 0]);
  });

  it('lets go at once of what was never anywhere', () => {
    world.apply('a', '1').act().remove('a').rest();
    expect([world.lines, world.objects.size]).toEqual([[], 0]);
  });

  it('takes back what is on its way', () => {
    world.apply('a', '1').rest().remove('a').rest();
    expect(world.lines).toEqual(['+a=1', '-a']);
  });

  it('that was rolled back says when it is tried again, how a person has it done at once, and does so', () => {
    world
      .apply('a', '1')
      .rest()
      .stand('c1', 'committed')
      .remove('a')
      .rest()
      .stand('c2', 'ended', { outcome: 'reverted', reason: 'n1 is invalid' })
      .rest();
    expect(world.status('a')['message']).toBe(
      'the deletion is reverted: n1 is invalid; it is tried again automatically after 10m; to try it now: kubectl annotate files.sluice.dev a sluice.dev/retry=c2 --overwrite',
    );
    expect(world.edit('a', { retry: 'c2' }).rest().lines.slice(2)).toEqual(['-a']);
  });

  it('says that it was refused, and is tried again when another change was committed, or a config cleared', () => {
    world.apply('a', '1').rest().stand('c1', 'committed').remove('a').rest();
    world.stand('c2', 'rejected', refusal('File/a')).restart().rest();
    expect([world.lines.length, world.status('a')['phase'], world.condition('a', 'Ready')]).toEqual([
      2,
      'DeletionFailed',
      'False DeletionFailed',
    ]);
    world.stand(world.publish({ apply: [] }), 'committed').rest();
    expect(world.lines.slice(2)).toEqual(['-a']);
    world.stand('c4', 'rejected', refusal('File/a')).rest();
    world.state.showKnownBad({ clearedBy: 'me', ledger: 1_000 } as never);
    expect(world.rest().lines.slice(2)).toEqual(['-a', '-a']);
    expect(world.rest().lines.length).toBe(4);
  });

  it('that was rolled back on the nodes is not repeated for any odd reason', () => {
    world
      .apply('a', '1')
      .rest()
      .stand('c1', 'committed')
      .remove('a')
      .rest()
      .stand('c2', 'ended', { outcome: 'reverted' });
    world.stand(world.publish({ apply: [] }), 'committed').rest();
    expect(world.lines).toEqual(['+a=1', '-a']);
    expect(world.edit('a', { retry: 'c2' }).rest().lines).toEqual(['+a=1', '-a', '-a']);
  });

  describe('that was rolled back', () => {
    const MINUTE = 60_000;
    /** The deletion ends, and so much time goes by. */
    const rollsBack = (change: string, afterMs: number, reason = 'n1 is failed: no room'): readonly string[] => {
      world.stand(change, 'ended', { outcome: 'reverted', reason });
      world.nowMs += afterMs;
      return world.act().lines.slice(2);
    };
    beforeEach(() => {
      world.apply('a', '1').rest().stand('c1', 'committed').remove('a').rest();
    });

    it('is tried again by itself, each time after twice as long, by whichever copy', () => {
      expect(rollsBack('c2', 9 * MINUTE)).toEqual([]);
      world.restart().act();
      world.nowMs += MINUTE;
      expect(world.rest().lines.slice(2)).toEqual(['-a']);
      expect(rollsBack('c3', 19 * MINUTE).length).toBe(1);
      world.nowMs += MINUTE;
      expect(world.restart().rest().lines.slice(2).length).toBe(2);
      for (const [i, minutes] of [40, 80, 160, 320, 360, 360].entries()) {
        expect(rollsBack(`c${i + 4}`, (minutes - 1) * MINUTE).length).toBe(i + 2);
        world.nowMs += MINUTE;
        expect(world.rest().lines.slice(2).length).toBe(i + 3);
      }
    });

    it('is tried again soon when the node that turned it has left', () => {
      expect(rollsBack('c2', 5 * MINUTE)).toEqual([]);
      world.state.showNode({ node: 'n2', state: 'gone' });
      expect(world.rest().lines.slice(2)).toEqual([]);
      world.state.showNode({ node: 'n1', state: 'gone' });
      expect(world.rest().lines.slice(2)).toEqual(['-a']);
      world.stand('c3', 'ended', { outcome: 'reverted', reason: 'n2 is failed: no room, too' }).act();
      world.nowMs += MINUTE;
      world.act();
      expect(world.look().wakeAtMs).toBe(world.nowMs + MINUTE);
    });

    it('waits for a person where a person aborted it', () => {
      world.stand('c2', 'ended', { outcome: 'aborted', reason: 'no' }).rest();
      world.nowMs += 24 * 60 * MINUTE;
      expect([world.rest().lines.slice(2), world.status('a')['message']]).toEqual([
        [],
        'the deletion is aborted: no; to try it again: kubectl annotate files.sluice.dev a sluice.dev/retry=c2 --overwrite',
      ]);
    });

    it('is not tried again by time once it was refused without touching a node', () => {
      rollsBack('c2', 10 * MINUTE);
      world.rest().stand('c3', 'rejected', refusal('File/a'));
      world.nowMs += 24 * 60 * MINUTE;
      expect(world.rest().lines.slice(2)).toEqual(['-a']);
    });

    it('is not what an object is that is to be there: that waits for an edit', () => {
      world
        .apply('b', '1')
        .rest()
        .stand('c3', 'ended', { outcome: 'reverted', reason: 'n1 is invalid' })
        .stand('c2', 'rolling');
      world.state.showNode({ node: 'n1', state: 'gone' });
      world.nowMs += 24 * 60 * MINUTE;
      expect(world.rest().lines.slice(2)).toEqual(['+b=1']);
    });
  });

  it('leaves an object alone that it does not hold', () => {
    world.publish({
      apply: [{ kind: 'File', metadata: { name: 'a' }, spec: { nodeSelector: {}, path: '/etc/a', content: '1' } }],
    });
    world
      .stand('c1', 'committed')
      .apply('a', '1', { deleting: true, finalizers: ['somebody.else/s'] })
      .rest();
    expect([
      world.lines,
      world.actions.filter(
        (action) => action.do !== 'make-rollout' && action.do !== 'show-rollout' && action.do !== 'show',
      ),
    ]).toEqual([[], []]);
  });
});

describe('status', () => {
  it('is written only where it differs, and at most once a second for each object', () => {
    world.apply('a', '1').rest().stand('c1', 'rolling').rollout('c1', { applied: 0 }).rest();
    const shows = (): number => world.actions.filter((action) => action.do === 'show').length;
    const before = shows();
    for (let applied = 1; applied <= 20; applied += 1) {
      world.rollout('c1', { applied, nodes: 20 }).act();
      world.nowMs += 100;
    }
    expect(shows() - before).toBeLessThanOrEqual(3);
    world.rest();
    expect(world.status('a')).toMatchObject({ phase: 'Rolling', applied: 20 });
    const after = shows();
    expect([world.rest().restart().rest(), shows()].slice(1)).toEqual([after]);
  });

  it('keeps the time of a condition that did not change', () => {
    world.apply('a', '1').rest().stand('c1', 'rolling').rest();
    const accepted = world.status('a').conditions?.find(({ type }) => type === 'Accepted');
    world.nowMs += 60_000;
    const at = `t${world.nowMs}`;
    world.stand('c1', 'committed').rest();
    expect(world.status('a').conditions?.find(({ type }) => type === 'Accepted')?.lastTransitionTime).toBe(
      accepted?.lastTransitionTime,
    );
    expect(world.status('a').conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
      status: 'True',
      lastTransitionTime: at,
    });
  });

  it('is ready only together with the counts that say so, whichever view is heard first', () => {
    world.apply('a', '1').rest().stand('c1', 'rolling').rollout('c1', { phase: 'rolling', applied: 1 }).rest();
    world.stand('c1', 'committed').rest();
    expect([world.condition('a', 'Ready'), world.status('a')['applied']]).toEqual(['False Rolling', 1]);
    world.rollout('c1', { phase: 'succeeded', applied: 2 }).rest();
    expect([world.condition('a', 'Ready'), world.status('a')['applied']]).toEqual(['True Committed', 2]);
  });

  it.each<[phase: ChangeView['phase'], more: Partial<ChangeView>, word: string, ready: string]>([
    ['accepted', {}, 'Reviewing', 'False InReview'],
    ['waiting', { waitsFor: ['c9'] }, 'Waiting', 'False Waiting'],
    ['rolling', {}, 'Rolling', 'False Rolling'],
    ['committed', {}, 'Ready', 'True Committed'],
    ['rejected', {}, 'Rejected', 'False Rejected'],
    ['ended', { outcome: 'aborted' }, 'Aborted', 'False Aborted'],
  ])('of a change that is %s', (phase, more, word, ready) => {
    world.apply('a', '1').rest().stand('c1', phase, more).rest();
    expect([world.status('a')['phase'], world.condition('a', 'Ready'), world.status('a')['change']]).toEqual([
      word,
      ready,
      'c1',
    ]);
  });
});

describe('rollouts', () => {
  it('are there for open changes and for the last ten that ended', () => {
    for (let i = 1; i <= 14; i += 1) world.stand(world.publish({ apply: [] }), i % 7 === 0 ? 'rolling' : 'committed');
    world.rest();
    expect([...world.rollouts.keys()].sort((a, b) => Number(a.slice(1)) - Number(b.slice(1)))).toEqual([
      'c3',
      'c4',
      'c5',
      'c6',
      'c7',
      'c8',
      'c9',
      'c10',
      'c11',
      'c12',
      'c13',
      'c14',
    ]);
    world.stand('c7', 'committed').rest();
    expect([world.rollouts.has('c3'), world.rollouts.size]).toEqual([false, 11]);
  });

  it('are paused and resumed by an edit of the spec alone, each edit once', () => {
    world
      .stand(world.publish({ apply: [] }), 'rolling')
      .rollout('c1', {})
      .rest();
    const edit = (paused: boolean): void =>
      world.putRollout({
        ...(world.rollouts.get('c1') as never as { readonly generation: number } & Parameters<
          GatewayWorld['putRollout']
        >[0]),
        paused,
        generation: (world.rollouts.get('c1')?.generation ?? 0) + 1,
      });
    const steers = (): readonly unknown[] =>
      world.actions.flatMap((action) => (action.do === 'steer' ? [action.pause] : []));
    edit(true);
    world.rest();
    expect([steers(), world.rollouts.get('c1')?.status]).toMatchObject([
      [true],
      { phase: 'Paused', observedGeneration: 2, paused: true },
    ]);
    world.rollout('c1', { paused: false }).restart().rest();
    expect(steers()).toEqual([true]);
    edit(false);
    world.rest();
    edit(true);
    world.rest();
    expect(steers()).toEqual([true, true]);
  });
});
