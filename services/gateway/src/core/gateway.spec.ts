import type { ChangeView, Fragment } from '#libs/contracts';
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
  it('publishes a new object once, after the debounce, and only when it has the finalizer', () => {
    world.apply('a', '1').act();
    expect([world.lines, world.objects.get('File/a')?.finalizers]).toEqual([[], [FINALIZER]]);
    expect(world.look().wakeAtMs).toBe(10_000 + DEBOUNCE_MS);
    world.rest();
    expect(world.lines).toEqual(['+a=1']);
  });

  it('combines edits within the debounce into one change', () => {
    world.apply('a', '1').act();
    world.nowMs += DEBOUNCE_MS - 1;
    world.apply('b', '1').act();
    world.nowMs += DEBOUNCE_MS - 1;
    expect(world.act().lines).toEqual([]);
    expect(world.rest().lines).toEqual(['+a=1 +b=1']);
  });

  it('eventually publishes what is edited all the time', () => {
    for (let i = 0; i < 30; i += 1) {
      world.apply('a', String(i)).act();
      world.nowMs += DEBOUNCE_MS / 2;
    }
    expect(world.lines.length).toBe(1);
  });

  it.each<[what: string, again: (world: GatewayWorld) => void]>([
    ['the same again', (w) => w.apply('a', '1')],
    ['an annotation, or another change outside the fragment', (w) => w.edit('a', {})],
    ['a status that somebody else wrote', (w) => w.edit('a', { status: { phase: 'Odd' } })],
    ['a restart', (w) => w.restart()],
    ['two restarts before the merger has taken it', (w) => w.restart().restart()],
  ])('publishes nothing for %s', (_what, again) => {
    world.apply('a', '1').rest();
    again(world);
    expect(world.rest().lines).toEqual(['+a=1']);
    world.show('c1', 'committed');
    again(world);
    expect(world.rest().lines).toEqual(['+a=1']);
  });

  it('does not publish what cannot get the finalizer, and publishes the others after that was tried', () => {
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
    'also sets the finalizer on an object that another source published: %s',
    (phase) => {
      world.show(
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
    expect(world.bodyOf('c2').apply[0]?.metadata).toEqual({ name: 'a', labels: { team: 'x' } });
  });

  it('corrects an open change, and returns to the content before it', () => {
    world.apply('a', '1').rest();
    world.apply('a', '2').rest();
    world.apply('a', '1').rest();
    expect(world.lines).toEqual(['+a=1', '+a=2', '+a=1']);
  });

  it.each<[what: string, phase: ChangeView['phase'], more: Partial<ChangeView>, lines: readonly string[]]>([
    ['does not publish what another source has committed', 'committed', {}, []],
    ['does not publish what another source is rolling out', 'rolling', {}, []],
    ['does not retry what was rejected from another source', 'rejected', {}, []],
    ['publishes what was superseded, because it was never tried', 'ended', { outcome: 'superseded' }, ['+a=1']],
  ])('%s', (_what, phase, more, lines) => {
    const change = world.publish({
      apply: [{ kind: 'File', metadata: { name: 'a' }, spec: { nodeSelector: {}, path: '/etc/a', content: '1' } }],
    });
    world.show(change, phase, more);
    expect(world.apply('a', '1').rest().lines).toEqual(lines);
  });

  it('publishes an object again if another source committed different content, but not after a failed attempt', () => {
    world.apply('a', '1').rest().show('c1', 'committed');
    const other = (content: string): string =>
      world.publish({
        apply: [{ kind: 'File', metadata: { name: 'a' }, spec: { nodeSelector: {}, path: '/etc/a', content } }],
      });
    world.show(other('theirs'), 'rejected').rest();
    expect(world.lines).toEqual(['+a=1']);
    world.show(other('theirs'), 'committed').rest();
    expect(world.lines).toEqual(['+a=1', '+a=1']);
  });

  it('forgets changes that the merger no longer shows, and decides as before', () => {
    world.apply('a', '1').rest().show('c1', 'committed').rest();
    world.apply('a', '2').rest().show('c2', 'committed').rest();
    world.publish({ apply: [] });
    world.show('c3', 'rejected').rest();
    const { lines, state } = world;
    const { index } = state;
    expect([...index.all()].map(({ change }) => change)).toEqual(['c1', 'c2', 'c3']);
    for (const change of ['c1', 'c3', 'c9']) state.forgetView('changes', change);
    expect([...index.all()].map(({ change }) => change)).toEqual(['c2']);
    expect(['c1', 'c3'].map((change) => [index.contentsOf(change), index.endedMs(change)])).toEqual([
      [undefined, 0],
      [undefined, 0],
    ]);
    expect(index.touchingOf('File/a').map(({ change }) => change)).toEqual(['c2']);
    expect(world.rest().lines).toEqual(lines);
    expect(world.apply('a', '3').rest().lines).toEqual([...lines, '+a=3']);
  });

  it('leaves alone what a person rolled back, until the object is edited or its change is named', () => {
    world.apply('a', '1').apply('b', '1').rest().show('c1', 'committed');
    world.apply('a', '2').apply('b', '2').rest().show('c2', 'committed').rest();
    const before = (name: string): object => ({
      kind: 'File',
      metadata: { name },
      spec: { nodeSelector: {}, path: `/etc/${name}`, content: '1' },
    });
    const rollback = world.publish({ apply: [before('a'), before('b')] });
    for (const phase of ['rolling', 'committed'] as const)
      world.show(rollback, phase, { rollbackOf: 'c2' }).rest().restart().rest();
    expect(world.lines.slice(2)).toEqual([]);
    expect(world.status('a')).toMatchObject({
      phase: 'RolledBack',
      message: expect.stringMatching(/^c2 was rolled back by c3; .* sluice.dev\/retry=c3 /) as string,
    });
    expect(world.condition('b', 'Ready')).toBe('False RolledBack');
    world.apply('a', '3').rest();
    world.edit('b', { retry: rollback }).rest();
    expect(world.lines.slice(2)).toEqual(['+a=3', '+b=2']);
    world.show('c5', 'ended', { outcome: 'reverted', reason: 'w-1 said no' }).rest().restart().rest();
    expect(world.lines.length).toBe(4);
    expect(world.status('b')).toMatchObject({ phase: 'Reverted', message: 'w-1 said no' });
  });

  it('deletes an object although the deletion of an earlier one was rolled back', () => {
    world.apply('a', '1').rest().show('c1', 'committed').rest().remove('a').rest().show('c2', 'committed').rest();
    const again = { kind: 'File', metadata: { name: 'a' }, spec: { nodeSelector: {}, path: '/etc/a', content: '1' } };
    world.show(world.publish({ apply: [again] }), 'committed', { rollbackOf: 'c2' }).rest();
    world.apply('a', '1').rest().remove('a').rest();
    expect(world.lines).toEqual(['+a=1', '-a', '-a']);
  });

  it('reads the content of a change that was refused for its form, and does not publish it again', () => {
    world.apply('a', '1').rest();
    world.show('c1', 'rejected', {
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

describe('an object that cannot be published', () => {
  it('is skipped with a reason, and delays no other', () => {
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

  it('is not retried unchanged, but what was refused with it is, once the cause was edited', () => {
    world.apply('a', '1').apply('b', '1').rest().show('c1', 'rejected', refusal('File/a')).restart().rest();
    expect([world.lines, world.condition('a', 'Validated'), world.condition('b', 'Validated')]).toEqual([
      ['+a=1 +b=1'],
      'False Conflict',
      'False RefusedWithOthers',
    ]);
    world.apply('a', '2').rest();
    expect(world.lines).toEqual(['+a=1 +b=1', '+a=2 +b=1']);
  });

  it('is deleted without a trace, and what was refused with it is retried', () => {
    world.apply('a', '1').apply('b', '1').rest().show('c1', 'rejected', refusal('File/a')).remove('a').rest();
    expect([world.lines, world.objects.has('File/a')]).toEqual([['+a=1 +b=1', '+b=1'], false]);
    expect(world.show('c2', 'rejected', refusal('File/b')).rest().lines.length).toBe(2);
  });

  it('that belongs to another source is published again once it may be taken over, and its neighbours without it', () => {
    const owned = { reasons: [{ fragment: 'File/a', field: '', code: 'owned-by', message: 'of ci', nodes: [] }] };
    world.apply('a', '1').apply('b', '1').rest().show('c1', 'rejected', owned).rest();
    expect(world.lines).toEqual(['+a=1 +b=1', '+b=1']);
    world.show('c2', 'committed').restart().rest();
    expect(world.lines.length).toBe(2);
    expect(world.condition('a', 'Validated')).toBe('False OwnedBy');
    world.edit('a', { takeOver: true }).rest();
    expect(JSON.parse(world.published[2]?.text ?? '{}')).toMatchObject({ takeOver: true, delete: [] });
    expect(world.lines.slice(2)).toEqual(['+a=1']);
  });

  it('that may be taken over is not published together with what may not', () => {
    world.apply('a', '1', { takeOver: true }).apply('b', '1').apply('c', '1', { takeOver: true }).rest();
    expect(world.lines).toEqual(['+b=1', '+a=1 +c=1']);
    expect(world.published.map(({ text }) => (JSON.parse(text) as { takeOver?: boolean }).takeOver)).toEqual([
      undefined,
      true,
    ]);
  });

  it('is tried again when a person names the change that failed, once', () => {
    world.apply('a', '1').rest().show('c1', 'ended', { outcome: 'reverted', reason: 'w-1 said no' }).rest();
    expect(world.status('a')).toMatchObject({ phase: 'Reverted', message: 'w-1 said no' });
    world.edit('a', { retry: 'c1' }).rest();
    world.show('c2', 'ended', { outcome: 'reverted' }).rest();
    expect(world.lines).toEqual(['+a=1', '+a=1']);
  });
});

describe('an object that exceeds the quota of the day', () => {
  const MINUTE = 60_000;
  const reasons = [{ fragment: '', field: '', code: 'over-quota', message: 'wait', nodes: [] }];
  const overQuota = { apply: [], delete: [], reasons };

  it('says when it is tried again, and is tried again by any copy until the quota is free', () => {
    world.apply('a', '1').rest().show('c1', 'rejected', overQuota).rest();
    const words =
      'wait; it is tried again automatically after 10m; to try it now: kubectl annotate files.sluice.dev a sluice.dev/retry=c1 --overwrite';
    expect(world.status('a')).toMatchObject({ phase: 'Rejected', message: words });
    expect(world.status('a').conditions?.find(({ type }) => type === 'Ready')?.message).toBe(words);
    expect(world.condition('a', 'Accepted')).toBe('False OverQuota');
    for (const [i, minutes] of [10, 20, 40, 60, 60].entries()) {
      world.nowMs += (minutes - 6) * MINUTE;
      expect(world.restart().act().lines.length).toBe(i + 1);
      world.nowMs += 6 * MINUTE;
      expect(world.rest().lines.length).toBe(i + 2);
      world.show(`c${i + 2}`, 'rejected', overQuota).act();
    }
    world.nowMs += 60 * MINUTE;
    world.rest().show('c7', 'committed').rest();
    expect([world.status('a')['phase'], world.lines.length]).toEqual(['Ready', 7]);
  });

  it('is deleted again, too', () => {
    world.apply('a', '1').rest().show('c1', 'committed').remove('a').rest().show('c2', 'rejected', overQuota).rest();
    world.nowMs += 10 * MINUTE;
    expect(world.rest().lines).toEqual(['+a=1', '-a', '-a']);
  });
});

describe('what is committed', () => {
  it('is known without the change that contained it', () => {
    world.apply('a', '1').rest().show('c1', 'committed').rest();
    const published = [...world.published];
    world.restart();
    const { kind, name, labels, spec } = world.objects.get('File/a') as never as Fragment;
    world.state.showFragment({ fragment: { kind, name, labels, spec }, change: 'c1', gone: false });
    // The stream and the ledger are trimmed.
    world.published.splice(0, 1, { text: '', source: 'kubernetes', id: '' });
    expect(world.rest().published.length).toBe(published.length);
    expect(world.condition('a', 'Ready')).toBe('True Committed');
  });
});

describe('deleting', () => {
  it('publishes the deletion, and releases the object when that is committed', () => {
    world.apply('a', '1').rest().show('c1', 'committed').rest().remove('a').rest();
    expect([world.lines, world.objects.has('File/a'), world.condition('a', 'Ready')]).toEqual([
      ['+a=1', '-a'],
      true,
      'False Deleting',
    ]);
    world.show('c2', 'rolling').restart().rest();
    expect(world.objects.has('File/a')).toBe(true);
    world.show('c2', 'committed').rest();
    expect([world.lines, world.objects.size]).toEqual([['+a=1', '-a'], 0]);
  });

  it('with deletion: everyNode, keeps the object until no node has it any more, and names those that have', () => {
    world
      .apply('a', '1', { spec: { deletion: 'everyNode' } as never })
      .rest()
      .show('c1', 'committed')
      .rest();
    const { kind, name, labels, spec } = world.objects.get('File/a') as never as Fragment;
    const shown = (change: string, gone: boolean, more: object = {}) =>
      world.state.showFragment({ fragment: { kind, name, labels, spec }, change, gone, ...more });
    shown('c1', false);
    world.remove('a').rest().show('c2', 'committed').rest();
    expect(world.objects.has('File/a')).toBe(true);
    const counts = { nodes: 3, upToDate: 1, applying: 0, failed: 0, deferred: 2, waiting: 0 };
    shown('c2', true, { removing: true, stillOn: ['n1', 'n2'], counts });
    world.restart();
    shown('c2', true, { removing: true, stillOn: ['n1', 'n2'], counts });
    world.rest();
    expect(world.objects.get('File/a')?.status).toMatchObject({
      phase: 'Deleting',
      message: expect.stringMatching(/^still on n1, n2: it is removed there/),
    });
    shown('c2', true, { removing: false, stillOn: [] });
    world.rest();
    expect(world.objects.has('File/a')).toBe(false);
  });

  it('releases an object at once that was never committed', () => {
    world.apply('a', '1').act().remove('a').rest();
    expect([world.lines, world.objects.size]).toEqual([[], 0]);
  });

  it('deletes what an open change applies', () => {
    world.apply('a', '1').rest().remove('a').rest();
    expect(world.lines).toEqual(['+a=1', '-a']);
  });

  it('shows after a rollback when it is retried and how a person can retry it at once, and retries it', () => {
    world
      .apply('a', '1')
      .rest()
      .show('c1', 'committed')
      .remove('a')
      .rest()
      .show('c2', 'ended', { outcome: 'reverted', reason: 'n1 is invalid' })
      .rest();
    expect(world.status('a')['message']).toBe(
      'the deletion is reverted: n1 is invalid; it is tried again automatically after 10m; to try it now: kubectl annotate files.sluice.dev a sluice.dev/retry=c2 --overwrite',
    );
    expect(world.edit('a', { retry: 'c2' }).rest().lines.slice(2)).toEqual(['-a']);
  });

  it('shows a refusal, and is retried when another change was committed or a config was cleared', () => {
    world.apply('a', '1').rest().show('c1', 'committed').remove('a').rest();
    world.show('c2', 'rejected', refusal('File/a')).restart().rest();
    expect([world.lines.length, world.status('a')['phase'], world.condition('a', 'Ready')]).toEqual([
      2,
      'DeletionFailed',
      'False DeletionFailed',
    ]);
    world.show(world.publish({ apply: [] }), 'committed').rest();
    expect(world.lines.slice(2)).toEqual(['-a']);
    world.show('c4', 'rejected', refusal('File/a')).rest();
    world.state.showKnownBad({ clearedBy: 'me', ledger: 1_000 } as never);
    expect(world.rest().lines.slice(2)).toEqual(['-a', '-a']);
    expect(world.rest().lines.length).toBe(4);
  });

  it('is not retried after a rollback on nodes for unrelated reasons', () => {
    world
      .apply('a', '1')
      .rest()
      .show('c1', 'committed')
      .remove('a')
      .rest()
      .show('c2', 'ended', { outcome: 'reverted' });
    world.show(world.publish({ apply: [] }), 'committed').rest();
    expect(world.lines).toEqual(['+a=1', '-a']);
    expect(world.edit('a', { retry: 'c2' }).rest().lines).toEqual(['+a=1', '-a', '-a']);
  });

  describe('after a rollback', () => {
    const MINUTE = 60_000;
    /** The deletion ends, and this much time passes. */
    const rollsBack = (change: string, afterMs: number, reason = 'n1 is failed: no room'): readonly string[] => {
      world.show(change, 'ended', { outcome: 'reverted', reason });
      world.nowMs += afterMs;
      return world.act().lines.slice(2);
    };
    beforeEach(() => {
      world.apply('a', '1').rest().show('c1', 'committed').remove('a').rest();
    });

    it('is retried on its own by any copy, and each pause is twice as long as the one before', () => {
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

    it('is retried soon when the node that caused the rollback has left', () => {
      expect(rollsBack('c2', 5 * MINUTE)).toEqual([]);
      world.state.showNode({ node: 'n2', state: 'gone' });
      expect(world.rest().lines.slice(2)).toEqual([]);
      world.state.showNode({ node: 'n1', state: 'gone' });
      expect(world.rest().lines.slice(2)).toEqual(['-a']);
      world.show('c3', 'ended', { outcome: 'reverted', reason: 'n2 is failed: no room, too' }).act();
      world.nowMs += MINUTE;
      world.act();
      expect(world.look().wakeAtMs).toBe(world.nowMs + MINUTE);
    });

    it('waits for a person if a person aborted it', () => {
      world.show('c2', 'ended', { outcome: 'aborted', reason: 'no' }).rest();
      world.nowMs += 24 * 60 * MINUTE;
      expect([world.rest().lines.slice(2), world.status('a')['message']]).toEqual([
        [],
        'the deletion is aborted: no; to try it again: kubectl annotate files.sluice.dev a sluice.dev/retry=c2 --overwrite',
      ]);
    });

    it('is not retried by time if it was refused before it reached a node', () => {
      rollsBack('c2', 10 * MINUTE);
      world.rest().show('c3', 'rejected', refusal('File/a'));
      world.nowMs += 24 * 60 * MINUTE;
      expect(world.rest().lines.slice(2)).toEqual(['-a']);
    });

    it('does not include an object that should exist, which waits for an edit', () => {
      world
        .apply('b', '1')
        .rest()
        .show('c3', 'ended', { outcome: 'reverted', reason: 'n1 is invalid' })
        .show('c2', 'rolling');
      world.state.showNode({ node: 'n1', state: 'gone' });
      world.nowMs += 24 * 60 * MINUTE;
      expect(world.rest().lines.slice(2)).toEqual(['+b=1']);
    });
  });

  it('ignores a deleted object without its finalizer', () => {
    world.publish({
      apply: [{ kind: 'File', metadata: { name: 'a' }, spec: { nodeSelector: {}, path: '/etc/a', content: '1' } }],
    });
    world
      .show('c1', 'committed')
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
  it('is written only if it differs, and at most once a second for each object', () => {
    world.apply('a', '1').rest().show('c1', 'rolling').rollout('c1', { applied: 0 }).rest();
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
    world.apply('a', '1').rest().show('c1', 'rolling').rest();
    const accepted = world.status('a').conditions?.find(({ type }) => type === 'Accepted');
    world.nowMs += 60_000;
    const at = `t${world.nowMs}`;
    world.show('c1', 'committed').rest();
    expect(world.status('a').conditions?.find(({ type }) => type === 'Accepted')?.lastTransitionTime).toBe(
      accepted?.lastTransitionTime,
    );
    expect(world.status('a').conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
      status: 'True',
      lastTransitionTime: at,
    });
  });

  it('is ready only together with the matching counts, whichever view arrives first', () => {
    world.apply('a', '1').rest().show('c1', 'rolling').rollout('c1', { phase: 'rolling', applied: 1 }).rest();
    world.show('c1', 'committed').rest();
    expect([world.condition('a', 'Ready'), world.status('a')['applied']]).toEqual(['False Rolling', 1]);
    world.rollout('c1', { phase: 'succeeded', applied: 2 }).rest();
    expect([world.condition('a', 'Ready'), world.status('a')['applied']]).toEqual(['True Committed', 2]);
  });

  it.each<[phase: ChangeView['phase'], more: Partial<ChangeView>, word: string, ready: string]>([
    ['accepted', {}, 'Reviewing', 'False InReview'],
    ['waiting', { waitsFor: ['c9'] }, 'Waiting', 'False Waiting'],
    ['waiting', { needs: ['Vrf/red'] }, 'Waiting', 'False MissingReference'],
    ['rolling', {}, 'Rolling', 'False Rolling'],
    ['committed', {}, 'Ready', 'True Committed'],
    ['rejected', {}, 'Rejected', 'False Rejected'],
    ['ended', { outcome: 'aborted' }, 'Aborted', 'False Aborted'],
  ])('of a change that is %s', (phase, more, word, ready) => {
    world.apply('a', '1').rest().show('c1', phase, more).rest();
    expect([world.status('a')['phase'], world.condition('a', 'Ready'), world.status('a')['change']]).toEqual([
      word,
      ready,
      'c1',
    ]);
  });
});

describe('rollouts', () => {
  it('exist for open changes and for the last ten that ended', () => {
    for (let i = 1; i <= 14; i += 1) world.show(world.publish({ apply: [] }), i % 7 === 0 ? 'rolling' : 'committed');
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
    world.show('c7', 'committed').rest();
    expect([world.rollouts.has('c3'), world.rollouts.size]).toEqual([false, 11]);
  });

  it('are paused and resumed only by an edit of the spec, once for each edit', () => {
    world
      .show(world.publish({ apply: [] }), 'rolling')
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
