import { factOf, LedgerCopy, linesOf } from '#libs/testing';
import { hear, inventoryCore, paceFor, type Input, type State } from './index.js';

const SILENT_AFTER_MS = 35_000;
/** Low, so that few nodes count as a large fleet. */
const PER_SECOND = 1;

class Inventory extends LedgerCopy<State, Input> {
  constructor(nodes: number, perSecond = PER_SECOND) {
    super(inventoryCore({ silentAfterMs: SILENT_AFTER_MS, heartbeatsPerSecond: perSecond }));
    this.leadingSinceMs = this.nowMs;
    this.given(...Array.from({ length: nodes }, (_, n) => factOf('node.joined', { node: `n${n}` })));
    this.when();
  }
  pace(everyMs: number, pacedMs = 0, perSecond = PER_SECOND): number | undefined {
    return paceFor(this.state, { node: 'n0', incarnation: 1, nonce: 1, everyMs, pacedMs }, perSecond);
  }
  leadsAgain(): void {
    this.nowMs += 500_000;
    this.leadingSinceMs = this.nowMs;
    this.when();
  }
  heartbeat(node: string, pacedMs: number): void {
    hear(this.state, node, this.nowMs, '', pacedMs);
  }
}

describe('the requested heartbeat interval', () => {
  it.each([
    ['is not set in a small fleet', 10, 10_000, 0, undefined],
    ['is not set if the rate is only slightly too high', 14, 10_000, 0, undefined],
    ['is longer in a large fleet', 30, 10_000, 0, 36_000],
    ['stays the same once the node uses it', 30, 36_000, 36_000, undefined],
    ['stays the same when a few nodes have joined', 50, 36_000, 36_000, undefined],
    ['is longer when many nodes have joined', 60, 36_000, 36_000, 72_000],
    ['stays the same when a few nodes have left', 19, 36_000, 36_000, undefined],
    ['is shorter when many nodes have left', 15, 36_000, 36_000, 18_000],
    ['is removed when the fleet is small again', 5, 36_000, 36_000, 0],
    ['is not set if the own interval of the node is long', 30, 60_000, 0, undefined],
    ['is not set if the node does not report its interval', 30, 0, 0, undefined],
  ])('%s', (_, nodes, everyMs, pacedMs, expected) => {
    expect(new Inventory(nodes).pace(everyMs, pacedMs)).toBe(expected);
  });

  it('is removed if no limit is set', () => {
    const i = new Inventory(1_000);
    expect([i.pace(10_000, 0, 0), i.pace(36_000, 36_000, 0)]).toEqual([undefined, 0]);
  });

  it('depends on the existing nodes, not on those that have left', () => {
    const i = new Inventory(30);
    i.given(...Array.from({ length: 25 }, (_, n) => factOf('node.left', { node: `n${n + 5}` })));
    i.after(SILENT_AFTER_MS);
    expect(i.pace(10_000)).toBeUndefined();
  });
});

describe('a silent node in a large fleet', () => {
  it('with a long interval is recorded only after several heartbeats are missing', () => {
    const i = new Inventory(1);
    i.heartbeat('n0', 60_000);
    expect(i.after(209_999)).toEqual([]);
    expect(linesOf(i.after(1))).toEqual(['node.silent']);
  });

  it('with the default interval is recorded after the default time', () => {
    const i = new Inventory(1);
    i.heartbeat('n0', 60_000);
    i.heartbeat('n0', 0);
    expect(linesOf(i.after(SILENT_AFTER_MS))).toEqual(['node.silent']);
  });

  it('is recorded eventually, whatever interval its heartbeats contain', () => {
    const i = new Inventory(1);
    i.heartbeat('n0', 1e300);
    expect(linesOf(i.after(3.5 * 600_000))).toEqual(['node.silent']);
  });

  it('that a new leader has heard is recorded after the default time, even while other nodes need longer', () => {
    const i = new Inventory(30);
    i.leadsAgain();
    i.nowMs += 5_000;
    for (let n = 0; n < 10; n += 1) i.heartbeat(`n${n}`, 0);
    i.nowMs += SILENT_AFTER_MS;
    expect(linesOf(i.when(), 'node')).toEqual(Array.from({ length: 10 }, (_, n) => `node.silent n${n}`));
  });

  it.each([0, 10_000])(
    'is not recorded by a new leader with limit %d if the previous leader asked for a long interval',
    (perSecond) => {
      const i = new Inventory(60, perSecond);
      i.leadsAgain();
      i.nowMs += 10_000;
      i.heartbeat('n59', 72_000); // the next heartbeats of the others arrive within 72 s
      expect(i.after(61_000)).toEqual([]);
    },
  );

  it('is not recorded too early by a leader that was disconnected and knows the intervals', () => {
    const i = new Inventory(60);
    i.heartbeat('n0', 72_000);
    i.given(...Array.from({ length: 58 }, (_, n) => factOf('node.left', { node: `n${n + 2}` })));
    i.nowMs += 1_000;
    i.leadingSinceMs = i.nowMs;
    i.when();
    expect(i.after(70_000)).toEqual([]);
  });

  it('is not recorded too early after it joined again and kept its long interval', () => {
    const i = new Inventory(60);
    i.leadsAgain();
    i.given(factOf('node.left', { node: 'n0' }), factOf('node.joined', { node: 'n0' }));
    i.when();
    expect(i.after(72_000)).toEqual([]);
  });

  it('is not recorded by a new leader before nodes with long intervals can have been heard', () => {
    const i = new Inventory(30);
    i.leadsAgain();
    expect(i.after(2 * 3.5 * 30_000 - 1)).toEqual([]);
    expect(i.after(1)).toHaveLength(30);
  });
});
