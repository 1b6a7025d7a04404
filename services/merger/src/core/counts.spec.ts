import type { NewFact } from '#libs/contracts';
import { changed, factOf, file, heard, left, LedgerCopy, pool, report, silent } from '#libs/testing';
import { ends, fleet, leased, reports, rollOut } from './counts.fixture.js';
import { Merger, rendered } from './merger.fixture.js';

const counts = (m: Merger, name: string) => {
  const { counts: shown, ...view } = m.view('fragments', `File.${name}`);
  const { rolling, inSync, appliedGeneration, appliedAt } = view;
  const text = Object.entries(shown ?? {})
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${what} ${count}`)
    .join(', ');
  return { text, rolling, inSync, appliedGeneration, appliedAt };
};
const text = (m: Merger, name: string): string => counts(m, name).text;

describe('the counts of a fragment', () => {
  it('say that all nodes have it once its change is committed', () => {
    const m = fleet('n0', 'n1', 'n2');
    rollOut(m, 1, file('a', '1'));
    expect(counts(m, 'a')).toMatchObject({ text: 'nodes 3, upToDate 3', rolling: '', inSync: true });
    expect(counts(m, 'a')).toMatchObject({ appliedGeneration: 1, appliedAt: expect.stringMatching(/^2026-01-01T/) });
  });

  it('follow the rollout of a new version', () => {
    const m = fleet('n0', 'n1', 'n2', 'n3');
    rollOut(m, 1, file('a', '1'), file('b', '1'));
    m.publishes(2, file('a', '2'));
    expect(text(m, 'a')).toBe('nodes 4, upToDate 4');
    m.starts('c2');
    expect(counts(m, 'a')).toMatchObject({ text: 'nodes 4, waiting 4', rolling: 'c2', inSync: false, appliedAt: '' });
    m.given(leased(m, 'n0', 'c2'), leased(m, 'n1', 'c2'), leased(m, 'n2', 'c2'));
    expect(text(m, 'a')).toBe('nodes 4, applying 3, waiting 1');
    m.given(ends(m, 'n0', 'c2', 'applied'), ends(m, 'n1', 'c2', 'failed'), ends(m, 'n2', 'c2', 'unknown'));
    m.given(factOf('node.deferred', { node: 'n3', change: 'c2', reason: 'silent' }));
    expect(text(m, 'a')).toBe('nodes 4, upToDate 1, failed 2, deferred 1');
    expect(counts(m, 'b')).toMatchObject({ text: 'nodes 4, upToDate 4', inSync: true });
  });

  it('do not count a node that was relabelled, and that a commit touches before it is rendered', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, file('a', '1', 'web'), file('x', '1', 'web'));
    m.given(changed('n1', { role: 'db' })).when();
    m.given(ends(m, 'n1', '', 'applied'));
    expect(text(m, 'x')).toBe('nodes 1, upToDate 1');
    m.publishes(2, file('a', '2', 'web'));
    m.starts('c2');
    m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied'));
    m.given(factOf('rollout.complete', { change: 'c2' }), changed('n1', { role: 'web' }));
    m.given(factOf('config.committed', { change: 'c2', generation: 2 })).when();
    expect(m.state.toRender.size).toBe(0);
    for (const name of ['a', 'x']) expect(text(m, name)).toBe('nodes 2, upToDate 1, waiting 1');
  });

  it('count a node that has the same config already, from the change that this one corrects', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, file('a', '1'));
    m.publishes(2, file('a', '2'));
    m.starts('c2');
    m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied')).when();
    m.publishes(3, file('a', '2'));
    m.starts('c3');
    expect(counts(m, 'a')).toMatchObject({ text: 'nodes 2, upToDate 1, waiting 1', rolling: 'c3' });
  });

  it('say during a rollback how many nodes have the committed version', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, file('a', '1'), file('b', '1'));
    const before = m.state.inForce.get('n0') as string;
    m.publishes(2, file('a', '2'));
    m.starts('c2');
    m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied'), factOf('rollout.reverting', { change: 'c2' }));
    expect(counts(m, 'a')).toMatchObject({ text: 'nodes 2, upToDate 1, waiting 1', rolling: '', inSync: false });
    expect(text(m, 'b')).toBe('nodes 2, upToDate 2');
    m.given(leased(m, 'n0', 'c2', 'rollback'));
    expect(text(m, 'a')).toBe('nodes 2, upToDate 1, applying 1');
    m.given(ends(m, 'n0', 'c2', 'applied', { hash: before }), factOf('rollout.reverted', { change: 'c2' })).when();
    expect(counts(m, 'a')).toMatchObject({ text: 'nodes 2, upToDate 2', inSync: true, appliedGeneration: 1 });
  });

  it('show a deferred node until it has caught up, and when that was', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, file('a', '1'), file('b', '1'));
    const committedAt = counts(m, 'b').appliedAt;
    m.publishes(2, file('a', '2'));
    m.starts('c2');
    m.given(silent('n1'), leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied'));
    m.given(factOf('node.deferred', { node: 'n1', change: 'c2', reason: 'silent' }));
    m.completes('c2');
    expect(counts(m, 'a')).toMatchObject({ text: 'nodes 2, upToDate 1, deferred 1', rolling: '', inSync: false });
    expect(text(m, 'b')).toBe('nodes 2, upToDate 2');
    m.given(heard('n1'), leased(m, 'n1', '', 'corrective'));
    expect(text(m, 'a')).toBe('nodes 2, upToDate 1, applying 1');
    m.given(ends(m, 'n1', '', 'applied'));
    expect(counts(m, 'a')).toMatchObject({ text: 'nodes 2, upToDate 2', inSync: true, appliedGeneration: 2 });
    expect(counts(m, 'a').appliedAt > (m.view('changes', 'c2').endedAt ?? '')).toBe(true);
    expect(counts(m, 'b')).toMatchObject({ inSync: true, appliedAt: committedAt });
  });

  it('are in sync only while every node is ready', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, file('a', '1'));
    const inSync = (...facts: readonly NewFact[]): boolean => {
      m.given(...facts);
      return counts(m, 'a').inSync;
    };
    const failingProbes = [{ probe: 'p', reason: 'no' }];
    expect(inSync(silent('n0'))).toBe(false);
    expect(inSync(factOf('node.taken', { node: 'n0', owner: 'me' }))).toBe(false);
    expect(inSync(heard('n0'))).toBe(false);
    expect(inSync(factOf('node.returned', { node: 'n0', owner: 'me' }))).toBe(true);
    expect(inSync(factOf('node.unavailable', { node: 'n1', because: 'NotReady' }))).toBe(false);
    expect(inSync(factOf('node.available', { node: 'n1' }))).toBe(true);
    expect(inSync(factOf('node.unhealthy', { node: 'n1', failingProbes }))).toBe(false);
    expect(counts(m, 'a')).toMatchObject({ text: 'nodes 2, upToDate 2', appliedGeneration: 0, appliedAt: '' });
    expect(inSync(factOf('node.healthy', { node: 'n1' }))).toBe(true);
    const says = (more: object): NewFact =>
      factOf('node.reported', { ...report('n1', m.state.inForce.get('n1') as string), report: 'announced', ...more });
    expect(inSync(says({ restored: false }))).toBe(false);
    expect(inSync(says({ report: 'drifted', differences: ['/etc/a: content'] }))).toBe(false);
    expect(inSync(says({}))).toBe(false);
    expect(inSync(says({ report: 'drifted', differences: [] }))).toBe(true);
    expect(inSync(silent('n0'), left('n0'))).toBe(true);
    expect(text(m, 'a')).toBe('nodes 1, upToDate 1');
  });

  it('count nodes that say that they differ from it apart from those that have it', () => {
    const m = fleet('n0', 'n1', 'n2');
    rollOut(m, 1, file('a', '1'), file('b', '1'));
    const differs = (node: string, ...differences: readonly string[]): NewFact =>
      factOf('node.reported', {
        ...report(node, m.state.inForce.get(node) as string, { differences }),
        report: 'drifted',
      });
    m.given(differs('n1', '/etc/a: content differs'), differs('n2', 'Sysctl/x: is 1 instead of 2'));
    expect(counts(m, 'a')).toMatchObject({ text: 'nodes 3, upToDate 2, drifted 1', inSync: false });
    expect(counts(m, 'b')).toMatchObject({ text: 'nodes 3, upToDate 3', inSync: false });
    // One that is behind, too, has another version.
    m.publishes(2, file('a', '2'));
    m.starts('c2');
    expect(text(m, 'a')).toBe('nodes 3, waiting 3');
    for (const node of ['n0', 'n1', 'n2']) m.given(leased(m, node, 'c2'), ends(m, node, 'c2', 'applied'));
    expect(text(m, 'a')).toBe('nodes 3, upToDate 3');
    m.given(differs('n0', '/etc/a: missing'));
    expect(text(m, 'a')).toBe('nodes 3, upToDate 2, drifted 1');
    m.completes('c2');
    expect(counts(m, 'a')).toMatchObject({ text: 'nodes 3, upToDate 2, drifted 1', inSync: false });
    m.given(differs('n0'));
    expect(counts(m, 'a')).toMatchObject({ text: 'nodes 3, upToDate 3', inSync: true });
    const leftovers = ['File/a: x: it is still being deleted'];
    const says = { ...report('n1', m.state.inForce.get('n1') as string, { leftovers }), report: 'announced' } as const;
    m.given(factOf('node.reported', says));
    expect(counts(m, 'a')).toMatchObject({ text: 'nodes 3, upToDate 2, drifted 1', inSync: false });
    expect(counts(m, 'b')).toMatchObject({ text: 'nodes 3, upToDate 3', inSync: true });
  });

  it('count a node that lost its config, one that has joined, and one with other labels, until they have it', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, file('a', '1', 'web'));
    const committed = m.state.inForce.get('n0') as string;
    m.given(reports('n0', 'empty'));
    expect(text(m, 'a')).toBe('nodes 2, upToDate 1, waiting 1');
    m.given(reports('n0', committed));
    expect(text(m, 'a')).toBe('nodes 2, upToDate 2');
    m.fleet(['n2'], 'web');
    expect(text(m, 'a')).toBe('nodes 3, upToDate 2, waiting 1');
    m.given(leased(m, 'n2', ''), ends(m, 'n2', '', 'applied'));
    expect(text(m, 'a')).toBe('nodes 3, upToDate 3');
    m.given(changed('n2', { role: 'db' })).when();
    expect(text(m, 'a')).toBe('nodes 2, upToDate 2');
    m.given(ends(m, 'n2', '', 'applied'), changed('n2', { role: 'web' })).when();
    expect(text(m, 'a')).toBe('nodes 3, upToDate 2, waiting 1');
    m.given(factOf('node.reviewed', { node: 'n2', compatible: false }));
    expect(text(m, 'a')).toBe('nodes 3, upToDate 2, deferred 1');
  });

  it('are absent for policies', () => {
    const m = fleet('n0');
    rollOut(m, 1, pool('web', 1));
    expect(m.view('fragments', 'Pool.web')).toMatchObject({ inSync: true, appliedGeneration: 1 });
    expect(m.view('fragments', 'Pool.web')).not.toHaveProperty('counts');
  });

  it('say which nodes still have a deleted fragment, and whether its deletion waits for them', () => {
    const m = fleet('n0', 'n1', 'n2');
    const b = file('b', '1');
    rollOut(m, 1, file('a', '1'), { ...b, spec: { ...b.spec, deletion: 'everyNode' } as never });
    m.publishes(2, { gone: { kind: 'File', name: 'a' } }, { gone: { kind: 'File', name: 'b' } });
    m.starts('c2');
    m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'applied'), silent('n1'), silent('n2'));
    for (const node of ['n1', 'n2']) m.given(factOf('node.deferred', { node, change: 'c2', reason: 'silent' }));
    m.completes('c2');
    const shown = (name: string) => m.view('fragments', `File.${name}`);
    expect(shown('b')).toMatchObject({ gone: true, removing: true, stillOn: ['n1', 'n2'], inSync: false });
    expect(text(m, 'b')).toBe('nodes 3, upToDate 1, deferred 2');
    expect(shown('a')).toMatchObject({ gone: true, removing: false, stillOn: ['n1', 'n2'] });
    m.given(heard('n1'), leased(m, 'n1', '', 'corrective'), ends(m, 'n1', '', 'applied'));
    expect(shown('b')).toMatchObject({ removing: true, stillOn: ['n2'] });
    m.given(left('n2'));
    expect(shown('b')).toMatchObject({ gone: true, removing: false, stillOn: [] });
  });

  it('count no failure of a change that was rolled back if the node loses its config later', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, file('a', '1'));
    m.publishes(2, file('a', '2'));
    m.starts('c2');
    m.given(leased(m, 'n0', 'c2'), ends(m, 'n0', 'c2', 'failed'));
    expect(text(m, 'a')).toBe('nodes 2, failed 1, waiting 1');
    m.given(factOf('rollout.reverting', { change: 'c2' }), factOf('rollout.reverted', { change: 'c2' })).when();
    expect(text(m, 'a')).toBe('nodes 2, upToDate 2');
    m.given(reports('n0', 'empty'));
    expect(text(m, 'a')).toBe('nodes 2, upToDate 1, waiting 1');
  });
});

describe('changed counts', () => {
  /** The views that the merger asks to write now. */
  const written = (m: Merger): readonly string[] => {
    m.decide();
    return [...m.core.takeTouched(m.state)];
  };

  it('are shown at most once per second, and only where they have changed', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, file('a', '1', 'web'), file('b', '1', 'db'));
    m.after(1_000);
    m.nowMs += 1_000;
    m.given(silent('n0'));
    expect(written(m)).toEqual(['fragments/File.a']);
    m.given(heard('n0'));
    expect(written(m)).toEqual([]);
    expect(m.decide().wakeAtMs).toBe(m.nowMs + 1_000);
    m.nowMs += 1_000;
    expect(written(m)).toEqual(['fragments/File.a']);
    expect(m.decide().wakeAtMs).toBeUndefined();
  });

  it('are shown again if a view was written with facts that arrived after the decision', () => {
    const m = fleet('n0', 'n1');
    rollOut(m, 1, file('a', '1', 'web'));
    m.after(1_000);
    m.nowMs += 1_000;
    m.given(silent('n0'));
    m.decide();
    m.given(heard('n0')).showViews();
    // Now it is again as it was at the decision, and was not written.
    m.given(silent('n0'));
    m.nowMs += 1_000;
    expect(written(m)).toEqual(['fragments/File.a']);
  });

  it('of large fragments are shown less often', () => {
    const large = 'x'.repeat(800_000);
    const m = new Merger().fleet(['n0'], 'web').fleet(['n1'], 'db');
    m.commits(1, file('a', large, 'web'));
    m.commits(2, file('b', large, 'db'));
    m.nowMs += 10_000;
    m.given(silent('n0'), silent('n1'));
    expect(written(m)).toEqual(['fragments/File.a', 'fragments/File.b']);
    m.given(heard('n0'));
    expect((m.decide().wakeAtMs ?? 0) - m.nowMs).toBeCloseTo(1_600, -1);
  });
});

it('a snapshot from before the counts says when each fragment was committed, and that all nodes have it', () => {
  const m = fleet('n0', 'n1');
  rollOut(m, 1, file('a', '1'));
  const {
    inForce: _,
    behind: __,
    work: ___,
    notReady: ____,
    ...dumped
  } = m.core.dump(m.state) as Record<string, unknown>;
  const fragments = (dumped['fragments'] as [string, Record<string, unknown>][]).map(([id, row]) => {
    const { generation: _____, appliedAt: ______, ...rest } = row;
    return [id, rest];
  });
  const old = m.core.migrations?.[10]?.({ ...dumped, fragments });
  const copy = new LedgerCopy(m.core, m.ledger);
  copy.state = m.core.load(old, 0);
  expect(copy.view('fragments', 'File.a')).toMatchObject({
    counts: { nodes: 2, upToDate: 2 },
    appliedGeneration: 1,
    appliedAt: m.view('changes', 'c1').endedAt,
  });
});

it('the counts of all nodes agree with the configs that they have, in every order of what happens', () => {
  const m = fleet('n0', 'n1', 'n2');
  rollOut(m, 1, file('a', '1'), file('b', '1'));
  expect(rendered(m.publishes(2, file('a', '2')))).toHaveLength(1);
  m.starts('c2');
  m.given(leased(m, 'n1', 'c2'), ends(m, 'n1', 'c2', 'applied'), factOf('node.skipped', { node: 'n0', change: 'c2' }));
  m.given(factOf('node.deferred', { node: 'n2', change: 'c2' }));
  m.completes('c2');
  m.publishes(3, file('b', '3'));
  m.starts('c3');
  m.given(leased(m, 'n2', 'c3'), ends(m, 'n2', 'c3', 'applied'));
  expect([text(m, 'a'), text(m, 'b')]).toEqual(['nodes 3, upToDate 2, deferred 1', 'nodes 3, upToDate 1, waiting 2']);
  m.given(leased(m, 'n1', 'c3'), ends(m, 'n1', 'c3', 'applied')).when();
  m.given(factOf('node.deferred', { node: 'n0', change: 'c3' }));
  m.completes('c3');
  expect([text(m, 'a'), text(m, 'b')]).toEqual(['nodes 3, upToDate 2, deferred 1', 'nodes 3, upToDate 2, deferred 1']);
});
