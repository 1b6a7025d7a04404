import type { WrittenDrain } from '#libs/manifests';
import { CORDON_ANNOTATION } from '#libs/contracts';
import type { DrainPod } from './eviction-plan.js';
import { NodeReconciler, type EvictionResult, type ReconcileEffect } from './node-reconciler.js';
import type { NodeCordon, Drain, Progress, Sight } from './index.js';

const POD: DrainPod = {
  namespace: 'default',
  name: 'web',
  uid: 'u',
  labels: {},
  resources: [],
  priority: 0,
  controller: 'ReplicaSet',
  mirror: false,
  emptyDir: true,
  finished: false,
  ending: false,
  graceSeconds: 30,
};
const NODE: NodeCordon = {
  unschedulable: true,
  setBySluice: true,
  annotations: { [CORDON_ANNOTATION]: '{"lease":"l1","alreadyCordoned":false}' },
};

/** One node with one pod that has an emptyDir, and its drain in the ledger. */
class Reconciler {
  nowMs = 0;
  refuses: EvictionResult | undefined;
  readonly done: string[] = [];
  readonly sights: Sight[] = [];
  progress: Progress | undefined;
  pods: readonly DrainPod[] = [POD];
  drain: Drain = {
    node: 'n0',
    pool: 'edge',
    change: 'c1',
    lease: 'l1',
    phase: 'draining',
    sinceMs: 0,
    since: '',
    drainMs: 600_000,
    how: {},
    pauses: [],
    termsMs: 0,
    amended: 0,
    reboots: false,
    cordoned: true,
    pods: 0,
    blocked: undefined,
  };
  private core = this.another();

  another(): NodeReconciler<NodeCordon, DrainPod> {
    return (this.core = new NodeReconciler<NodeCordon, DrainPod>('n0', 'l1', 'draining', ''));
  }
  amend(how: WrittenDrain, drainMs = this.drain.drainMs): boolean {
    this.drain = { ...this.drain, how, drainMs, termsMs: this.nowMs, amended: this.drain.amended + 1 };
    return this.core.move(this.drain);
  }
  reconcile(): this {
    const looking = this.core.reconcile();
    for (let next = looking.next(); next.done !== true; next = looking.next(this.perform(next.value)));
    return this;
  }
  private perform(effect: ReconcileEffect<NodeCordon, DrainPod>): unknown {
    switch (effect.do) {
      case 'read-node':
        return NODE;
      case 'read-pods':
        return this.pods;
      case 'read-drain':
        return this.drain;
      case 'now':
        return { monotonicMs: this.nowMs, wall: `t${this.nowMs}` };
      case 'evict':
        return effect.evictions.map(({ how, pod }) => {
          this.done.push(`${how} ${pod.name}`);
          return this.refuses ?? { outcome: 'accepted' };
        });
      case 'say':
        return void this.sights.push(effect.sight);
      case 'show':
        this.progress = effect.progress;
        return undefined;
      case 'write-node':
        return 'written';
    }
  }
}

describe('a drain whose settings are amended', () => {
  it('continues with the new settings in the next round', () => {
    const reconciler = new Reconciler().reconcile();
    expect([reconciler.done, reconciler.progress?.block?.reason]).toEqual([
      [],
      expect.stringContaining('emptyDir volumes of default/web'),
    ]);
    expect(reconciler.amend({ emptyDir: 'evict' })).toBe(true);
    expect(reconciler.reconcile().done).toEqual(['evict web']);
  });

  it('deletes pods only if the new settings say force, and only after half of their time', () => {
    const reconciler = new Reconciler();
    reconciler.nowMs = 599_000;
    expect(reconciler.reconcile().sights).toMatchObject([
      { what: 'blocked' },
      { what: 'stopped', outcome: 'failed', amended: 0 },
    ]);
    reconciler.sights.length = 0;
    reconciler.amend({ onTimeout: 'force' }, 60_000);
    expect([reconciler.reconcile().done, reconciler.sights.map(({ what }) => what)]).toEqual([[], ['blocked']]);
    reconciler.nowMs += 30_000;
    expect(reconciler.reconcile().done).toEqual(['delete web']);
    reconciler.amend({ onTimeout: 'defer' });
    reconciler.done.length = 0;
    expect(reconciler.reconcile().done).toEqual([]);
  });

  it('is stopped according to the new settings', () => {
    const reconciler = new Reconciler();
    reconciler.amend({ onTimeout: 'defer' }, 60_000);
    reconciler.nowMs = 55_000;
    expect(reconciler.reconcile().sights.at(-1)).toMatchObject({ what: 'stopped', outcome: 'deferred', amended: 1 });
  });
});

it('a copy that takes over a blocked drain reports since when it is blocked, not since when the copy checks', () => {
  const reconciler = new Reconciler();
  reconciler.drain = {
    ...reconciler.drain,
    how: { emptyDir: 'evict' },
    blocked: { by: 'budget default/web', since: 'yesterday' },
  };
  reconciler.refuses = {
    outcome: 'refused',
    reason: 'no',
    budgets: [{ name: 'default/web', allowed: 0 }],
    retryAfterMs: undefined,
  };
  reconciler.reconcile().reconcile();
  expect([reconciler.progress?.block?.budget?.name, reconciler.progress?.block?.since]).toEqual([
    'default/web',
    'yesterday',
  ]);
  reconciler.drain = { ...reconciler.drain, blocked: { by: 'budget default/other', since: 'yesterday' } };
  reconciler.another();
  reconciler.nowMs = 10_000;
  reconciler.reconcile().reconcile();
  expect(reconciler.progress?.block?.since).toBe('t10000');
});

it('a copy that takes over a drain counts the pods that were evicted before', () => {
  const reconciler = new Reconciler();
  reconciler.drain = { ...reconciler.drain, cordoned: false, how: { emptyDir: 'evict' } };
  reconciler.pods = [POD, { ...POD, name: 'other', uid: 'v' }];
  reconciler.reconcile();
  expect([reconciler.done, reconciler.sights]).toEqual([
    ['evict other', 'evict web'],
    [{ node: 'n0', lease: 'l1', what: 'cordoned', pods: 2 }],
  ]);
  reconciler.drain = { ...reconciler.drain, cordoned: true, pods: 2 };
  reconciler.another();
  reconciler.pods = [POD];
  expect(reconciler.reconcile().progress).toMatchObject({ total: 2, evicted: 1 });
  reconciler.pods = [];
  expect(reconciler.reconcile().sights.at(-1)).toMatchObject({ what: 'drained', evicted: 2 });
});
