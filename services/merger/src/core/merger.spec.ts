import {
  accepted,
  changed,
  ended,
  factOf,
  file,
  fragment,
  joined,
  left,
  linesOf,
  pool,
  renderedNode,
} from '#libs/testing';
import { API_VERSION } from '#libs/manifests';
import { emptyHash } from '#libs/rules';
import { changeBody, Merger, rendered, sha256 } from './merger.fixture.js';

const EMPTY = emptyHash(sha256);
const fleetOf = (...names: readonly string[]) => new Merger().fleet(names);
const gone = (kind: string, name: string) => ({ gone: { kind, name } });

describe('what is published', () => {
  it('is accepted under the sequence of its message, and rendered', () => {
    const said = fleetOf('n0').publishes(7, file('motd', 'hello'));
    expect(linesOf(said, 'change', 'source', 'attempt', 'nodes')).toEqual([
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
  ])('without form is rejected at once: %s', (text, code) => {
    const m = fleetOf('n0');
    expect(m.publishesText(1, text)).toMatchObject([
      { type: 'config.rejected', change: 'c1', stage: 'schema', reasons: [{ code }] },
    ]);
    expect(m.phase('c1')).toBe('rejected');
    expect(m.publishesText(1, text)).toEqual([]);
  });

  it('that cannot be rendered on a node is reviewed all the same, so that every reason is said at once', () => {
    const m = fleetOf('n0');
    const said = m.publishes(1, file('a', 'in {{ node.labels.zone }}'), file('b', 'x'));
    expect(said).toContainEqual(
      expect.objectContaining({
        type: 'config.rendered',
        problems: [expect.objectContaining({ fragment: 'File/a', field: 'spec.content' })],
      }),
    );
    expect(Object.keys(rendered(said)[0]?.targets ?? {})).toEqual(['n0']);
  });

  it('under a source that is no label is rejected', () => {
    expect(fleetOf().publishesText(1, JSON.stringify(changeBody([file('a', 'x')])), 'Not A Label')).toMatchObject([
      { reasons: [{ code: 'bad-source' }] },
    ]);
  });

  it('without form is rejected even while others hold the queue', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('a', 'x'));
    expect(m.publishesText(2, '{')).toMatchObject([{ type: 'config.rejected', change: 'c2' }]);
  });
});

describe('the queue', () => {
  it('lets changes that share neither node nor fragment run side by side', () => {
    const m = new Merger().fleet(['a0'], 'a').fleet(['b0'], 'b');
    m.publishes(1, file('one', 'x', 'a'));
    expect(rendered(m.publishes(2, file('two', 'x', 'b')))).toHaveLength(1);
  });

  it.each([
    ['a node', [file('two', 'x', 'a')]],
    ['a policy', [pool('edge', 2), file('two', 'x', 'b')]],
    ['what one of them deletes', [gone('File', 'one'), file('two', 'x', 'b')]],
  ])('lets the later wait that shares %s', (_, says) => {
    const m = new Merger().fleet(['a0'], 'a').fleet(['b0'], 'b');
    m.publishes(1, file('one', 'x', 'a'), pool('edge', 1), file('more', 'x', 'a'));
    const said = m.publishes(2, ...says);
    expect(linesOf(said.slice(1), 'change', 'waitsFor')).toEqual(['config.waiting c2 ["c1"]']);
    expect(m.view('changes', 'c2')).toMatchObject({ phase: 'waiting', waitsFor: ['c1'] });
  });

  it('names all that a change waits for, says so once, and renders it when they have ended', () => {
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
    const said = m.completes('c2');
    expect(rendered(said)).toMatchObject([{ change: 'c3', attempt: 1, nodes: 2 }]);
  });

  it('goes on behind a change that was rejected', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('one', 'x'));
    m.publishes(2, file('two', 'x'));
    expect(
      rendered(m.given(factOf('config.rejected', { change: 'c1', stage: 'review', attempt: 1 })).when()),
    ).toMatchObject([{ change: 'c2' }]);
  });

  it('orders by number and not by text', () => {
    const m = fleetOf('n0');
    m.publishes(9, file('one', 'x'));
    expect(linesOf(m.publishes(10, file('two', 'x')).slice(1), 'change', 'waitsFor')).toEqual([
      'config.waiting c10 ["c9"]',
    ]);
  });
});

describe('a correction', () => {
  it('of what waits for nodes that another is at work on waits for that one too, and says so', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('motd', 'first'));
    m.starts('c1');
    m.publishes(2, file('other', 'second'));
    const said = m.publishes(3, gone('File', 'other')); // by itself it touches no node: the file is not there
    expect(linesOf(said, 'change', 'waitsFor')).toEqual(['config.accepted c3', 'config.waiting c3 ["c1"]']);
    expect(rendered(m.completes('c1')).at(-1)).toMatchObject({ change: 'c3', replaces: ['c2'] });
  });

  it('is a change that touches every fragment of those it overlaps: it replaces them at once', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('motd', 'bad'));
    m.starts('c1');
    expect(rendered(m.publishes(2, file('motd', 'good'), file('more', 'x')))).toMatchObject([
      { change: 'c2', replaces: ['c1'] },
    ]);
  });

  it('is rendered on the committed state without the older, over the nodes of both', () => {
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
  ] as const)('of what %s meanwhile waits for its end, and is rendered again', (_, type) => {
    const m = fleetOf('n0');
    m.publishes(1, file('motd', 'bad'));
    m.starts('c1');
    m.publishes(2, file('motd', 'good'));
    const said = [
      ...m.given(factOf(type, { change: 'c1' })).when(),
      ...(type === 'rollout.complete' ? [] : m.given(factOf('rollout.reverted', { change: 'c1' })).when()),
    ];
    expect(rendered(said)).toMatchObject([{ change: 'c2', attempt: 2, replaces: [] }]);
  });

  it('takes the place of the older: what waited for that waits on', () => {
    const m = new Merger().fleet(['a0'], 'a').fleet(['b0'], 'b');
    m.publishes(1, file('motd', 'bad', 'a'));
    m.starts('c1');
    expect(linesOf(m.publishes(2, file('other', 'x', 'a')).slice(1), 'waitsFor')).toEqual(['config.waiting ["c1"]']);
    // It leads the nodes of c1 back, on which c2 waits; by itself it shares nothing with c2.
    expect(rendered(m.publishes(3, file('motd', 'good', 'b')))).toMatchObject([{ change: 'c3', replaces: ['c1'] }]);
    expect(m.phase('c3')).toBe('rendered');
    expect(linesOf(m.starts('c3', ['c1']), 'change', 'waitsFor')).toEqual([
      'config.ended c1',
      'config.waiting c2 ["c3"]',
    ]);
    expect(rendered(m.completes('c3'))).toMatchObject([{ change: 'c2' }]);
  });

  it('that does not touch all of it waits', () => {
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

  it('counts who is touched and stays as it is', () => {
    const m = fleetOf('n0', 'n1');
    m.commits(1, file('motd', 'same'));
    expect(rendered(m.publishes(2, file('motd', 'same')))).toMatchObject([{ nodes: 0, unchanged: 2 }]);
  });

  it('takes in who is deferred, though its config stays the same', () => {
    const m = fleetOf('n0', 'n1');
    m.commits(1, file('motd', 'same'));
    m.given(factOf('node.deferred', { node: 'n1', reason: 'silent' }));
    expect(Object.keys(rendered(m.publishes(2, file('motd', 'same')))[0]?.targets ?? {})).toEqual(['n1']);
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

  it('hands what it cannot render to the review, with fragment and field', () => {
    const said = fleetOf('n0').publishes(1, file('motd', '{{ node.labels.zone }}'));
    expect(said.at(-1)).toMatchObject({
      type: 'config.rendered',
      problems: [{ fragment: 'File/motd', field: 'spec.content', nodes: ['n0'] }],
    });
  });

  it('is done again when a node that it touches is relabelled or leaves before the start', () => {
    const m = fleetOf('n0', 'n1');
    m.publishes(1, file('motd', 'x'));
    expect(rendered(m.given(changed('n0', { zone: 'b' })).when())).toMatchObject([{ change: 'c1', attempt: 2 }]);
    expect(rendered(m.given(left('n1')).when())).toMatchObject([{ change: 'c1', attempt: 3, nodes: 1 }]);
  });

  it('refuses another purpose than the committed one, on whatever way it comes, and takes one that is new', () => {
    const m = fleetOf('n0');
    const purposed = (content: string, labels: object) =>
      JSON.stringify({
        apiVersion: API_VERSION,
        kind: 'File',
        metadata: { name: 'motd', labels },
        spec: { nodeSelector: {}, path: '/etc/motd', content },
      });
    m.commits(1, file('motd', 'x'));
    const first = m.publishesText(2, purposed('y', { 'sluice.dev/purpose': 'greeting' }));
    expect(first.at(-1)).toMatchObject({ type: 'config.rendered', problems: [] });
    m.starts('c2');
    m.completes('c2');
    const taken = m.publishesText(3, purposed('y', {}), 'kubernetes');
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

  it('of a deletion of what is not there warns', () => {
    expect(fleetOf('n0').publishes(1, gone('File', 'never')).at(-1)).toMatchObject({
      type: 'config.rendered',
      warnings: [{ fragment: 'File/never', code: 'not-found' }],
    });
  });

  it('of what selects no node warns, unless there is none to select', () => {
    const m = new Merger().fleet(['n0'], 'edge');
    const says = [pool('a', 1, 'edge'), pool('b', 1, 'egde'), file('f', 'x', 'core')];
    expect(m.publishes(1, ...says).at(-1)).toMatchObject({
      warnings: [
        { fragment: 'Pool/b', field: 'spec.nodeSelector', code: 'selects-nothing' },
        { fragment: 'File/f', code: 'selects-nothing' },
      ],
    });
    expect(new Merger().publishes(1, ...says).at(-1)).toMatchObject({ warnings: [] });
  });

  it('says whether a warning is to reject the change', () => {
    const strictOf = (strategy: object) =>
      fleetOf('n0')
        .publishesText(1, JSON.stringify({ ...changeBody([file('f', 'x')]), strategy }))
        .at(-1);
    expect(strictOf({})).toMatchObject({ type: 'config.rendered', strict: false });
    expect(strictOf({ strict: true })).toMatchObject({ type: 'config.rendered', strict: true });
  });

  it('of a second pool for the same nodes warns', () => {
    const m = new Merger().fleet(['n0'], 'edge');
    m.commits(1, pool('a', 1, 'edge'));
    expect(m.publishes(2, pool('b', 1, 'edge')).at(-1)).toMatchObject({
      warnings: [{ code: 'several-pools', nodes: ['n0'] }],
    });
  });

  it('counts the nodes that change in their pools', () => {
    const m = new Merger().fleet(['n0', 'n1'], 'edge').fleet(['m0']);
    m.commits(1, pool('edge', 1));
    expect(m.publishes(2, file('motd', 'x')).at(-1)).toMatchObject({ pools: { edge: 2, default: 1 } });
  });
});

describe('the end of a change', () => {
  it('commits what is complete, with a generation and the digest of the whole state', () => {
    const m = fleetOf('n0');
    const first = m.commits(1, file('a', 'x'));
    const second = m.commits(2, file('b', 'x'));
    const digests = [...first, ...second].flatMap((fact) =>
      fact.type === 'config.committed' ? [`${fact.generation} ${fact.digest.length}`] : [],
    );
    expect(digests).toEqual(['1 64', '2 64']);
    expect(m.view('fragments', 'File.a')).toMatchObject({ change: 'c1', gone: false });
  });

  it('of a deletion leaves the fragment shown as gone', () => {
    const m = fleetOf('n0');
    m.commits(1, file('a', 'x'));
    m.commits(2, gone('File', 'a'));
    expect(m.view('fragments', 'File.a')).toMatchObject({ change: 'c2', gone: true });
  });

  it('is committed once, though two are told of it', () => {
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
  ])('is recorded as %s, and the committed state stays as it was', (outcome, facts, reason) => {
    const m = fleetOf('n0');
    m.publishes(1, file('a', 'x'));
    m.starts('c1');
    expect(m.given(...facts).when()).toMatchObject([{ type: 'config.ended', change: 'c1', outcome, reason }]);
    expect(m.view('changes', 'c1')).toMatchObject({ phase: 'ended', outcome });
    expect(m.state.fragments.size).toBe(0);
  });

  it('of one that waits and is aborted comes at once', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('a', 'x'));
    m.publishes(2, file('b', 'x'));
    expect(
      linesOf(m.given(factOf('rollout.aborted', { change: 'c2', reason: 'no' })).when(), 'change', 'outcome'),
    ).toEqual(['config.ended c2 aborted']);
  });

  it('commits two that ran side by side, one after the other', () => {
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

describe('changes of long ago', () => {
  it('are forgotten, and in every copy the same: in one that ended the latest as in one that only reads', () => {
    const changes = Array.from({ length: 400 }, (_, i) => `c${i + 1}`);
    const m = new Merger().given(...changes.flatMap((change) => [accepted(change), ended(change, 'aborted')]));
    expect(m.state.changes.size).toBe(400);
    expect(linesOf(m.publishesText(401, 'no JSON'), 'change')).toEqual(['config.rejected c401']);
    const kept = Array.from({ length: 200 }, (_, i) => `c${i + 202}`);
    expect([...m.state.changes.keys()].sort()).toEqual(kept);
    expect([...new Merger(m.ledger).read().state.changes.keys()].sort()).toEqual(kept);
    expect(m.phase('c401')).toBe('rejected');
  });
});

describe('nodes outside rollouts', () => {
  const said = (m: Merger) => linesOf(m.when(), 'node', 'cause', 'outdatedIn');

  it('get the committed config when they join', () => {
    const m = fleetOf('n0');
    m.commits(1, file('a', 'x'));
    expect(said(m.given(joined('n1')))).toEqual(['node.rendered n1 join []']);
    expect(m.state.desired.get('n1')).toEqual(m.state.desired.get('n0'));
  });

  it('get the new one after each commit that selects them though they were no targets', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('a', 'x'));
    m.starts('c1');
    said(m.given(joined('n1')));
    const after = m.completes('c1');
    expect(linesOf(after, 'node', 'cause')).toEqual(['config.committed', 'node.rendered n1 commit']);
    expect(m.state.desired.get('n1')).toEqual(m.state.desired.get('n0'));
  });

  it('leave the rollout whose target would be another after a relabel, and only then', () => {
    const m = fleetOf('n0', 'n1');
    m.given(changed('n0', { zone: 'a' }), changed('n1', { zone: 'a' })).when();
    m.publishes(1, file('a', '{{ node.labels.zone }}'));
    m.starts('c1');
    expect(said(m.given(changed('n0', { zone: 'b' })))).toEqual(['node.rendered n0 relabel ["c1"]']);
    expect(said(m.given(changed('n1', { zone: 'a', rack: '7' })))).toEqual(['node.rendered n1 relabel []']);
  });

  it('leave with the committed config of their new labels, once that is committed', () => {
    const m = fleetOf('n0');
    m.given(changed('n0', { zone: 'a' })).when();
    m.publishes(1, file('a', '{{ node.labels.zone }}'));
    m.starts('c1');
    said(m.given(changed('n0', { zone: 'b' })));
    expect(linesOf(m.completes('c1'), 'node', 'cause')).toEqual(['config.committed', 'node.rendered n0 commit']);
  });

  it('that the committed state does not fit are told with the problems, and hash nothing', () => {
    const m = fleetOf();
    m.commits(1, file('a', '{{ node.labels.zone }}'));
    expect(m.given(joined('n0')).when()).toMatchObject([
      { type: 'node.rendered', node: 'n0', hash: '', problems: [{ fragment: 'File/a' }] },
    ]);
  });

  it('that do not fit are no reason to refuse a change that is not to blame', () => {
    const m = fleetOf();
    m.commits(1, file('a', '{{ node.labels.zone }}'));
    m.given(joined('n0')).when();
    expect(m.publishes(2, file('b', 'x')).at(-1)).toMatchObject({ type: 'config.rendered', problems: [] });
  });

  it('are rendered before a change is, for its targets begin at what they have', () => {
    const m = fleetOf('n0');
    m.given(joined('n1'));
    expect(m.publishes(1, file('a', 'x')).map(({ type }) => type)).toEqual([
      'config.accepted',
      'node.rendered',
      'config.rendered',
    ]);
  });
});

describe('plan', () => {
  const plan = (m: Merger, ...says: Parameters<Merger['publishes']>[1][]) => {
    const said = m.when({
      type: 'request',
      request: { op: 'plan', id: 'p1', body: changeBody(says), cursor: '', limit: 2 },
    });
    expect(said).toEqual([]);
    const [answer] = m.answers;
    if (answer?.ok !== true) throw new Error('no plan');
    return answer.body as {
      nodes: { node: string; changed: string[] }[];
      next?: string;
      rejected: { code: string }[];
      waitsFor: string[];
    };
  };

  it('says per node what would be, in pages, and changes nothing', () => {
    const m = fleetOf('n0', 'n1', 'n2');
    const body = plan(m, file('motd', 'x'));
    expect(body).toMatchObject({
      nodes: [
        { node: 'n0', pool: 'default', from: EMPTY, actions: [{ kind: 'none' }], changed: ['/etc/motd'] },
        { node: 'n1' },
      ],
      next: 'n1',
      touched: 3,
      pools: { default: { nodes: 3, budget: 1 } },
    });
  });

  it('says what it would wait for, and what would be refused', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('a', 'x'), file('b', 'x'));
    expect(plan(m, file('c', '{{ node.labels.zone }}'))).toMatchObject({
      waitsFor: ['c1'],
      rejected: [
        { fragment: 'File/c', code: 'unknown-template-key' },
        { fragment: 'File/c', code: 'capability' },
      ],
    });
  });

  it('says that a config is known-bad', () => {
    const m = fleetOf('n0');
    const [wanted] = rendered(m.publishes(1, file('a', 'x')));
    m.given(
      changed('n0', {}, ['kind:File']),
      factOf('config.judged', { hash: wanted?.targets['n0']?.to ?? '', recipe: 'r', lease: 'l', knownBad: true }),
      factOf('config.rejected', { change: 'c1', stage: 'review', attempt: 1 }),
    ).when();
    expect(plan(m, file('a', 'x'))).toMatchObject({ rejected: [{ code: 'known-bad', nodes: ['n0'] }] });
  });
});

it('takes a rendering of somebody else as its own', () => {
  const m = fleetOf('n0').given(renderedNode('n0', 'theirs'));
  expect(m.state.desired.get('n0')?.hash).toBe('theirs');
});
