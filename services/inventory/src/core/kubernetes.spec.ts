import type { NodeReport } from '#libs/contracts';
import { LedgerCopy, linesOf, report } from '#libs/testing';
import { forgetNodes, inventoryCore, noteAnnounced, noteListed, noteNode, type Input, type State } from './index.js';

const READY = { uid: 'u1', unavailable: '' };

/** An inventory that asks Kubernetes. */
class Inventory extends LedgerCopy<State, Input> {
  private seq = 0;
  constructor() {
    super(inventoryCore({ silentAfterMs: 35_000, kubernetes: true }));
    this.leadingSinceMs = this.nowMs;
  }
  announces(node: string, more: Partial<NodeReport> = {}) {
    const said = report(node, 'x', { seq: (this.seq += 1), ...more });
    noteAnnounced(this.state, [said]);
    return this.when({ type: 'announced', report: said });
  }
  lists(nodes: Readonly<Record<string, typeof READY>>) {
    noteListed(this.state, Object.entries(nodes));
    return this.when();
  }
  /** What is written of the Node; undefined when it is deleted. */
  sees(node: string, seen: typeof READY | undefined) {
    return noteNode(this.state, node, seen) ? this.when() : [];
  }
  /** A node that has joined and whose Node is known. */
  static with(node: string): Inventory {
    const i = new Inventory();
    i.announces(node);
    expect(linesOf(i.lists({ [node]: READY }), 'node', 'uid')).toEqual([`node.available ${node} u1`]);
    return i;
  }
}

describe('a node that Kubernetes knows', () => {
  it('is out of service while its Node is, and each change is said once', () => {
    const i = Inventory.with('n0');
    expect(linesOf(i.sees('n0', { uid: 'u1', unavailable: 'NotReady' }), 'because', 'uid')).toEqual(['node.unavailable NotReady u1']);
    expect(i.view('nodes', 'n0')).toMatchObject({ state: 'ready', unavailable: 'NotReady', uid: 'u1' });
    expect(i.sees('n0', { uid: 'u1', unavailable: 'NotReady' })).toEqual([]);
    expect(linesOf(i.sees('n0', { uid: 'u1', unavailable: 'NotReady, cordoned' }), 'because')).toEqual(['node.unavailable NotReady, cordoned']);
    expect(linesOf(i.sees('n0', READY))).toEqual(['node.available']);
    expect(i.when()).toEqual([]);
  });

  it('stays so when it says something new, and begins anew when it joins again', () => {
    const i = Inventory.with('n0');
    i.sees('n0', { uid: 'u1', unavailable: 'cordoned' });
    i.announces('n0', { labels: { role: 'edge' } });
    expect(i.view('nodes', 'n0').unavailable).toBe('cordoned');
    i.when({ type: 'request', request: { op: 'remove', node: 'n0', by: 'me', reason: '' } });
    expect(linesOf(i.announces('n0'), 'because')).toEqual(['node.joined', 'node.unavailable cordoned']);
  });

  it('leaves when its Node is deleted, and what it still says brings it back no more', () => {
    const i = Inventory.with('n0');
    expect(linesOf(i.sees('n0', undefined), 'because', 'by', 'reason')).toEqual(['node.left deleted kubernetes its Node object was deleted']);
    expect(i.announces('n0')).toEqual([]);
    expect(i.view('nodes', 'n0')).toMatchObject({ state: 'gone', unavailable: '', uid: '' });
  });

  it('that left so joins by its last word when its Node is there again', () => {
    const i = Inventory.with('n0');
    i.sees('n0', undefined);
    i.announces('n0', { labels: { role: 'edge' } });
    expect(linesOf(i.sees('n0', { uid: 'u2', unavailable: 'NotReady' }), 'labels', 'uid')).toEqual(['node.joined {"role":"edge"}', 'node.unavailable u2']);
  });

  it('whose Node was deleted and made again, under the same name with another uid, is another one: it leaves and joins', () => {
    const i = Inventory.with('n0');
    expect(linesOf(i.sees('n0', { uid: 'u2', unavailable: '' }), 'reason', 'uid')).toEqual(['node.left its Node object was deleted and made again', 'node.joined', 'node.available u2']);
    expect(i.when()).toEqual([]);
  });

  it('whose Node went while nobody looked leaves when all are listed', () => {
    const i = Inventory.with('n0');
    i.announces('n1');
    forgetNodes(i.state);
    expect(i.sees('n0', undefined)).toEqual([]);
    expect(linesOf(i.lists({}), 'node', 'because')).toEqual(['node.left n0 deleted']);
    expect(i.view('nodes', 'n1').state).toBe('ready');
  });
});

it('a node that Kubernetes never knew stays what it is, whatever is listed', () => {
  const i = new Inventory();
  i.announces('router');
  expect(i.lists({ n0: READY })).toEqual([]);
  expect(i.view('nodes', 'router')).toMatchObject({ state: 'ready', unavailable: '', uid: '' });
});

it('a Node on which no applier ever spoke is no node', () => {
  const i = new Inventory();
  expect(i.lists({ n0: { uid: 'u1', unavailable: 'NotReady' } })).toEqual([]);
  expect(linesOf(i.announces('n0'), 'because')).toEqual(['node.joined', 'node.unavailable NotReady']);
});

it('a copy that begins anew says nothing twice, and nothing before it has asked', () => {
  const i = Inventory.with('n0');
  i.restart();
  expect(i.when()).toEqual([]);
  expect(i.lists({ n0: READY })).toEqual([]);
});
