import type { NodeReport } from '#libs/contracts';
import { LedgerCopy, linesOf, report } from '#libs/testing';
import { inventoryCore, noteListed, type Input, type State } from './index.js';

type Labels = Readonly<Record<string, string>>;

class Inventory extends LedgerCopy<State, Input> {
  private seq = 0;
  constructor(kubernetes = false) {
    super(inventoryCore({ silentAfterMs: 35_000, kubernetes }));
    this.leadingSinceMs = this.nowMs;
  }
  announces(labels: Labels, more: Partial<NodeReport> = {}) {
    return this.when({ type: 'announced', report: report('n0', 'x', { seq: (this.seq += 1), labels, ...more }) });
  }
  label(set: Labels, ...remove: readonly string[]) {
    return this.when({ type: 'request', request: { op: 'label', node: 'n0', set, remove, by: 'ada' } });
  }
  get labels(): Labels {
    return this.view('nodes', 'n0').labels;
  }
}

/** A node that announces rack 1. */
const inRack1 = (): Inventory => {
  const i = new Inventory();
  i.announces({ rack: '1' });
  return i;
};

describe('a label that a person sets', () => {
  it("is recorded with the name of that person, and wins over the node's own", () => {
    const i = inRack1();
    expect(linesOf(i.label({ rack: '2', role: 'edge' }), 'labels', 'setLabels', 'hiddenLabels', 'by')).toEqual([
      'node.changed {"rack":"2","role":"edge"} {"rack":"2","role":"edge"} {"rack":"1"} ada',
    ]);
    expect(i.answers).toEqual([
      {
        ok: true,
        body: { node: 'n0', labels: { rack: '2', role: 'edge' }, setLabels: { rack: '2', role: 'edge' } },
      },
    ]);
    expect(i.view('nodes', 'n0')).toMatchObject({ setLabels: { rack: '2', role: 'edge' } });
  });

  it('survives restarts of the applier and of the service', () => {
    const i = inRack1();
    i.label({ rack: '2' });
    expect(i.announces({ rack: '1' }, { incarnation: 2 })).toEqual([]);
    i.restart();
    expect(linesOf(i.announces({ rack: '1', zone: 'a' }, { incarnation: 2 }), 'labels', 'by')).toEqual([
      'node.changed {"rack":"2","zone":"a"}',
    ]);
  });

  it("can be removed, and then the node's current value counts", () => {
    const i = inRack1();
    i.label({ rack: '2', role: 'edge' });
    i.announces({ rack: '3' });
    expect(i.labels).toEqual({ rack: '2', role: 'edge' });
    i.label({ role: 'core' }, 'rack');
    expect(i.labels).toEqual({ rack: '3', role: 'core' });
  });

  it('that is already set changes nothing', () => {
    const i = inRack1();
    i.label({ role: 'edge' });
    expect(i.label({ role: 'edge' })).toEqual([]);
    expect(i.answers).toMatchObject([{ ok: true }]);
  });

  it('also wins over the labels of the Node object', () => {
    const i = new Inventory(true);
    const seen = (labels: Labels) => {
      noteListed(i.state, new Map([['n0', { uid: 'u1', labels, unavailable: undefined, bootId: undefined }]]));
      return i.when();
    };
    seen({ role: 'node', zone: 'a' });
    i.announces({ role: 'own' });
    i.label({ role: 'person' });
    seen({ role: 'other', zone: 'b' });
    expect(i.labels).toEqual({ role: 'person', zone: 'b' });
    i.label({}, 'role');
    expect(i.labels).toEqual({ role: 'other', zone: 'b' });
  });

  it('is deleted with the node', () => {
    const i = inRack1();
    i.label({ role: 'edge' });
    i.when({ type: 'request', request: { op: 'remove', node: 'n0', force: true, by: 'ada', reason: '' } });
    expect(i.label({ role: 'edge' })).toEqual([]);
    expect(i.answers).toMatchObject([{ ok: false, code: 'not-found' }]);
    i.announces({ rack: '1' });
    expect(i.view('nodes', 'n0')).toMatchObject({ labels: { rack: '1' }, setLabels: {} });
  });
});

it.each<[string, Labels, readonly string[], string]>([
  ['that was not set', {}, ['zone'], 'no label zone was set on n0: see its labels'],
  [
    'that the node reports',
    {},
    ['rack'],
    'no label rack was set on n0: it comes from the node itself or from Kubernetes',
  ],
  [
    'beyond the limit',
    Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`k${n}`, ''])),
    [],
    'more than 64 labels would be set on n0',
  ],
])('refuses a label %s', (_name, set, remove, message) => {
  const i = inRack1();
  expect(i.label(set, ...remove)).toEqual([]);
  expect(i.answers).toMatchObject([{ ok: false, message: expect.stringContaining(message) as string }]);
});
