import type { Fragment, NewFact } from '#libs/contracts';
import {
  accepted,
  changed,
  committed,
  ended,
  factOf,
  file,
  fragment,
  joined,
  left,
  linesOf,
  pool,
  renderedChange,
  renderedNode,
} from '#libs/testing';
import { API_VERSION } from '#libs/manifests';
import { emptyHash } from '#libs/rules';
import { changeBody, Merger, rendered, sha256 } from './merger.fixture.js';

const EMPTY = emptyHash(sha256);
const fleetOf = (...names: readonly string[]) => new Merger().fleet(names);
const gone = (kind: string, name: string) => ({ gone: { kind, name } });

describe('a published change', () => {
  it('is accepted with the sequence of its message as id, and rendered', () => {
    const facts = fleetOf('n0').publishes(7, file('motd', 'hello'));
    expect(linesOf(facts, 'change', 'source', 'attempt', 'nodes')).toEqual([
      'config.accepted c7 me',
      'config.rendered c7 1 1',
    ]);
  });

  it('is accepted once, however often it is delivered', () => {
    const m = fleetOf('n0');
    m.publishes(7, file('motd', 'hello'));
    expect(m.publishes(7, file('motd', 'hello'))).toEqual([]);
    expect(m.publishes(6, file('motd', 'late'))).toEqual([]);
    expect(m.core.cursor?.(m.state)).toBe(7);
  });

  it.each([
    ['{', 'not-json'],
    ['[]', 'wrong-type'],
    ['{"apply": []}', 'empty-change'],
    [JSON.stringify(changeBody([file('a', 'x'), file('a', 'y')])), 'duplicate'],
    [JSON.stringify(changeBody([fragment('File', 'a', { path: 'etc', content: '' })])), 'bad-path'],
  ])('with invalid form is rejected at once: %s', (text, code) => {
    const m = fleetOf('n0');
    expect(m.publishesText(1, text)).toMatchObject([
      { type: 'config.rejected', change: 'c1', stage: 'schema', reasons: [{ code }] },
    ]);
    expect(m.phase('c1')).toBe('rejected');
    expect(m.publishesText(1, text)).toEqual([]);
  });

  it('that cannot be rendered on a node is still reviewed, so that every reason is reported at once', () => {
    const m = fleetOf('n0');
    const facts = m.publishes(1, file('a', 'in {{ node.labels.zone }}'), file('b', 'x'));
    expect(facts).toContainEqual(
      expect.objectContaining({
        type: 'config.rendered',
        problems: [expect.objectContaining({ fragment: 'File/a', field: 'spec.content' })],
      }),
    );
    expect(Object.keys(rendered(facts)[0]?.targets ?? {})).toEqual(['n0']);
  });

  it('from a source that is not a label is rejected', () => {
    expect(fleetOf().publishesText(1, JSON.stringify(changeBody([file('a', 'x')])), 'Not A Label')).toMatchObject([
      { reasons: [{ code: 'bad-source' }] },
    ]);
  });

  it('with invalid form is rejected even while others block the queue', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('a', 'x'));
    expect(m.publishesText(2, '{')).toMatchObject([{ type: 'config.rejected', change: 'c2' }]);
  });
});

describe('the queue', () => {
  it('lets changes without a common node or fragment run in parallel', () => {
    const m = new Merger().fleet(['a0'], 'a').fleet(['b0'], 'b');
    m.publishes(1, file('one', 'x', 'a'));
    expect(rendered(m.publishes(2, file('two', 'x', 'b')))).toHaveLength(1);
  });

  it.each([
    ['a node', [file('two', 'x', 'a')]],
    ['a policy', [pool('edge', 2), file('two', 'x', 'b')]],
    ['a fragment that one of them deletes', [gone('File', 'one'), file('two', 'x', 'b')]],
  ])('makes the later change wait if both share %s', (_, fragments) => {
    const m = new Merger().fleet(['a0'], 'a').fleet(['b0'], 'b');
    m.publishes(1, file('one', 'x', 'a'), pool('edge', 1), file('more', 'x', 'a'));
    const facts = m.publishes(2, ...fragments);
    expect(linesOf(facts.slice(1), 'change', 'waitsFor')).toEqual(['config.waiting c2 ["c1"]']);
    expect(m.view('changes', 'c2')).toMatchObject({ phase: 'waiting', waitsFor: ['c1'] });
  });

  it('records once which changes a change waits for, and renders it when they have ended', () => {
    const m = new Merger().fleet(['a0'], 'a').fleet(['b0'], 'b');
    m.publishes(1, file('one', 'x', 'a'));
    m.publishes(2, file('two', 'x', 'b'));
    expect(linesOf(m.publishes(3, file('all', 'x')).slice(1), 'waitsFor')).toEqual(['config.waiting ["c1","c2"]']);
    expect(m.when()).toEqual([]);
    m.starts('c1');
    expect(linesOf(m.completes('c1'), 'change', 'waitsFor')).toEqual([
      'config.committed c1',
      'config.waiting c3 ["c2"]',
    ]);
    m.starts('c2');
    const facts = m.completes('c2');
    expect(rendered(facts)).toMatchObject([{ change: 'c3', attempt: 1, nodes: 2 }]);
  });

  it('continues after a change that was rejected', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('one', 'x'));
    m.publishes(2, file('two', 'x'));
    expect(
      rendered(m.given(factOf('config.rejected', { change: 'c1', stage: 'review', attempt: 1 })).when()),
    ).toMatchObject([{ change: 'c2' }]);
  });

  it('is sorted by number, not by text', () => {
    const m = fleetOf('n0');
    m.publishes(9, file('one', 'x'));
    expect(linesOf(m.publishes(10, file('two', 'x')).slice(1), 'change', 'waitsFor')).toEqual([
      'config.waiting c10 ["c9"]',
    ]);
  });
});

describe('a correction', () => {
  it('also waits for another change that is in progress on nodes it waits for, and records that', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('motd', 'first'));
    m.starts('c1');
    m.publishes(2, file('other', 'second'));
    const facts = m.publishes(3, gone('File', 'other')); // by itself it touches no node, because the file does not exist
    expect(linesOf(facts, 'change', 'waitsFor')).toEqual(['config.accepted c3', 'config.waiting c3 ["c1"]']);
    expect(rendered(m.completes('c1')).at(-1)).toMatchObject({ change: 'c3', replaces: ['c2'] });
  });

  it('is a change that touches every fragment of those that it overlaps, and replaces them at once', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('motd', 'bad'));
    m.starts('c1');
    expect(rendered(m.publishes(2, file('motd', 'good'), file('more', 'x')))).toMatchObject([
      { change: 'c2', replaces: ['c1'] },
    ]);
  });

  it('is rendered on the committed state without the older change, for the nodes of both', () => {
    const m = new Merger().fleet(['a0'], 'a').fleet(['b0'], 'b');
    m.publishes(1, file('motd', 'bad', 'a'));
    m.starts('c1');
    const [correction] = rendered(m.publishes(2, file('motd', 'good', 'b')));
    expect(Object.keys(correction?.targets ?? {})).toEqual(['a0', 'b0']);
    expect(correction?.targets['a0']).toMatchObject({ from: EMPTY, to: EMPTY });
  });

  it.each([
    ['has failed', 'rollout.reverting'],
    ['is complete', 'rollout.complete'],
    ['is aborted', 'rollout.aborted'],
  ] as const)('waits for the end of a change that %s meanwhile, and is rendered again', (_, type) => {
    const m = fleetOf('n0');
    m.publishes(1, file('motd', 'bad'));
    m.starts('c1');
    m.publishes(2, file('motd', 'good'));
    const facts = [
      ...m.given(factOf(type, { change: 'c1' })).when(),
      ...(type === 'rollout.complete' ? [] : m.given(factOf('rollout.reverted', { change: 'c1' })).when()),
    ];
    expect(rendered(facts)).toMatchObject([{ change: 'c2', attempt: 2, replaces: [] }]);
  });

  it('replaces the older change, and changes that waited for that one still wait', () => {
    const m = new Merger().fleet(['a0'], 'a').fleet(['b0'], 'b');
    m.publishes(1, file('motd', 'bad', 'a'));
    m.starts('c1');
    expect(linesOf(m.publishes(2, file('other', 'x', 'a')).slice(1), 'waitsFor')).toEqual(['config.waiting ["c1"]']);
    // It reverts the nodes of c1, for which c2 waits. By itself it shares nothing with c2.
    expect(rendered(m.publishes(3, file('motd', 'good', 'b')))).toMatchObject([{ change: 'c3', replaces: ['c1'] }]);
    expect(m.phase('c3')).toBe('rendered');
    expect(linesOf(m.starts('c3', ['c1']), 'change', 'waitsFor')).toEqual([
      'config.ended c1',
      'config.waiting c2 ["c3"]',
    ]);
    expect(rendered(m.completes('c3'))).toMatchObject([{ change: 'c2' }]);
  });

  it('of a change that rolls out passes changes of other fragments that wait behind that', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('motd', 'bad'));
    m.starts('c1');
    expect(linesOf(m.publishes(2, file('other', 'x')).slice(1), 'waitsFor')).toEqual(['config.waiting ["c1"]']);
    expect(rendered(m.publishes(3, file('motd', 'good')))).toMatchObject([{ change: 'c3', replaces: ['c1'] }]);
    expect(linesOf(m.starts('c3', ['c1']), 'change', 'waitsFor')).toEqual([
      'config.ended c1',
      'config.waiting c2 ["c3"]',
    ]);
    expect(rendered(m.completes('c3'))).toMatchObject([{ change: 'c2', replaces: [] }]);
  });

  it('waits for those if they no longer wait, because the change that it corrects has ended', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('motd', 'bad'));
    m.starts('c1');
    m.publishes(2, file('other', 'x'));
    m.publishes(3, file('motd', 'good'));
    const facts = m.completes('c1');
    expect(rendered(facts)).toMatchObject([{ change: 'c2' }]);
    expect(m.view('changes', 'c3')).toMatchObject({ phase: 'waiting', waitsFor: ['c2'] });
  });

  it('passes none that touch its fragments, and what corrects nothing passes none', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('motd', 'bad'));
    m.starts('c1');
    m.publishes(2, file('motd', 'x'), file('more', 'x'), file('most', 'x'));
    m.publishes(3, file('other', 'x'));
    m.publishes(4, file('motd', 'good'));
    m.publishes(5, file('last', 'x'));
    expect(['c4', 'c5'].map((change) => m.view('changes', change).waitsFor)).toEqual([
      ['c1', 'c2', 'c3'],
      ['c1', 'c2', 'c3', 'c4'],
    ]);
  });

  it('that does not touch all fragments waits', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('motd', 'bad'), file('more', 'x'));
    expect(linesOf(m.publishes(2, file('motd', 'good')).slice(1), 'waitsFor')).toEqual(['config.waiting ["c1"]']);
  });
});

describe('rendering', () => {
  it('reaches every node that a touched fragment selects or selected', () => {
    const m = new Merger().fleet(['a0'], 'a').fleet(['b0'], 'b').fleet(['c0'], 'c');
    m.commits(1, file('motd', 'x', 'a'));
    const [moved] = rendered(m.publishes(2, file('motd', 'x', 'b')));
    expect(Object.keys(moved?.targets ?? {})).toEqual(['a0', 'b0']);
    expect(moved?.targets['a0']?.to).toBe(EMPTY);
  });

  it('counts nodes that are touched but keep their config', () => {
    const m = fleetOf('n0', 'n1');
    m.commits(1, file('motd', 'same'));
    expect(rendered(m.publishes(2, file('motd', 'same')))).toMatchObject([{ nodes: 0, unchanged: 2 }]);
  });

  it('leaves out deferred nodes whose config stays the same: they get it outside the rollout', () => {
    const m = fleetOf('n0', 'n1');
    m.commits(1, file('motd', 'same'));
    m.given(factOf('node.deferred', { node: 'n1', reason: 'silent' }));
    expect(Object.keys(rendered(m.publishes(2, file('motd', 'same')))[0]?.targets ?? {})).toEqual([]);
  });

  it('starts from the committed hash, so that `from` is what a rollback restores', () => {
    const m = fleetOf('n0');
    const [first] = rendered(m.publishes(1, file('motd', 'one')));
    m.starts('c1');
    m.completes('c1');
    const [second] = rendered(m.publishes(2, file('motd', 'two')));
    expect(first?.targets['n0']?.from).toBe(EMPTY);
    expect(second?.targets['n0']?.from).toBe(first?.targets['n0']?.to);
  });

  it('gives the same content the same hash on every node, and the recipe of a template one digest', () => {
    const m = fleetOf('n0', 'n1');
    const [plain] = rendered(m.publishes(1, file('motd', 'same')));
    m.starts('c1');
    m.completes('c1');
    const [named] = rendered(m.publishes(2, file('motd', 'I am {{ node.name }}')));
    expect(plain?.targets['n0']?.to).toBe(plain?.targets['n1']?.to);
    expect(named?.targets['n0']?.to).not.toBe(named?.targets['n1']?.to);
    expect(named?.targets['n0']?.recipe).toBe(named?.targets['n1']?.recipe);
  });

  it('passes errors on to the review, with fragment and field', () => {
    const lines = fleetOf('n0').publishes(1, file('motd', '{{ node.labels.zone }}'));
    expect(lines.at(-1)).toMatchObject({
      type: 'config.rendered',
      problems: [{ fragment: 'File/motd', field: 'spec.content', nodes: ['n0'] }],
    });
  });

  it('is repeated if a node that it touches is relabelled or leaves before the start', () => {
    const m = fleetOf('n0', 'n1');
    m.publishes(1, file('motd', 'x'));
    expect(rendered(m.given(changed('n0', { zone: 'b' })).when())).toMatchObject([{ change: 'c1', attempt: 2 }]);
    expect(rendered(m.given(left('n1')).when())).toMatchObject([{ change: 'c1', attempt: 3, nodes: 1 }]);
  });

  it('refuses to add, change or remove the purpose of a committed fragment', () => {
    const m = fleetOf('n0');
    const purposed = (content: string, labels: object) =>
      JSON.stringify({
        apiVersion: API_VERSION,
        kind: 'File',
        metadata: { name: 'motd', labels },
        spec: { nodeSelector: {}, path: '/etc/motd', content },
      });
    m.publishesText(1, purposed('x', { 'sluice.dev/purpose': 'greeting' }));
    m.starts('c1');
    m.completes('c1');
    const other = m.publishesText(2, purposed('y', { 'sluice.dev/purpose': 'greeting', sdewanPurpose: 'edge' }));
    expect(other.at(-1)).toMatchObject({
      problems: [{ field: 'metadata.labels["sdewanPurpose"]', code: 'immutable' }],
    });
    const takesOver = JSON.stringify({ apply: [JSON.parse(purposed('y', {}))], takeOver: true });
    const taken = m.publishesText(3, takesOver, 'kubernetes');
    expect(taken.at(-1)).toMatchObject({
      problems: [
        {
          fragment: 'File/motd',
          field: 'metadata.labels["sluice.dev/purpose"]',
          code: 'immutable',
          message: 'is "greeting" and cannot be removed: delete File/motd and create it again',
        },
      ],
    });
  });

  it('warns about deleting a fragment that does not exist', () => {
    expect(fleetOf('n0').publishes(1, gone('File', 'never')).at(-1)).toMatchObject({
      type: 'config.rendered',
      warnings: [{ fragment: 'File/never', code: 'not-found' }],
    });
  });

  it('warns about a fragment that selects no node, unless there are no nodes', () => {
    const m = new Merger().fleet(['n0'], 'edge');
    const fragments = [pool('a', 1, 'edge'), pool('b', 1, 'egde'), file('f', 'x', 'core')];
    expect(m.publishes(1, ...fragments).at(-1)).toMatchObject({
      warnings: [
        { fragment: 'Pool/b', field: 'spec.nodeSelector', code: 'selects-nothing' },
        { fragment: 'File/f', code: 'selects-nothing' },
      ],
    });
    expect(new Merger().publishes(1, ...fragments).at(-1)).toMatchObject({ warnings: [] });
  });

  it('of a node on which a probe fails warns if the probe passes on no node, unless the change changes the probe', () => {
    const m = fleetOf('n0', 'n1');
    const app = (matches: string) => fragment('Probe', 'app', { file: { path: '/etc/a', matches } });
    m.commits(1, app('^ok'));
    const failing = (node: string) =>
      factOf('node.unhealthy', { node, failingProbes: [{ probe: 'app', reason: 'it says no' }] });
    const warnings = (sequence: number, ...fragments: readonly Fragment[]) => {
      m.commits(sequence, ...fragments);
      return m.view('changes', `c${sequence}`).warnings;
    };
    m.given(failing('n0'));
    expect(warnings(2, file('f', 'x'))).toEqual([]);
    m.given(failing('n1'));
    const failsEverywhere = [{ fragment: 'Probe/app', code: 'fails-everywhere', nodes: ['n0', 'n1'] }];
    expect(warnings(3, file('g', 'x'))).toMatchObject(failsEverywhere);
    expect(warnings(4, file('g', 'y'), app('^ok'))).toMatchObject(failsEverywhere);
    expect(warnings(5, app('^fine'))).toEqual([]);
    m.given(factOf('node.healthy', { node: 'n0' }));
    expect(warnings(6, file('h', 'x'))).toEqual([]);
  });

  it('warns of a probe that may take longer than its nodes have to confirm the change', () => {
    const m = new Merger().fleet(['n0', 'n1'], 'edge').fleet(['n2'], 'core');
    const edge = { nodeSelector: { matchLabels: { role: 'edge' } }, maxUnavailable: 1, applyTimeout: '30s' };
    m.commits(1, fragment('Pool', 'edge', edge));
    const warnings = (sequence: number, more: object) => {
      m.commits(sequence, fragment('Probe', 'app', { file: { path: '/a', absent: true }, ...more }));
      return m.view('changes', `c${sequence}`).warnings;
    };
    const message =
      'one attempt may take 20s, but the nodes of the pool edge must confirm a change within 20s, two thirds of applyTimeout: use a shorter timeout, or a longer applyTimeout';
    const slow = { fragment: 'Probe/app', field: 'spec.timeout', code: 'slow-probe' };
    expect(warnings(2, { timeout: '20s' })).toEqual([{ ...slow, message, nodes: ['n0', 'n1'] }]);
    expect(warnings(3, { timeout: '19s' })).toEqual([]);
    expect(warnings(4, { timeout: '2m' })).toMatchObject([{ nodes: ['n0', 'n1'] }, { nodes: ['n2'] }]);
    m.commits(5, fragment('Pool', 'edge', { ...edge, applyTimeout: '7s' }));
    expect(warnings(6, {})).toMatchObject([{ ...slow, nodes: ['n0', 'n1'] }]);
  });

  it('of unhealthy nodes warns that a strict policy defers it there', () => {
    const m = fleetOf('n0', 'n1', 'n2');
    m.commits(1, fragment('RolloutPolicy', 'careful', { maxFailures: 0, health: 'strict' }), file('f', 'x'));
    const failing = { failingProbes: [{ probe: 'app', reason: 'it says no' }] };
    m.given(factOf('node.unhealthy', { node: 'n0', ...failing }), factOf('node.unhealthy', { node: 'n2', ...failing }));
    const warnings = (sequence: number, ...fragments: readonly Fragment[]) => {
      m.commits(sequence, ...fragments);
      return m.view('changes', `c${sequence}`).warnings;
    };
    expect(warnings(2, file('f', 'y'))).toMatchObject([
      { fragment: 'RolloutPolicy/careful', field: 'spec.health', code: 'unhealthy', nodes: ['n0', 'n2'] },
    ]);
    expect(warnings(3, file('f', 'y'))).toEqual([]);
    expect(warnings(4, fragment('RolloutPolicy', 'careful', { maxFailures: 0 }), file('f', 'z'))).toEqual([]);
  });

  it('counts a node that cannot have its config, and warns that the change leaves it out', () => {
    const m = new Merger().fleet(['n0', 'n1'], 'edge');
    m.commits(1, file('site', '{{ node.labels.role }}'));
    m.given(changed('n1', {}, ['kind:File'])).when();
    const warnings = [{ fragment: 'File/site', field: 'spec.content', code: 'incompatible', nodes: ['n1'] }];
    expect(m.publishes(2, file('motd', 'x')).at(-1)).toMatchObject({ nodes: 1, unchanged: 0, warnings });
  });

  it('is not held up by a node whose config had the same faults when it could not be rendered', () => {
    const m = new Merger().fleet(['n0'], 'edge');
    m.given(changed('n0', { role: 'edge' }, ['kind:File'])).when();
    m.commits(1, file('site', '{{ node.labels.role }}'), file('motd', 'x'));
    m.given(joined('n1')).when();
    const deletion = m.publishes(2, { gone: { kind: 'File', name: 'site' } });
    const warnings = [{ fragment: 'File/motd', field: 'kind', code: 'incompatible', nodes: ['n1'] }];
    expect(deletion.at(-1)).toMatchObject({ nodes: 1, warnings });
    expect(Object.keys(rendered(deletion)[0]?.targets ?? {})).toEqual(['n0']);
    m.starts('c2');
    expect(linesOf(m.completes('c2'), 'node', 'cause')).toEqual(['config.committed', 'node.rendered n1 commit']);
  });

  it('says whether a warning rejects the change', () => {
    const strictOf = (strategy: object) =>
      fleetOf('n0')
        .publishesText(1, JSON.stringify({ ...changeBody([file('f', 'x')]), strategy }))
        .at(-1);
    expect(strictOf({})).toMatchObject({ type: 'config.rendered', strict: false });
    expect(strictOf({ strict: true })).toMatchObject({ type: 'config.rendered', strict: true });
  });

  it('warns about a second pool for the same nodes', () => {
    const m = new Merger().fleet(['n0'], 'edge');
    m.commits(1, pool('a', 1, 'edge'));
    expect(m.publishes(2, pool('b', 1, 'edge')).at(-1)).toMatchObject({
      warnings: [{ code: 'several-pools', nodes: ['n0'] }],
    });
  });

  it('counts the changed nodes of each pool', () => {
    const m = new Merger().fleet(['n0', 'n1'], 'edge').fleet(['m0']);
    m.commits(1, pool('edge', 1));
    expect(m.publishes(2, file('motd', 'x')).at(-1)).toMatchObject({ pools: { edge: 2, default: 1 } });
  });

  it('counts them in a pool whose name every object has', () => {
    const m = new Merger().fleet(['n0', 'n1'], 'edge');
    m.commits(1, fragment('Pool', 'constructor', { nodeSelector: {}, maxUnavailable: 1 }));
    expect(m.publishes(2, file('motd', 'x')).at(-1)).toMatchObject({ pools: { constructor: 2 } });
  });
});

describe('the end of a change', () => {
  it('commits a complete rollout, with a generation and the digest of the whole state', () => {
    const m = fleetOf('n0');
    const first = m.commits(1, file('a', 'x'));
    const second = m.commits(2, file('b', 'x'));
    const digests = [...first, ...second].flatMap((fact) =>
      fact.type === 'config.committed' ? [`${fact.generation} ${fact.digest.length}`] : [],
    );
    expect(digests).toEqual(['1 64', '2 64']);
    expect(m.view('fragments', 'File.a')).toMatchObject({ change: 'c1', gone: false });
  });

  it('marks the view of a deleted fragment as gone', () => {
    const m = fleetOf('n0');
    m.commits(1, file('a', 'x'));
    m.commits(2, gone('File', 'a'));
    expect(m.view('fragments', 'File.a')).toMatchObject({ change: 'c2', gone: true });
  });

  it('commits once, even if two copies see the completion', () => {
    const m = fleetOf('n0');
    m.commits(1, file('a', 'x'));
    expect(m.given(factOf('rollout.complete', { change: 'c1' })).when()).toEqual([]);
  });

  it.each([
    [
      'reverted',
      [
        factOf('rollout.reverting', { change: 'c1', reason: 'n0 failed' }),
        factOf('rollout.reverted', { change: 'c1', reason: 'n0 failed' }),
      ],
      'n0 failed',
    ],
    [
      'aborted',
      [
        factOf('rollout.aborted', { change: 'c1', reason: 'enough' }),
        factOf('rollout.reverted', { change: 'c1', reason: 'enough' }),
      ],
      'enough',
    ],
    [
      'superseded',
      [factOf('rollout.superseded', { change: 'c1', by: 'c2', reason: 'corrected by c2' })],
      'corrected by c2',
    ],
  ])('is recorded as %s, and the committed state stays the same', (outcome, facts, reason) => {
    const m = fleetOf('n0');
    m.publishes(1, file('a', 'x'));
    m.starts('c1');
    expect(m.given(...facts).when()).toMatchObject([{ type: 'config.ended', change: 'c1', outcome, reason }]);
    expect(m.view('changes', 'c1')).toMatchObject({ phase: 'ended', outcome });
    expect(m.state.fragments.size).toBe(0);
  });

  it('comes at once if it is aborted while it waits', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('a', 'x'));
    m.publishes(2, file('b', 'x'));
    expect(
      linesOf(m.given(factOf('rollout.aborted', { change: 'c2', reason: 'no' })).when(), 'change', 'outcome'),
    ).toEqual(['config.ended c2 aborted']);
  });

  it('commits two changes that ran in parallel, one after another', () => {
    const m = new Merger().fleet(['a0'], 'a').fleet(['b0'], 'b');
    m.publishes(1, file('one', 'x', 'a'));
    m.publishes(2, file('two', 'x', 'b'));
    m.starts('c1');
    m.starts('c2');
    m.completes('c2');
    m.completes('c1');
    expect([...m.state.fragments.keys()].sort()).toEqual(['File/one', 'File/two']);
    expect(m.state.generation.get()).toBe(2);
  });
});

describe('old changes', () => {
  it('are forgotten in the same way by every copy, whether it ended the latest change or only reads', () => {
    const changes = Array.from({ length: 1_600 }, (_, i) => `c${i + 1}`);
    const m = new Merger().given(...changes.flatMap((change) => [accepted(change), ended(change, 'aborted')]));
    expect(m.state.changes.size).toBe(1_600);
    m.core.takeTouched(m.state);
    expect(linesOf(m.publishesText(1_601, 'no JSON'), 'change')).toEqual(['config.rejected c1601']);
    const kept = Array.from({ length: 600 }, (_, i) => `c${i + 1_002}`);
    expect([...m.state.changes.keys()].sort()).toEqual(kept);
    expect([...new Merger(m.ledger).read().state.changes.keys()].sort()).toEqual(kept);
    expect(m.phase('c1601')).toBe('rejected');
  });

  const rolledOut = (change: string, name: string, end: NewFact): readonly NewFact[] => [
    accepted(change, { apply: [fragment('File', name)] }),
    renderedChange(change, {}),
    factOf('rollout.started', { change }),
    end,
  ];
  const flood = (from: number) =>
    Array.from({ length: 1_601 }, (_, i) => `c${from + i}`).flatMap((change) => [
      accepted(change),
      ended(change, 'aborted'),
    ]);
  const isShown = (m: Merger, change: string) => m.core.view(m.state, { bucket: 'changes', key: change }) !== undefined;

  it('of which the view is deleted are touched, so that the view is deleted', () => {
    const m = new Merger().given(...flood(1));
    expect(m.core.forgets).toEqual(['changes']);
    expect([isShown(m, 'c1'), m.core.takeTouched(m.state).has('changes/c1')]).toEqual([false, true]);
  });

  it('that were rolled out stay when many others are rejected', () => {
    const of = (number: number) => rolledOut(`c${number}`, 'a', committed(`c${number}`, number));
    const m = new Merger().given(...of(1), ...of(2), ...flood(3));
    expect([isShown(m, 'c1'), isShown(m, 'c2'), isShown(m, 'c3')]).toEqual([true, true, false]);
  });

  it('that failed stay until a later one is rolled out for each of their fragments', () => {
    const failed = rolledOut('c1', 'a', ended('c1', 'aborted'));
    const others = Array.from({ length: 202 }, (_, i) =>
      rolledOut(`c${i + 2}`, 'b', ended(`c${i + 2}`, 'reverted')),
    ).flat();
    const m = new Merger().given(...failed, ...others, ...flood(300));
    expect([isShown(m, 'c1'), isShown(m, 'c2'), isShown(m, 'c3')]).toEqual([true, false, true]);
    m.given(...rolledOut('c2000', 'a', committed('c2000')), ...flood(2_001));
    expect([isShown(m, 'c1'), isShown(m, 'c2000')]).toEqual([false, true]);
  });
});

describe('nodes outside rollouts', () => {
  const facts = (m: Merger) => linesOf(m.when(), 'node', 'cause', 'outdatedIn');

  it('get the committed config when they join', () => {
    const m = fleetOf('n0');
    m.commits(1, file('a', 'x'));
    expect(facts(m.given(joined('n1')))).toEqual(['node.rendered n1 join []']);
    expect(m.state.desired.get('n1')).toEqual(m.state.desired.get('n0'));
  });

  // Every object has a constructor.
  it.each(['n1', 'constructor'])('get the new config after a commit that selects them, if not targets: %s', (late) => {
    const m = fleetOf('n0');
    m.publishes(1, file('a', 'x'));
    m.starts('c1');
    facts(m.given(joined(late)));
    const after = m.completes('c1');
    expect(linesOf(after, 'node', 'cause')).toEqual(['config.committed', `node.rendered ${late} commit`]);
    expect(m.state.desired.get(late)).toEqual(m.state.desired.get('n0'));
  });

  it('leave the rollout if a relabel changes their target, and only then', () => {
    const m = fleetOf('n0', 'n1');
    m.given(changed('n0', { zone: 'a' }), changed('n1', { zone: 'a' })).when();
    m.publishes(1, file('a', '{{ node.labels.zone }}'));
    m.starts('c1');
    expect(facts(m.given(changed('n0', { zone: 'b' })))).toEqual(['node.rendered n0 relabel ["c1"]']);
    expect(facts(m.given(changed('n1', { zone: 'a', rack: '7' })))).toEqual(['node.rendered n1 relabel []']);
  });

  it('leave with the committed config of their new labels, once that is committed', () => {
    const m = fleetOf('n0');
    m.given(changed('n0', { zone: 'a' })).when();
    m.publishes(1, file('a', '{{ node.labels.zone }}'));
    m.starts('c1');
    facts(m.given(changed('n0', { zone: 'b' })));
    expect(linesOf(m.completes('c1'), 'node', 'cause')).toEqual(['config.committed', 'node.rendered n0 commit']);
  });

  it('with an invalid config are recorded with the problems, and get no hash', () => {
    const m = fleetOf();
    m.commits(1, file('a', '{{ node.labels.zone }}'));
    expect(m.given(joined('n0')).when()).toMatchObject([
      { type: 'node.rendered', node: 'n0', hash: '', problems: [{ fragment: 'File/a' }] },
    ]);
  });

  it('with an invalid config do not make an unrelated change fail', () => {
    const m = fleetOf();
    m.commits(1, file('a', '{{ node.labels.zone }}'));
    m.given(joined('n0')).when();
    expect(m.publishes(2, file('b', 'x')).at(-1)).toMatchObject({ type: 'config.rendered', problems: [] });
  });

  it('are rendered before changes, because the targets start from their configs', () => {
    const m = fleetOf('n0');
    m.given(joined('n1'));
    expect(m.publishes(1, file('a', 'x')).map(({ type }) => type)).toEqual([
      'config.accepted',
      'node.rendered',
      'config.rendered',
    ]);
  });
});

it("a rendering that another copy appended is used like the copy's own", () => {
  const m = fleetOf('n0').given(renderedNode('n0', 'theirs'));
  expect(m.state.desired.get('n0')?.hash).toBe('theirs');
});

it('renders a node again that was incompatible with a committed change, so that its review says why', () => {
  const m = new Merger().fleet(['n0', 'n1']);
  m.publishes(1, file('a', '1'));
  m.given(
    factOf('config.validated', { change: 'c1', attempt: 1, incompatible: ['n1'] }),
    factOf('rollout.started', { change: 'c1' }),
  );
  const to = m.state.targets.get('c1')?.['n1']?.to as string;
  expect(linesOf(m.completes('c1'), 'node', 'hash', 'cause')).toEqual([
    'config.committed',
    `node.rendered n1 ${to} commit`,
  ]);
});
