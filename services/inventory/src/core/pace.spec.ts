import { factOf, LedgerCopy, linesOf } from '#libs/testing';
import { hear, inventoryCore, paceFor, type Input, type State } from './index.js';

const SILENT_AFTER_MS = 35_000;
/** Of a small fleet, so that few nodes make a large one. */
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
  leadsAnew(): void {
    this.nowMs += 500_000;
    this.leadingSinceMs = this.nowMs;
    this.when();
  }
  hears(node: string, pacedMs: number): void {
    hear(this.state, node, this.nowMs, '', pacedMs);
  }
}

describe('what a node is asked for', () => {
  it.each([
    ['nothing in a small fleet', 10, 10_000, 0, undefined],
    ['nothing where it is only a little too often', 14, 10_000, 0, undefined],
    ['to beat less often in a large one', 30, 10_000, 0, 36_000],
    ['nothing more once it does', 30, 36_000, 36_000, undefined],
    ['nothing more when some nodes joined', 50, 36_000, 36_000, undefined],
    ['even less often when many joined', 60, 36_000, 36_000, 72_000],
    ['nothing when some left', 19, 36_000, 36_000, undefined],
    ['more often when many left', 15, 36_000, 36_000, 18_000],
    ['to beat as it likes when it is a small fleet again', 5, 36_000, 36_000, 0],
    ['nothing when it beats seldom by itself', 30, 60_000, 0, undefined],
    ['nothing when it does not say how often it beats', 30, 0, 0, undefined],
  ])('%s', (_, nodes, everyMs, pacedMs, asked) => {
    expect(new Inventory(nodes).pace(everyMs, pacedMs)).toBe(asked);
  });

  it('is to beat as it likes where no number is set, also one that was asked before', () => {
    const i = new Inventory(1_000);
    expect([i.pace(10_000, 0, 0), i.pace(36_000, 36_000, 0)]).toEqual([undefined, 0]);
  });

  it('counts the nodes that there are, not those that have left', () => {
    const i = new Inventory(30);
    i.given(...Array.from({ length: 25 }, (_, n) => factOf('node.left', { node: `n${n + 5}` })));
    i.after(SILENT_AFTER_MS);
    expect(i.pace(10_000)).toBeUndefined();
  });
});

describe('silence in a large fleet', () => {
  it('is said of a node that was asked to beat seldom only after it should have been heard several times', () => {
    const i = new Inventory(1);
    i.hears('n0', 60_000);
    expect(i.after(209_999)).toEqual([]);
    expect(linesOf(i.after(1))).toEqual(['node.silent']);
  });

  it('is said in the usual time of one that was not', () => {
    const i = new Inventory(1);
    i.hears('n0', 60_000);
    i.hears('n0', 0);
    expect(linesOf(i.after(SILENT_AFTER_MS))).toEqual(['node.silent']);
  });

  it('is said some day, whatever a node says of its beats', () => {
    const i = new Inventory(1);
    i.hears('n0', 1e300);
    expect(linesOf(i.after(3.5 * 600_000))).toEqual(['node.silent']);
  });

  it('is said in the usual time of those that a new leader has heard, however long it waits for the others', () => {
    const i = new Inventory(30);
    i.leadsAnew();
    i.nowMs += 5_000;
    for (let n = 0; n < 10; n += 1) i.hears(`n${n}`, 0);
    i.nowMs += SILENT_AFTER_MS;
    expect(linesOf(i.when(), 'node')).toEqual(Array.from({ length: 10 }, (_, n) => `node.silent n${n}`));
  });

  it.each([0, 10_000])(
    'is not said by a new leader that aims at %d a second of those that were asked by the one before',
    (perSecond) => {
      const i = new Inventory(60, perSecond);
      i.leadsAnew();
      i.nowMs += 10_000;
      i.hears('n59', 72_000); // the others' next beats come within 72 s
      expect(i.after(61_000)).toEqual([]);
    },
  );

  it('is not said by a leader that was cut off of those whose pace it knows', () => {
    const i = new Inventory(60);
    i.hears('n0', 72_000);
    i.given(...Array.from({ length: 58 }, (_, n) => factOf('node.left', { node: `n${n + 2}` })));
    i.nowMs += 1_000;
    i.leadingSinceMs = i.nowMs;
    i.when();
    expect(i.after(70_000)).toEqual([]);
  });

  it('is not said of a node that joins again and beats as seldom as it was asked before', () => {
    const i = new Inventory(60);
    i.leadsAnew();
    i.given(factOf('node.left', { node: 'n0' }), factOf('node.joined', { node: 'n0' }));
    i.when();
    expect(i.after(72_000)).toEqual([]);
  });

  it('is not said by a new leader before the seldom ones can have been heard by it', () => {
    const i = new Inventory(30);
    i.leadsAnew();
    expect(i.after(2 * 3.5 * 30_000 - 1)).toEqual([]);
    expect(i.after(1)).toHaveLength(30);
  });
});
