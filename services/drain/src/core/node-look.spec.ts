import type { WrittenDrain } from '#libs/manifests';
import { CORDON_MARK } from '#libs/contracts';
import type { PodSeen } from './eviction-plan.js';
import { NodeLook, type EvictionResult, type LookEffect } from './node-look.js';
import type { NodeSeen, Drain, Progress, Sight } from './index.js';

const POD: PodSeen = {
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
const NODE: NodeSeen = {
  unschedulable: true,
  setBySluice: true,
  annotations: { [CORDON_MARK]: '{"lease":"l1","found":false}' },
};

/** One node with one pod that has an emptyDir, and a drain as the ledger has it. */
class Look {
  nowMs = 0;
  refuses: EvictionResult | undefined;
  readonly done: string[] = [];
  readonly said: Sight[] = [];
  shown: Progress | undefined;
  pods: readonly PodSeen[] = [POD];
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
    termsMs: 0,
    amended: 0,
    reboots: false,
    cordoned: true,
    pods: 0,
    blockedBy: '',
    blockedSince: '',
  };
  private core = this.another();

  another(): NodeLook<NodeSeen, PodSeen> {
    return (this.core = new NodeLook<NodeSeen, PodSeen>('n0', 'l1', 'draining', ''));
  }
  amend(how: WrittenDrain, drainMs = this.drain.drainMs): boolean {
    this.drain = { ...this.drain, how, drainMs, termsMs: this.nowMs, amended: this.drain.amended + 1 };
    return this.core.move(this.drain);
  }
  look(): this {
    const looking = this.core.look();
    for (let next = looking.next(); next.done !== true; next = looking.next(this.perform(next.value)));
    return this;
  }
  private perform(effect: LookEffect<NodeSeen, PodSeen>): unknown {
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
        return void this.said.push(effect.sight);
      case 'show':
        this.shown = effect.progress;
        return undefined;
      case 'write-node':
        return 'written';
    }
  }
}

describe('a drain whose pool is given other words', () => {
  it('is not disturbed by looks that show the same, and takes them with the next', () => {
    const look = new Look().look();
    expect([look.done, look.shown?.reason]).toEqual([[], expect.stringContaining('emptyDir volumes of default/web')]);
    expect(look.amend({ emptyDir: 'evict' })).toBe(true);
    expect(look.look().done).toEqual(['evict web']);
  });

  it('forces only when they say so, and only behind half of the time that they give', () => {
    const look = new Look();
    look.nowMs = 599_000;
    expect(look.look().said).toMatchObject([{ what: 'blocked' }, { what: 'stopped', outcome: 'failed', amended: 0 }]);
    look.said.length = 0;
    look.amend({ onTimeout: 'force' }, 60_000);
    expect([look.look().done, look.said.map(({ what }) => what)]).toEqual([[], ['blocked']]);
    look.nowMs += 30_000;
    expect(look.look().done).toEqual(['delete web']);
    look.amend({ onTimeout: 'defer' });
    look.done.length = 0;
    expect(look.look().done).toEqual([]);
  });

  it('is given up by what they say', () => {
    const look = new Look();
    look.amend({ onTimeout: 'defer' }, 60_000);
    look.nowMs = 55_000;
    expect(look.look().said.at(-1)).toMatchObject({ what: 'stopped', outcome: 'deferred', amended: 1 });
  });
});

it('a copy that goes on with a blocked drain says since when it is blocked, not since when that copy looks', () => {
  const look = new Look();
  look.drain = {
    ...look.drain,
    how: { emptyDir: 'evict' },
    blockedBy: 'budget default/web',
    blockedSince: 'yesterday',
  };
  look.refuses = {
    outcome: 'refused',
    reason: 'no',
    budgets: [{ name: 'default/web', allowed: 0 }],
    retryAfterMs: undefined,
  };
  look.look().look();
  expect([look.shown?.budget, look.shown?.blockedSince]).toEqual(['default/web', 'yesterday']);
  look.drain = { ...look.drain, blockedBy: 'budget default/other' };
  look.another();
  look.nowMs = 10_000;
  look.look().look();
  expect(look.shown?.blockedSince).toBe('t10000');
});

it('a copy that goes on with a drain counts the pods that were evicted before it looked', () => {
  const look = new Look();
  look.drain = { ...look.drain, cordoned: false, how: { emptyDir: 'evict' } };
  look.pods = [POD, { ...POD, name: 'other', uid: 'v' }];
  look.look();
  expect([look.done, look.said]).toEqual([
    ['evict other', 'evict web'],
    [{ node: 'n0', lease: 'l1', what: 'cordoned', pods: 2 }],
  ]);
  look.drain = { ...look.drain, cordoned: true, pods: 2 };
  look.another();
  look.pods = [POD];
  expect(look.look().shown).toMatchObject({ total: 2, evicted: 1 });
  look.pods = [];
  expect(look.look().said.at(-1)).toMatchObject({ what: 'drained', evicted: 2 });
});
