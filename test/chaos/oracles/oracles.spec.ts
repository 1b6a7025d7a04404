import type { Fact, NewFact, StatusView } from '#libs/contracts';
import { committed, ended, factOf } from '#libs/testing';
import type { Evidence, NodeEvidence } from '../evidence.js';
import type { DrainAction } from '../host/drain-log.js';
import { judge } from './index.js';

const NODES = ['a', 'b', 'c'];
const app = (version: string): Evidence['published'][number]['body'] => ({
  apply: [
    {
      kind: 'File',
      metadata: { name: 'app' },
      spec: { nodeSelector: {}, path: '/etc/app', content: `app ${version} on {{ node.name }}` },
    },
  ],
});
const has = (node: string, version: string): Record<string, string> => ({ '/etc/app': `app ${version} on ${node}` });
const found = (node: string, version: string, more: Partial<NodeEvidence> = {}): NodeEvidence => ({
  node,
  files: has(node, version),
  journal: { incarnation: 1, seq: 1, inForce: version, sound: true },
  status: { deferred: '', incompatible: false } as StatusView,
  inForce: has(node, version),
  restarts: node !== 'c',
  runs: node === 'c' ? undefined : Object.values(has(node, version)).join(''),
  ...more,
});
const granted = (lease: string, node: string, more: object = {}): NewFact =>
  factOf('node.lease.granted', { lease, node, pool: 'p', kind: 'forward', phase: 'applying', hash: 'h', ...more });
const released = (lease: string, node: string): NewFact =>
  factOf('node.lease.released', { lease, node, pool: 'p', because: 'applied' });

const world = (more: Partial<Omit<Evidence, 'facts'>> & { readonly facts?: readonly NewFact[] } = {}): Evidence => ({
  published: [{ change: 'c1', body: app('v1') }],
  acknowledged: new Map([['c1', app('v1')]]),
  nodes: NODES.map((node) => found(node, 'v1')),
  works: [],
  pools: [{ pool: 'p', budget: 1, nodes: NODES }],
  drainer: [],
  held: new Map(),
  memory: [new Map([['merger', 100]])],
  ...more,
  facts: [committed('c1'), ...(more.facts ?? [])] as readonly NewFact[] as readonly Fact[],
});

test('a correct world has no violations', () => {
  expect(
    judge(
      world({
        facts: [granted('l1', 'a'), released('l1', 'a'), granted('l2', 'b')],
        works: [
          { node: 'a', lease: 'l1', fromMs: 10, toMs: 20 },
          { node: 'b', lease: 'l2', fromMs: 20, toMs: 30 },
        ],
      }),
    ),
  ).toEqual([]);
});

describe('files', () => {
  test('reports a node without the committed files', () => {
    expect(judge(world({ nodes: [found('a', 'v0'), found('b', 'v1')] }))).toEqual([
      expect.stringMatching(/^I4 files: a should have .*v1 on a.*has .*v0 on a/),
    ]);
  });
  test('accepts the previous files on a deferred node, but not a mixture', () => {
    const status = { deferred: 'unknown', incompatible: false } as StatusView;
    expect(judge(world({ nodes: [found('a', 'v0', { status })] }))).toEqual([]);
    expect(judge(world({ nodes: [found('c', 'v0', { status, files: { '/etc/app': 'app v' } })] }))).toEqual([
      expect.stringMatching(/^I4 files: c says v0 is in force/),
    ]);
  });
  test('reports a leftover file, unfinished work, and a failed rollback', () => {
    const journal = { incarnation: 1, seq: 1, inForce: 'v1', sound: true };
    expect(
      judge(
        world({
          nodes: [
            found('a', 'v1', { files: { ...has('a', 'v1'), '/etc/.app.tmp': '' } }),
            found('b', 'v1', { journal: { ...journal, work: { lease: 'l9', phase: 'forward' } } }),
            found('c', 'v1', { journal: { ...journal, sound: false } }),
          ],
        }),
      ),
    ).toEqual([expect.stringContaining('.app.tmp'), 'I4 files: b is still at work on l9', 'I4 files: c is not sound']);
  });
});

describe('budgets', () => {
  const died = [
    granted('l1', 'a'),
    factOf('node.lease.settled', { lease: 'l1', node: 'a', pool: 'p', kind: 'forward', because: 'unknown' }),
  ];

  test('one node may roll back while a dead one holds the unit, and no other, and nothing else', () => {
    const back = granted('l2', 'b', { kind: 'rollback' });
    expect(judge(world({ facts: [...died, back] }))).toEqual([]);
    expect(judge(world({ facts: [...died, granted('l2', 'b')] }))).toContain(
      'I1 budget: l2 was granted to b while a of p were unavailable, and 1 may be',
    );
    expect(judge(world({ facts: [...died, back, granted('l3', 'c', { kind: 'rollback' })] }))).toContain(
      'I1 budget: l3 was granted to c while a, b of p were unavailable, and 1 may be',
    );
  });

  test('reports a grant beyond the budget in the ledger', () => {
    expect(judge(world({ facts: [granted('l1', 'a'), granted('l2', 'b')] }))).toEqual([
      'I1 budget: l2 was granted to b while a of p were unavailable, and 1 may be',
    ]);
  });
  test('counts a silent node, and a node that is not restored', () => {
    expect(judge(world({ facts: [factOf('node.silent', { node: 'c' }), granted('l1', 'a')] }))).toEqual([
      expect.stringContaining('while c of p were unavailable'),
    ]);
    expect(
      judge(
        world({
          facts: [
            factOf('node.reported', { node: 'c', restored: false, report: 'failed', verdict: 'failed' }),
            granted('l1', 'a'),
          ],
        }),
      ),
    ).toEqual([expect.stringContaining('while c of p were unavailable')]);
    expect(judge(world({ facts: [factOf('node.silent', { node: 'c' }), granted('l1', 'c')] }))).toEqual([]);
  });
  test('reports nodes that work at once on their disks, whatever the ledger says', () => {
    const facts = [granted('l1', 'a'), released('l1', 'a'), granted('l2', 'b')];
    expect(
      judge(
        world({
          facts,
          works: [
            { node: 'a', lease: 'l1', fromMs: 10, toMs: 20 },
            { node: 'b', lease: 'l2', fromMs: 15, toMs: 30 },
          ],
        }),
      ),
    ).toEqual([expect.stringContaining('a (l1), b (l2) worked at once, and 1 may')]);
  });
});

describe('drains and restarts', () => {
  const drained = granted('l1', 'a', {
    phase: 'draining',
    actions: [{ kind: 'drain' }, { kind: 'restart', unit: 'app.service' }],
  });
  const work = { node: 'a', lease: 'l1', fromMs: 10, toMs: 20 };
  const deed = (did: DrainAction['did'], atMs: number): DrainAction => ({ did, node: 'a', lease: 'l1', atMs });
  const seen = (drainer: readonly DrainAction[], held: ReadonlyMap<string, string> = new Map()): readonly string[] =>
    judge(world({ facts: [drained, released('l1', 'a')], works: [work], drainer, held }));

  test('accepts a node that works only while the drainer holds it', () => {
    expect(seen([deed('cordoned', 1), deed('drained', 9), deed('returned', 25)])).toEqual([]);
  });
  test('reports work before the drainer said that the node is drained, or without that', () => {
    expect(seen([deed('cordoned', 1), deed('drained', 12), deed('returned', 25)])).toEqual([
      'I5 drains: a began to work on l1 before the drainer said that it is free',
    ]);
    expect(seen([deed('cordoned', 1)])).toEqual([
      'I5 drains: a began to work on l1 before the drainer said that it is free',
    ]);
  });
  test('reports a node that is given back too early, or never', () => {
    expect(seen([deed('drained', 9), deed('returned', 15)])).toEqual([
      'I5 drains: a was still at work on l1 when the drainer gave it back',
    ]);
    expect(seen([deed('drained', 9)], new Map([['a', 'l1']]))).toEqual(['I5 drains: a is still held for l1']);
  });
  test('reports a unit that runs with outdated files after a change that must restart it', () => {
    expect(
      judge(
        world({
          nodes: [
            found('a', 'v1', { runs: 'app v0 on a' }),
            found('b', 'v1', { runs: undefined }),
            found('c', 'v1', { runs: 'old' }),
          ],
        }),
      ),
    ).toEqual([
      expect.stringMatching(/^I4 running: a runs with "app v0 on a", and "app v1 on a" lies there/),
      expect.stringMatching(/^I4 running: b runs with undefined/),
    ]);
  });
});

describe('leases and ends', () => {
  test('reports a second lease for a node, and a lease to a known-bad config', () => {
    const facts = [
      factOf('config.judged', { hash: 'h', recipe: 'r', knownBad: true }),
      granted('l1', 'a', { hash: 'x' }),
      granted('l2', 'a', { hash: 'x', kind: 'corrective' }),
      granted('l3', 'a'),
    ];
    expect(judge(world({ facts })).filter((text) => text.startsWith('I2'))).toEqual([
      'I2 I3 leases: a was granted l2 while it held l1',
      'I2 I3 leases: a was granted l3 while it held l2',
      'I2 I3 leases: l3 leads a forward to what is known-bad',
    ]);
  });
  test('reports a change without an end, with two ends, and one that was acknowledged and lost', () => {
    expect(
      judge(
        world({
          published: [
            { change: 'c1', body: app('v1') },
            { change: 'c2', body: {} },
          ],
        }),
      ),
    ).toEqual(['I8 I10 ended: c2 has no end']);
    expect(judge(world({ facts: [ended('c1', 'aborted')] }))).toEqual([
      'I8 I10 ended: c1 has config.committed and config.ended',
    ]);
    expect(
      judge(
        world({
          acknowledged: new Map([
            ['c1', app('v1')],
            ['c7', {}],
          ]),
        }),
      ),
    ).toEqual(['I8 I10 ended: c7 was acknowledged, and is not there as it was sent']);
    expect(judge(world({ acknowledged: new Map([['c1', app('v2')]]) }))).toEqual([
      'I8 I10 ended: c1 was acknowledged, and is not there as it was sent',
    ]);
  });
});

test('reports a process that grew beyond its limit, after enough rounds', () => {
  const memory = [100, 120, 180, 250, 261].map((mib) => new Map([['merger', mib]]));
  expect(judge(world({ memory: memory.slice(0, 4) }))).toEqual([]);
  expect(judge(world({ memory }))).toEqual(['memory: merger has 261 MiB after 5 rounds, and had 100 after the first']);
});
