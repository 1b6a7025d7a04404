import fc from 'fast-check';
import type { NodeReport } from '#libs/contracts';
import { migrated } from '#libs/engine';
import { factOf, LedgerCopy, linesOf, MemoryLedger, report } from '#libs/testing';
import { hear, hearReport, inventoryCore, type Input, type Request, type State } from './index.js';

const SILENT_AFTER_MS = 35_000;

class Inventory extends LedgerCopy<State, Input> {
  constructor(ledger = new MemoryLedger()) {
    super(inventoryCore({ silentAfterMs: SILENT_AFTER_MS }), ledger);
    this.leadingSinceMs = this.nowMs;
  }
  announces(node: string, more: Partial<NodeReport> = {}) {
    return this.when(this.announcement(node, more));
  }
  announcement(node: string, more: Partial<NodeReport> = {}): Input {
    return { type: 'announced', report: report(node, 'x', more) };
  }
  heartbeats(...nodes: readonly string[]): this {
    for (const node of nodes) hear(this.state, node, this.nowMs, '2026-01-01T00:00:00.000Z');
    return this;
  }
  asks(request: Request) {
    return this.when({ type: 'request', request });
  }
}

describe('an announcement', () => {
  it('of an unknown node is a join', () => {
    const facts = new Inventory().announces('n0', {
      labels: { role: 'edge' },
      capabilities: ['kind:File'],
      fresh: true,
      version: '1',
    });
    expect(facts).toMatchObject([
      {
        type: 'node.joined',
        node: 'n0',
        labels: { role: 'edge' },
        capabilities: ['kind:File'],
        fresh: true,
        version: '1',
      },
    ]);
  });

  it('of a target that cannot be used is no join until it can', () => {
    const i = new Inventory();
    expect(i.announces('n0', { seq: 1, unavailable: 'control plane not ready' })).toEqual([]);
    expect(linesOf(i.announces('n0', { seq: 2 }))).toEqual(['node.joined']);
    i.asks({ op: 'remove', node: 'n0', force: true, by: 'me', reason: '' });
    expect(i.announces('n0', { seq: 3, unavailable: 'control plane not ready' })).toEqual([]);
    expect(linesOf(i.announces('n0', { seq: 4 }))).toEqual(['node.joined']);
  });

  it('of a target that has joined, and cannot be used now, is no change', () => {
    const i = new Inventory();
    i.announces('n0', { seq: 1 });
    expect(i.announces('n0', { seq: 2, unavailable: 'no answer in 5 s' })).toEqual([]);
  });

  it('that is repeated or redelivered changes nothing', () => {
    const i = new Inventory();
    i.announces('n0', { seq: 1 });
    expect(i.announces('n0', { seq: 1 })).toEqual([]);
    expect(i.announces('n0', { seq: 2 })).toEqual([]);
  });

  it.each([
    ['labels', { labels: { zone: 'b' } }],
    ['capabilities', { capabilities: ['kind:File'] }],
  ])('with other %s is a change', (_, more) => {
    const i = new Inventory();
    i.announces('n0', { seq: 1 });
    expect(i.announces('n0', { seq: 2, ...more })).toMatchObject([{ type: 'node.changed', node: 'n0', ...more }]);
  });

  it('that is older changes nothing', () => {
    const i = new Inventory();
    i.announces('n0', { incarnation: 2, nonce: 4, seq: 3 });
    expect(i.announces('n0', { incarnation: 1, nonce: 7, seq: 9, labels: { old: '1' } })).toEqual([]);
    expect(i.announces('n0', { incarnation: 2, nonce: 4, seq: 2, labels: { old: '1' } })).toEqual([]);
    expect(i.announces('n0', { incarnation: 2, nonce: 5, seq: 9, labels: { other: '1' } })).toEqual([]);
  });

  it('that is late, after one without news, changes nothing', () => {
    const i = new Inventory();
    i.announces('n0', { nonce: 1, seq: 1, labels: { zone: 'a' } });
    i.given(factOf('node.reported', { node: 'n0', report: 'announced', incarnation: 1, nonce: 1, seq: 3 }));
    expect(i.announces('n0', { nonce: 1, seq: 2, labels: { zone: 'b' } })).toEqual([]);
    expect(i.announces('n0', { nonce: 1, seq: 3, labels: { zone: 'c' } })).toMatchObject([
      { type: 'node.changed', labels: { zone: 'c' } },
    ]);
  });

  it('of a node that has left is a join again', () => {
    const i = new Inventory();
    i.announces('n0', { seq: 1 });
    i.asks({ op: 'remove', node: 'n0', force: true, by: 'me', reason: '' });
    expect(i.announces('n0', { seq: 1 })).toEqual([]); // the old one, redelivered
    expect(linesOf(i.announces('n0', { seq: 2 }))).toEqual(['node.joined']);
  });
});

it.each([
  [{ note: 'a=b' }, 'n0 announces a label that it cannot have: the value of the label note must be a label value'],
  [{ 'a b': '' }, 'n0 announces a label that it cannot have: the key of the label "a b" must be a label key'],
])('an announcement with the labels %j is refused with a reason, and the next valid one counts', (labels, message) => {
  const i = new Inventory();
  expect(i.announces('n0', { seq: 1, labels })).toEqual([]);
  expect(i.answers).toMatchObject([
    { ok: false, code: 'bad-label', message: expect.stringContaining(message) as string },
  ]);
  expect(linesOf(i.announces('n0', { seq: 2, labels: { zone: 'a' } }))).toEqual(['node.joined']);
});

describe('an announcement whose incarnation is far above the last one', () => {
  const reported = (incarnation: number) =>
    factOf('node.reported', { node: 'n0', report: 'applied', incarnation, nonce: 9, seq: 1 });
  const joined = (): Inventory => {
    const i = new Inventory();
    i.announces('n0', { seq: 1 });
    return i;
  };

  it('is refused with a reason, and the next valid one counts', () => {
    const i = joined();
    expect(i.announces('n0', { incarnation: 1_002, labels: { zone: 'x' } })).toEqual([]);
    expect(i.answers).toMatchObject([{ ok: false, code: 'bad-incarnation' }]);
    expect(linesOf(i.announces('n0', { seq: 2, labels: { zone: 'a' } }), 'labels')).toEqual([
      'node.changed {"zone":"a"}',
    ]);
  });

  it('counts if the scheduler has processed other reports in between', () => {
    const i = joined().given(
      reported(1_001),
      factOf('node.lease.settled', {
        node: 'n0',
        lease: 'n0-l1',
        pool: 'default',
        kind: 'forward',
        because: 'applied',
        report: {
          incarnation: 2_001,
          nonce: 9,
          seq: 1,
          hash: '',
          verdict: '',
          bootId: '',
          reportSequence: 7,
          notUndone: [],
          leftovers: [],
        },
      }),
    );
    expect(linesOf(i.announces('n0', { incarnation: 2_002, labels: { zone: 'a' } }))).toEqual(['node.changed']);
  });

  it('starts over with low incarnations after the node was removed', () => {
    const i = joined();
    i.announces('n0', { incarnation: 1_001, labels: { zone: 'x' } });
    i.given(reported(1_001));
    i.asks({ op: 'remove', node: 'n0', force: true, by: 'me', reason: '' });
    expect(i.announces('n0', { incarnation: 1_001, seq: 9 })).toEqual([]);
    expect(linesOf(i.announces('n0', { incarnation: 1, seq: 1 }))).toEqual(['node.joined']);
  });
});

describe('silence', () => {
  it('is recorded when a node was not heard for too long', () => {
    const i = new Inventory();
    i.announces('n0');
    i.heartbeats('n0');
    expect(i.after(SILENT_AFTER_MS - 1)).toEqual([]);
    expect(linesOf(i.after(1), 'node', 'lastHeard')).toEqual(['node.silent n0 2026-01-01T00:00:00.000Z']);
    expect(i.view('nodes', 'n0').state).toBe('silent');
  });

  it('is not recorded for a node that sends reports but no heartbeats', () => {
    const i = new Inventory();
    i.announces('n0');
    i.heartbeats('n0');
    i.nowMs += SILENT_AFTER_MS - 1;
    expect(hearReport(i.state, 'n0', i.nowMs, '2026-01-01T00:01:00.000Z')).toBe(false);
    expect(i.after(SILENT_AFTER_MS - 1)).toEqual([]);
    expect(linesOf(i.after(1), 'node', 'lastHeard')).toEqual(['node.silent n0 2026-01-01T00:01:00.000Z']);
    expect(hearReport(i.state, 'n0', i.nowMs)).toBe(true);
    expect(linesOf(i.when(), 'node')).toEqual(['node.heard n0']);
  });

  it('is not recorded for an unknown node that sent a report', () => {
    const i = new Inventory();
    expect(hearReport(i.state, 'n0', i.nowMs)).toBe(false);
    expect(i.when()).toEqual([]);
  });

  it('is not recorded by a copy that has not listened that long itself', () => {
    const i = new Inventory().given(factOf('node.joined', { node: 'n0' }));
    i.nowMs += 1_000_000;
    i.leadingSinceMs = i.nowMs;
    expect(i.when()).toEqual([]);
    expect(linesOf(i.after(SILENT_AFTER_MS))).toEqual(['node.silent']);
  });

  it('is not recorded by a copy that does not lead', () => {
    const i = new Inventory().given(factOf('node.joined', { node: 'n0' }));
    i.leadingSinceMs = undefined;
    expect(i.after(1_000_000)).toEqual([]);
  });

  it('is not recorded for a node that has just joined, however long the copy has led', () => {
    const i = new Inventory();
    i.nowMs += 1_000_000;
    expect(linesOf(i.announces('n0'))).toEqual(['node.joined']);
    expect(i.after(SILENT_AFTER_MS - 1)).toEqual([]);
  });

  it('ends when the node is heard from again', () => {
    const i = new Inventory();
    i.announces('n0');
    i.after(SILENT_AFTER_MS);
    i.heartbeats('n0');
    expect(linesOf(i.when(), 'node')).toEqual(['node.heard n0']);
    expect(i.view('nodes', 'n0').state).toBe('ready');
  });

  it('does not end for a copy that only reads the ledger again', () => {
    const i = new Inventory();
    i.announces('n0');
    i.after(SILENT_AFTER_MS);
    const second = new Inventory(i.ledger);
    expect(second.when()).toEqual([]);
    expect(second.view('nodes', 'n0').state).toBe('silent');
  });

  it('never makes a node leave', () => {
    const i = new Inventory();
    i.announces('n0');
    expect(linesOf(i.after(365 * 24 * 3_600_000))).toEqual(['node.silent']);
    expect(i.when()).toEqual([]);
  });

  it('is checked next when a node can become silent', () => {
    const i = new Inventory();
    i.announces('n0');
    i.heartbeats('n0');
    expect(i.decide().wakeAtMs).toBe(i.nowMs + SILENT_AFTER_MS);
  });
});

describe('removing a node', () => {
  it('records once that it left', () => {
    const i = new Inventory();
    i.announces('n0');
    expect(i.asks({ op: 'remove', node: 'n0', force: true, by: 'me', reason: 'scrapped' })).toMatchObject([
      { type: 'node.left', node: 'n0', because: 'removed', by: 'me', reason: 'scrapped' },
    ]);
    expect(i.asks({ op: 'remove', node: 'n0', force: true, by: 'me', reason: '' })).toEqual([]);
    expect(i.answers).toMatchObject([{ ok: true }]);
    expect(i.view('nodes', 'n0').state).toBe('gone');
  });

  it('is refused without force while it still reports, and allowed when it is silent', () => {
    const i = new Inventory();
    i.announces('n0');
    expect(i.asks({ op: 'remove', node: 'n0', force: false, by: 'me', reason: '' })).toEqual([]);
    expect(i.answers).toMatchObject([
      { ok: false, code: 'conflict', message: expect.stringContaining('n0 is still reporting: stop its applier') },
    ]);
    i.after(SILENT_AFTER_MS);
    expect(i.view('nodes', 'n0').state).toBe('silent');
    expect(linesOf(i.asks({ op: 'remove', node: 'n0', force: false, by: 'me', reason: '' }), 'because')).toEqual([
      'node.left removed',
    ]);
  });

  it('is refused for an unknown node', () => {
    const i = new Inventory();
    i.asks({ op: 'remove', node: 'n0', force: true, by: 'me', reason: '' });
    expect(i.answers).toMatchObject([{ ok: false, code: 'not-found' }]);
  });
});

describe('a list of nodes', () => {
  it('has pages with all existing nodes, and none that has left', () => {
    const i = new Inventory();
    for (const node of ['c', 'a', 'd', 'b', 'e.dc1']) i.announces(node);
    i.asks({ op: 'remove', node: 'b', force: true, by: 'me', reason: '' });
    i.asks({ op: 'list', cursor: '', limit: 2 });
    expect(i.answers).toMatchObject([{ ok: true, body: { nodes: [{ node: 'a' }, { node: 'c' }], next: 'c' } }]);
    i.asks({ op: 'list', cursor: 'c', limit: 2 });
    expect(i.answers).toEqual([{ ok: true, body: expect.not.objectContaining({ next: expect.anything() }) }]);
    expect(i.answers).toMatchObject([{ ok: true, body: { nodes: [{ node: 'd' }, { node: 'e.dc1' }] } }]);
  });

  it('shows the details of one node', () => {
    const i = new Inventory();
    i.announces('w-1.dc1', { labels: { a: '1' } });
    i.asks({ op: 'get', node: 'w-1.dc1' });
    expect(i.answers).toMatchObject([{ ok: true, body: { node: 'w-1.dc1', state: 'ready', labels: { a: '1' } } }]);
    expect(i.view('nodes', 'w-1_dc1')).toMatchObject({ node: 'w-1.dc1' });
  });
});

it('a dump of version 3 is loaded, and its empty values become absent', () => {
  const i = new Inventory();
  i.announces('n0');
  const { nodes, announced } = i.core.dump(i.state) as {
    readonly nodes: readonly object[];
    readonly announced: object;
  };
  const before = { nodes: nodes.map((node) => ({ ...node, because: '', unavailable: '', uid: '' })), announced };
  const state = i.core.load(migrated(i.core, 3, before), 0) as State;
  expect(state.nodes.get('n0')).toEqual(i.state.nodes.get('n0'));
  expect(state.nodes.get('n0')).not.toHaveProperty('uid');
});

it('announcements give the same labels, however often and in whatever order they are repeated', () => {
  const made = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(made, fc.array(fc.nat(5), { maxLength: 8 }), (zones, repeats) => {
      const i = new Inventory();
      const all = zones.map((zone, n) => i.announcement('n0', { seq: n + 1, labels: { zone } }));
      i.when(...all);
      const before = i.ledger.last;
      i.when(...repeats.map((n) => all[n % all.length] as Input));
      expect(i.view('nodes', 'n0').labels).toEqual({ zone: zones.at(-1) });
      expect(i.ledger.last).toBe(before);
    }),
    { numRuns: 50 },
  );
});
