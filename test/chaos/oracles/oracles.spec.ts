import type { Fact, NewFact, StatusView } from '#libs/contracts';
import { committed, ended, factOf } from '#libs/testing';
import type { Evidence, NodeEvidence } from '../evidence.js';
import type { DrainDeed } from '../host/drain-log.js';
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

test('a world in which all is as it should be has nothing wrong', () => {
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
  test('a node that has not what was committed is seen', () => {
    expect(judge(world({ nodes: [found('a', 'v0'), found('b', 'v1')] }))).toEqual([
      expect.stringMatching(/^I4 files: a should have .*v1 on a.*has .*v0 on a/),
    ]);
  });
  test('a node that is deferred may have what it had, but not a half of that', () => {
    const status = { deferred: 'unknown', incompatible: false } as StatusView;
    expect(judge(world({ nodes: [found('a', 'v0', { status })] }))).toEqual([]);
    expect(judge(world({ nodes: [found('c', 'v0', { status, files: { '/etc/app': 'app v' } })] }))).toEqual([
      expect.stringMatching(/^I4 files: c says v0 is in force/),
    ]);
  });
  test('a file left behind, work that never ended, and a rollback that failed are seen', () => {
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

  test('one node may roll back while a dead one holds the unit, and no other and nothing else', () => {
    const back = granted('l2', 'b', { kind: 'rollback' });
    expect(judge(world({ facts: [...died, back] }))).toEqual([]);
    expect(judge(world({ facts: [...died, granted('l2', 'b')] }))).toContain(
      'I1 budget: l2 was granted to b while a of p were unavailable, and 1 may be',
    );
    expect(judge(world({ facts: [...died, back, granted('l3', 'c', { kind: 'rollback' })] }))).toContain(
      'I1 budget: l3 was granted to c while a, b of p were unavailable, and 1 may be',
    );
  });

  test('a grant beyond the budget is seen in the ledger', () => {
    expect(judge(world({ facts: [granted('l1', 'a'), granted('l2', 'b')] }))).toEqual([
      'I1 budget: l2 was granted to b while a of p were unavailable, and 1 may be',
    ]);
  });
  test('a silent node takes the unit, and one that is not restored', () => {
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
  test('nodes that work at once are seen on their disks, whatever the ledger says', () => {
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
  const deed = (did: DrainDeed['did'], atMs: number): DrainDeed => ({ did, node: 'a', lease: 'l1', atMs });
  const seen = (drainer: readonly DrainDeed[], held: ReadonlyMap<string, string> = new Map()): readonly string[] =>
    judge(world({ facts: [drained, released('l1', 'a')], works: [work], drainer, held }));

  test('a node that works only while the drainer holds it is as it should be', () => {
    expect(seen([deed('cordoned', 1), deed('drained', 9), deed('returned', 25)])).toEqual([]);
  });
  test("work before the drainer's word, or without one, is seen", () => {
    expect(seen([deed('cordoned', 1), deed('drained', 12), deed('returned', 25)])).toEqual([
      'I5 drains: a began to work on l1 before the drainer said that it is free',
    ]);
    expect(seen([deed('cordoned', 1)])).toEqual([
      'I5 drains: a began to work on l1 before the drainer said that it is free',
    ]);
  });
  test('a node that is given back in the middle, and one that never is, are seen', () => {
    expect(seen([deed('drained', 9), deed('returned', 15)])).toEqual([
      'I5 drains: a was still at work on l1 when the drainer gave it back',
    ]);
    expect(seen([deed('drained', 9)], new Map([['a', 'l1']]))).toEqual(['I5 drains: a is still held for l1']);
  });
  test('a unit that runs with other files than lie there is seen, where a change has to restart it', () => {
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
  test('a second lease for a node and one that leads to what is known-bad are seen', () => {
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
  test('a change without an end, one with two, and one that was acknowledged and lost are seen', () => {
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

test('a process that grew beyond its bound is seen once there were rounds enough', () => {
  const memory = [100, 120, 180, 250, 261].map((mib) => new Map([['merger', mib]]));
  expect(judge(world({ memory: memory.slice(0, 4) }))).toEqual([]);
  expect(judge(world({ memory }))).toEqual(['memory: merger has 261 MiB after 5 rounds, and had 100 after the first']);
});
