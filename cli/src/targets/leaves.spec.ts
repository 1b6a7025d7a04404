import { OpsError, type FleetClient } from '#libs/client';
import type { NodeView } from '#libs/contracts';
import { SILENT } from '#libs/process';
import { until } from '#libs/testing';
import { Leaves } from './leaves.js';

/** The nodes of a fleet with their state, the objects that exist, and what was done. */
class World {
  readonly nodes = new Map<string, 'ready' | 'gone'>();
  readonly objects = new Set<string>();
  readonly done: string[] = [];
  readonly led = new Set<string>();
  readonly others = new Set<string>();
  fails = 0;
  mayOutlive = false;
  isOther = false;
  beforeRemoval: () => void = () => undefined;
  readonly leaves: Leaves;

  constructor() {
    const view = (node: string): NodeView =>
      ({
        node,
        state: this.nodes.get(node),
        labels: { of: this.others.has(node) ? 'other' : 'us' },
      }) as unknown as NodeView;
    const fleet = {
      get: (_: string, node: string) => Promise.resolve(this.nodes.has(node) ? view(node) : undefined),
      list: () => Promise.resolve(new Map([...this.nodes.keys()].map((node) => [node, view(node)]))),
      request: (subject: string, { node, force, reason }: { node: string; force: boolean; reason: string }) => {
        if (this.fails-- > 0) return Promise.reject(new OpsError('unavailable', 'no leader'));
        this.beforeRemoval();
        this.done.push(`${subject} ${node} ${force} ${reason}`);
        this.nodes.set(node, 'gone');
        return Promise.resolve({});
      },
    };
    this.leaves = new Leaves({
      fleet: fleet as unknown as FleetClient,
      served: {
        leads: (node) => this.led.has(node),
        announce: (node) => void this.done.push(`announce ${node}`),
        forget: (node, { keepsJournal }) =>
          Promise.resolve(void this.done.push(`forget ${node}${keepsJournal ? ', keep its journal' : ''}`)),
      },
      leaving: {
        isOurs: ({ of }) => of === 'us',
        confirm: () => (this.isOther ? Promise.reject(new Error('it is another one')) : Promise.resolve()),
        isDeleted: (node) => Promise.resolve(!this.objects.has(node)),
        reason: 'its pod was deleted',
        get mayOutlive() {
          return world.mayOutlive;
        },
      },
      log: SILENT,
      replaceMs: 50,
      everyMs: 5,
      againMs: 5,
    });
  }

  join(node: string): void {
    this.nodes.set(node, 'ready');
    this.objects.add(node);
    this.led.add(node);
  }

  show(...nodes: readonly string[]): void {
    const existing = (node: string) => ({
      isReplaced: node.startsWith('stable'),
      outlives: node.startsWith('cluster'),
    });
    this.leaves.update(new Map(nodes.map((node) => [node, existing(node)])));
  }
}

let world: World;
beforeEach(() => (world = new World()));
afterEach(() => world.leaves.stop());

const REMOVED = (node: string): readonly string[] => [
  `forget ${node}`,
  `ops.node.remove ${node} true its pod was deleted`,
];

it.each(['new-1', 'stable-0'])('removes %s once its object is deleted', async (node) => {
  world.join(node);
  world.join('other');
  world.show(node, 'other');
  world.objects.delete(node);
  world.show('other');
  await until(() => world.nodes.get(node) === 'gone', 'the node is removed');
  expect(world.done).toEqual(REMOVED(node));
});

it('removes what was deleted while no copy ran, and no node of another inventory', async () => {
  for (const node of ['a', 'foreign']) world.join(node);
  world.others.add('foreign');
  world.objects.clear();
  world.show();
  await until(() => world.nodes.get('a') === 'gone', 'the node is removed');
  expect(world.done).toEqual(REMOVED('a'));
});

it('keeps the journal of a target that outlives its object, and may return with what was applied to it', async () => {
  world.join('cluster-1');
  world.join('new-1');
  world.show('cluster-1', 'new-1');
  world.objects.clear();
  world.show();
  await until(() => [...world.nodes.values()].every((state) => state === 'gone'), 'both are removed');
  expect(world.done.filter((one) => one.startsWith('forget'))).toEqual([
    'forget cluster-1, keep its journal',
    'forget new-1',
  ]);
});

it('keeps the journal, too, if a target that may outlive its object was deleted while no copy ran', async () => {
  world.mayOutlive = true;
  world.join('a');
  world.objects.clear();
  world.show();
  await until(() => world.nodes.get('a') === 'gone', 'the node is removed');
  expect(world.done[0]).toBe('forget a, keep its journal');
});

it('removes nothing while the API server has other data than before', async () => {
  world.join('new-1');
  world.show('new-1');
  world.objects.clear();
  world.isOther = true;
  world.show();
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(world.done).toEqual([]);
  world.isOther = false;
  await until(() => world.nodes.get('new-1') === 'gone', 'the node is removed');
});

it('removes nothing that returns under its name, that still exists, or that another copy serves', async () => {
  for (const node of ['stable-0', 'unselected', 'elsewhere', 'stable-last']) world.join(node);
  world.led.delete('elsewhere');
  world.show('stable-0', 'unselected', 'elsewhere', 'stable-last');
  for (const node of ['stable-0', 'elsewhere', 'stable-last']) world.objects.delete(node);
  world.show();
  world.show('stable-0');
  await until(() => world.nodes.get('stable-last') === 'gone', 'the last one is removed');
  expect(world.done).toEqual(REMOVED('stable-last'));
});

it('tries again after a failure', async () => {
  world.fails = 1;
  world.join('new-1');
  world.show('new-1');
  world.objects.delete('new-1');
  world.show();
  await until(() => world.nodes.get('new-1') === 'gone', 'the node is removed');
});

it('lets a node announce itself again that returned while it was removed', async () => {
  world.join('stable-0');
  world.show('stable-0');
  world.objects.delete('stable-0');
  world.beforeRemoval = () => world.show('stable-0');
  world.show();
  await until(() => world.done.includes('announce stable-0'), 'it announces itself');
});
