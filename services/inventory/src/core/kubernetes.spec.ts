import type { NodeReport } from '#libs/contracts';
import { LedgerCopy, linesOf, report } from '#libs/testing';
import {
  forgetNodes,
  inventoryCore,
  noteAnnounced,
  noteListed,
  noteNode,
  type Input,
  type KubernetesNode,
  type State,
} from './index.js';

const READY: KubernetesNode = { uid: 'u1', labels: {}, unavailable: undefined, bootId: undefined };

/** An inventory that reads Node objects from Kubernetes. */
class Inventory extends LedgerCopy<State, Input> {
  private seq = 0;
  constructor() {
    super(inventoryCore({ silentAfterMs: 35_000, kubernetes: true }));
    this.leadingSinceMs = this.nowMs;
  }
  announces(node: string, more: Partial<NodeReport> = {}) {
    const announcement = report(node, 'x', { seq: (this.seq += 1), ...more });
    noteAnnounced(this.state, [announcement]);
    return this.when({ type: 'announced', report: announcement });
  }
  lists(nodes: Readonly<Record<string, KubernetesNode>>) {
    noteListed(this.state, new Map(Object.entries(nodes)));
    return this.when();
  }
  /** The current Node object; undefined if it was deleted. */
  sees(node: string, seen: KubernetesNode | undefined) {
    return noteNode(this.state, node, seen) ? this.when() : [];
  }
  /** A node that has joined and whose Node is known. */
  static with(node: string): Inventory {
    const i = new Inventory();
    i.announces(node);
    expect(linesOf(i.lists({ [node]: READY }), 'node', 'uid')).toEqual([
      `node.joined ${node}`,
      `node.available ${node} u1`,
    ]);
    return i;
  }
}

describe('a node that Kubernetes knows', () => {
  it('is unavailable while its Node is, and each change is recorded once', () => {
    const i = Inventory.with('n0');
    expect(linesOf(i.sees('n0', { ...READY, uid: 'u1', unavailable: 'NotReady' }), 'because', 'uid')).toEqual([
      'node.unavailable NotReady u1',
    ]);
    expect(i.view('nodes', 'n0')).toMatchObject({ state: 'ready', unavailable: 'NotReady', uid: 'u1' });
    expect(i.sees('n0', { ...READY, uid: 'u1', unavailable: 'NotReady' })).toEqual([]);
    expect(linesOf(i.sees('n0', { ...READY, uid: 'u1', unavailable: 'NotReady, cordoned' }), 'because')).toEqual([
      'node.unavailable NotReady, cordoned',
    ]);
    expect(linesOf(i.sees('n0', READY))).toEqual(['node.available']);
    expect(i.when()).toEqual([]);
  });

  it('stays unavailable when its announcement changes, and starts over when it joins again', () => {
    const i = Inventory.with('n0');
    i.sees('n0', { ...READY, uid: 'u1', unavailable: 'cordoned' });
    i.announces('n0', { labels: { role: 'edge' } });
    expect(i.view('nodes', 'n0').unavailable).toBe('cordoned');
    i.when({ type: 'request', request: { op: 'remove', node: 'n0', force: true, by: 'me', reason: '' } });
    expect(linesOf(i.announces('n0'), 'because')).toEqual(['node.joined', 'node.unavailable cordoned']);
  });

  it('leaves when its Node is deleted, and its reports do not make it join again', () => {
    const i = Inventory.with('n0');
    expect(linesOf(i.sees('n0', undefined), 'because', 'by', 'reason')).toEqual([
      'node.left deleted kubernetes its Node object was deleted',
    ]);
    expect(i.announces('n0')).toEqual([]);
    expect(i.view('nodes', 'n0')).toMatchObject({ state: 'gone', unavailable: '', uid: '' });
  });

  it('joins again with its last announcement when its Node exists again', () => {
    const i = Inventory.with('n0');
    i.sees('n0', undefined);
    i.announces('n0', { labels: { role: 'edge' } });
    expect(linesOf(i.sees('n0', { ...READY, uid: 'u2', unavailable: 'NotReady' }), 'labels', 'uid')).toEqual([
      'node.joined {"role":"edge"}',
      'node.unavailable u2',
    ]);
  });

  it('leaves and joins again if its Node was deleted and recreated with another uid', () => {
    const i = Inventory.with('n0');
    expect(linesOf(i.sees('n0', { ...READY, uid: 'u2' }), 'reason', 'uid')).toEqual([
      'node.left its Node object was deleted and recreated',
      'node.joined',
      'node.available u2',
    ]);
    expect(i.when()).toEqual([]);
  });

  it('leaves at the next list if its Node was deleted during an outage', () => {
    const i = Inventory.with('n0');
    i.announces('n1');
    expect(i.view('nodes', 'n1').state).toBe('ready');
    forgetNodes(i.state);
    expect(i.sees('n0', undefined)).toEqual([]);
    expect(linesOf(i.lists({}), 'node', 'because')).toEqual(['node.left n0 deleted']);
    expect(i.view('nodes', 'n1').state).toBe('ready');
  });
});

it('no node leaves if none of three known Nodes is listed, because it is another cluster', () => {
  const i = new Inventory();
  const nodes = { n0: READY, n1: READY, n2: READY };
  for (const node of Object.keys(nodes)) i.announces(node);
  i.lists(nodes);
  forgetNodes(i.state);
  expect(i.lists({ other: { ...READY, uid: 'u9' } })).toEqual([]);
  expect(i.sees('n0', undefined)).toEqual([]);
  expect(i.announces('new')).toEqual([]);
  expect(linesOf(i.lists({ n0: READY }), 'node')).toEqual(['node.left n1', 'node.left n2', 'node.joined new']);
});

describe('when all Node objects were recreated during an outage', () => {
  const recreated = (bootId: string): KubernetesNode => ({ ...READY, uid: 'u2', bootId });
  const later = (): Inventory => {
    const i = new Inventory();
    for (const node of ['n0', 'n1', 'n2']) i.announces(node, { bootId: `boot of ${node}` });
    i.lists({ n0: READY, n1: READY, n2: READY });
    i.restart();
    i.state.announcements.clear();
    return i;
  };
  const rejoined = ['node.left n1', 'node.left n2', 'node.left n0', 'node.joined n0', 'node.available n0'].sort();

  it('the nodes leave and join once an applier has reported from one of their machines', () => {
    const i = later();
    const machines = { n0: recreated('boot of n0'), n1: recreated('boot of n1') };
    expect(i.lists(machines)).toEqual([]);
    expect([...linesOf(i.announces('n0', { bootId: 'boot of n0' }), 'node')].sort()).toEqual(rejoined);
  });

  it('the nodes leave and join once a kubelet has reported the machine of an applier', () => {
    const i = later();
    expect(i.lists({ n0: recreated('a boot before') })).toEqual([]);
    expect(i.announces('n0', { bootId: 'boot of n0' })).toEqual([]);
    expect([...linesOf(i.sees('n0', recreated('boot of n0')), 'node')].sort()).toEqual(rejoined);
  });

  it('machines of another cluster with the same names change nothing', () => {
    const i = later();
    expect(i.lists({ n0: recreated('another'), n1: recreated('and another') })).toEqual([]);
    expect(i.announces('n0', { bootId: 'boot of n0' })).toEqual([]);
    expect(i.announces('n1', { bootId: 'boot of n1' })).toEqual([]);
    expect(i.sees('n2', recreated('a third'))).toEqual([]);
  });
});

it('a node that was never in Kubernetes stays, whatever is listed', () => {
  const i = new Inventory();
  i.announces('router');
  expect(linesOf(i.lists({ n0: READY }), 'node')).toEqual(['node.joined router']);
  expect(i.lists({})).toEqual([]);
  expect(i.view('nodes', 'router')).toMatchObject({ state: 'ready', unavailable: '', uid: '' });
});

it('a Node without an applier does not join', () => {
  const i = new Inventory();
  expect(i.lists({ n0: { ...READY, uid: 'u1', unavailable: 'NotReady' } })).toEqual([]);
  expect(linesOf(i.announces('n0'), 'because')).toEqual(['node.joined', 'node.unavailable NotReady']);
});

it('a copy that starts records nothing twice, and nothing before it has read the Nodes', () => {
  const i = Inventory.with('n0');
  i.restart();
  expect(i.when()).toEqual([]);
  expect(i.lists({ n0: READY })).toEqual([]);
});

describe('the labels of a node', () => {
  const labelled = (labels: Readonly<Record<string, string>>): KubernetesNode => ({ ...READY, labels });

  it('are its own plus those of its Node object, which win, from its join on', () => {
    const i = new Inventory();
    expect(i.announces('n0', { labels: { role: 'own', rack: '1' } })).toEqual([]);
    expect(linesOf(i.lists({ n0: labelled({ role: 'edge' }) }), 'labels', 'kubernetesLabels', 'uid')).toEqual([
      'node.joined {"role":"edge","rack":"1"} {"role":"edge"}',
      'node.available u1',
    ]);
    expect(i.announces('n0', { labels: { role: 'other', rack: '1' } })).toEqual([]);
    expect(linesOf(i.announces('n0', { labels: { role: 'other', rack: '2' } }), 'labels')).toEqual([
      'node.changed {"role":"edge","rack":"2"}',
    ]);
  });

  it("change with the Node object, and the node's own value returns when one is removed there", () => {
    const i = new Inventory();
    i.lists({ n0: labelled({ role: 'edge', zone: 'a' }) });
    i.announces('n0', { labels: { role: 'own' } });
    expect(linesOf(i.sees('n0', labelled({ role: 'core', zone: 'a' })), 'labels')).toEqual([
      'node.changed {"role":"core","zone":"a"}',
    ]);
    expect(i.sees('n0', labelled({ zone: 'a', role: 'core' }))).toEqual([]);
    expect(linesOf(i.sees('n0', labelled({ zone: 'b' })), 'labels', 'kubernetesLabels')).toEqual([
      'node.changed {"role":"own","zone":"b"} {"zone":"b"}',
    ]);
    expect(i.when()).toEqual([]);
  });

  it('are known to a copy that starts, even before the node announces itself again', () => {
    const i = new Inventory();
    i.lists({ n0: labelled({ role: 'edge' }) });
    i.announces('n0', { labels: { rack: '1' } });
    i.restart();
    expect(i.announces('n0', { labels: { rack: '2' } })).toMatchObject([
      { type: 'node.changed', labels: { rack: '2', role: 'edge' } },
    ]);
    i.restart();
    i.state.announcements.clear();
    expect(linesOf(i.lists({ n0: labelled({ role: 'core' }) }), 'labels')).toEqual([
      'node.changed {"rack":"2","role":"core"}',
    ]);
  });

  it('are its own if Kubernetes has no Node with that name', () => {
    const i = new Inventory();
    i.announces('router', { labels: { role: 'own' } });
    expect(linesOf(i.lists({}), 'node', 'labels')).toEqual(['node.joined router {"role":"own"}']);
  });
});
