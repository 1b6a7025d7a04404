import { parseDrain, type WrittenDrain } from '#libs/manifests';
import { nameOf, namesOf, planEvictions, refusedAgain, type DrainPod, type Scene, type Try } from './index.js';

const pod = (name: string, fields: Partial<DrainPod> = {}): DrainPod => ({
  namespace: 'default',
  name,
  uid: `uid-${name}`,
  labels: { app: name },
  controller: 'ReplicaSet',
  mirror: false,
  emptyDir: false,
  finished: false,
  ending: false,
  graceSeconds: 30,
  priority: 0,
  resources: [],
  ...fields,
});
const scene = (
  pods: readonly DrainPod[],
  drain: WrittenDrain = {},
  fields: Partial<Scene<DrainPod>> = {},
): Scene<DrainPod> => ({
  policy: parseDrain(drain),
  reboots: false,
  pods,
  tries: new Map(),
  nowMs: 1_000,
  startedMs: 0,
  drainMs: 600_000,
  pool: 'edge',
  self: undefined,
  ...fields,
});
const plan = (...args: Parameters<typeof scene>) => planEvictions(scene(...args));
/** What to do now, one line per pod. */
const lines = (...args: Parameters<typeof scene>): readonly string[] =>
  plan(...args).now.map(({ pod: { name }, how, graceSeconds }) =>
    [how, name, ...(graceSeconds === undefined ? [] : [graceSeconds])].join(' '),
  );
const matching = (app: string, more: object) => ({ podSelector: { matchLabels: { app } }, ...more });
const refused = (budget: string, times = 1, fields: Partial<Try> = {}): Try => ({
  ...refusedAgain(undefined, { reason: `${budget} says no`, budget: { name: budget, allowed: 0 } }, 1_000),
  refusals: times,
  ...fields,
});

describe('the pods to evict', () => {
  it('are all but those of DaemonSets, static pods, and finished ones', () => {
    const pods = [
      pod('a'),
      pod('ds', { controller: 'DaemonSet' }),
      pod('static', { mirror: true, controller: 'Node' }),
      pod('job', { finished: true, controller: 'Job' }),
    ];
    expect(lines(pods)).toEqual(['evict a']);
    expect(plan(pods.slice(1)).left).toEqual([]);
  });

  it('exclude those that a rule skips; the first rule that matches decides', () => {
    const rules = [
      matching('a', { action: 'skip' }),
      matching('a', { action: 'drain' }),
      { podSelector: {}, namespaces: ['keep'], action: 'skip' },
    ];
    expect(lines([pod('a'), pod('b'), pod('c', { namespace: 'keep' })], { rules })).toEqual(['evict b']);
  });

  it('are only those that match or use the resource in a partial drain (SRIOV #225)', () => {
    const pods = [
      pod('a'),
      pod('nic', { resources: ['example.com/nic'] }),
      pod('gpu', { resources: ['example.com/gpu'] }),
    ];
    expect(lines(pods, { only: { resources: ['example.com/nic'] } })).toEqual(['evict nic']);
    expect(
      lines(pods, { only: { podSelector: { matchLabels: { app: 'a' } }, resources: ['example.com/gpu'] } }),
    ).toEqual(['evict a', 'evict gpu']);
    expect(lines(pods, { only: { podSelector: {} } })).toHaveLength(3);
  });

  it('are all before a reboot, even if the pool drains partially (SRIOV #1090)', () => {
    expect(
      lines(
        [pod('a'), pod('nic', { resources: ['example.com/nic'] })],
        { only: { resources: ['example.com/nic'] } },
        { reboots: true },
      ),
    ).toEqual(['evict a', 'evict nic']);
  });
});

describe('the order of evictions', () => {
  it('follows the rules, and a later order waits until the earlier ones are gone', () => {
    const rules = [matching('web', { order: -1 }), matching('db', { order: 5 })];
    const [web, db, other] = [pod('web'), pod('db'), pod('other')];
    expect(lines([db, other, web], { rules })).toEqual(['evict web']);
    expect(lines([db, other, { ...web, ending: true }], { rules })).toEqual([]);
    expect(lines([db, other], { rules })).toEqual(['evict other']);
    expect(lines([db], { rules })).toEqual(['evict db']);
  });

  it('puts the pods that Kubernetes itself needs last', () => {
    expect(lines([pod('dns', { priority: 2_000_000_000 }), pod('web')])).toEqual(['evict web']);
  });

  it("puts this process's own pod at the very end (MCO #3212)", () => {
    const pods = [pod('drain'), pod('dns', { priority: 2_000_000_000 })];
    expect(lines(pods, {}, { self: 'default/drain' })).toEqual(['evict dns']);
    expect(lines([pods[0]!], {}, { self: 'default/drain' })).toEqual(['evict drain']);
  });

  it('waits for a pod that a rule says to wait for, and evicts none after it', () => {
    const rules = [matching('batch', { action: 'wait', order: -1 })];
    expect(plan([pod('batch'), pod('web')], { rules })).toMatchObject({
      now: [],
      left: [{ name: 'batch' }, { name: 'web' }],
      block: undefined,
    });
  });
});

describe('a pod that must not be evicted', () => {
  it('blocks the node if no controller would recreate it, and no other pod is evicted', () => {
    const { now, block } = plan([pod('lone', { controller: undefined }), pod('web')]);
    expect(now).toEqual([]);
    expect(block).toMatchObject({ pods: ['default/lone'], budget: undefined, lasting: true });
    expect(block?.reason).toContain(
      'no controller would recreate default/lone (to evict them anyway, set drain.unmanaged: evict in Pool/edge)',
    );
    expect(plan([pod('lone', { controller: undefined })], {}, { pool: 'default' }).block?.reason).toContain(
      '(to evict them anyway, set drain.unmanaged: evict in a Pool that selects the node)',
    );
    expect(lines([pod('lone', { controller: undefined })], { unmanaged: 'evict' })).toEqual(['evict lone']);
  });

  it('blocks the node if it has an emptyDir', () => {
    expect(plan([pod('cache', { emptyDir: true })]).block?.reason).toContain(
      'the emptyDir volumes of default/cache would be lost',
    );
    expect(lines([pod('cache', { emptyDir: true })], { emptyDir: 'evict' })).toEqual(['evict cache']);
  });

  it('stops blocking when it ends on its own', () => {
    expect(plan([pod('lone', { controller: undefined, ending: true })]).block).toBeUndefined();
  });
});

describe('a refused eviction', () => {
  it('is retried with growing pauses, up to half a minute', () => {
    let tried: Try | undefined;
    const distances = Array.from(
      { length: 9 },
      () => (tried = refusedAgain(tried, { reason: 'no', budget: { name: 'b', allowed: 0 } }, 1_000)).nextMs - 1_000,
    );
    expect(distances).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    expect(refusedAgain(undefined, { reason: 'no', budget: { name: 'b', allowed: 0 } }, 1_000, 10_000).nextMs).toBe(
      11_000,
    );
  });

  it('is not reported as a block if its budget was removed, unless it is refused again', () => {
    const byBudget = refusedAgain(undefined, { reason: 'no', budget: { name: 'default/web', allowed: 0 } }, 0);
    const [gone, atMs] = [{ reason: 'no', budget: undefined }, 10_000];
    const once = refusedAgain(byBudget, gone, atMs, 10_000);
    const blockAt = (tried: Try, nowMs: number) =>
      plan([pod('web')], {}, { tries: new Map([['uid-web', tried]]), nowMs }).block;
    expect([byBudget, once].map((tried) => blockAt(tried, atMs + 9_000)?.lasting)).toEqual([true, false]);
    expect(blockAt(refusedAgain(once, gone, atMs + 10_000), atMs + 10_000)?.lasting).toBe(true);
  });

  it('is retried soon if the reason is another one', () => {
    let tried: Try | undefined;
    for (let i = 0; i < 9; i++) tried = refusedAgain(tried, { reason: 'no', budget: { name: 'b', allowed: 0 } }, 0);
    expect(refusedAgain(tried, { reason: 'no', budget: undefined }, 1_000).nextMs).toBe(1_500);
  });

  it('delays only that pod', () => {
    const tries = new Map([['uid-web', refused('web')]]);
    expect(lines([pod('web'), pod('api')], {}, { tries })).toEqual(['evict api']);
    expect(plan([pod('web')], {}, { tries }).reconcileAtMs).toBe(1_500);
    expect(lines([pod('web')], {}, { tries, nowMs: 1_500 })).toEqual(['evict web']);
  });

  it('is reported with its budget and pods, and recorded after a while', () => {
    const tries = new Map([
      ['uid-web', refused('default/web')],
      ['uid-api', refused('default/api', 3, { sinceMs: 500 })],
    ]);
    expect(plan([pod('web'), pod('api')], {}, { tries }).block).toEqual({
      reason: 'default/api says no',
      budget: { name: 'default/api', allowed: 0 },
      pods: ['default/api'],
      lasting: false,
    });
    expect(plan([pod('web'), pod('api')], {}, { tries, nowMs: 6_000 }).block).toMatchObject({
      budget: { name: 'default/api', allowed: 0 },
      lasting: true,
    });
  });
});

describe('the timeout of a drain', () => {
  it("ends the drain shortly before the scheduler's deadline, and deletes nothing by default", () => {
    const late = { nowMs: 595_000, tries: new Map([['uid-web', refused('web', 1, { nextMs: 700_000 })]]) };
    expect(plan([pod('web')], {}, { ...late, nowMs: 594_999 })).toMatchObject({
      timedOut: false,
      reconcileAtMs: 595_000,
    });
    for (const onTimeout of ['fail', 'defer'])
      expect(plan([pod('web')], { onTimeout }, late)).toMatchObject({ timedOut: true, now: [] });
  });

  it('with force, deletes all remaining pods after half of the time, in any order', () => {
    const pods = [pod('lone', { controller: undefined }), pod('web'), pod('batch')];
    const drain = { onTimeout: 'force', gracePeriod: '10s', rules: [matching('batch', { action: 'wait', order: 9 })] };
    const tries = new Map([['uid-web', refused('web', 1, { nextMs: 900_000 })]]);
    expect(lines(pods, drain, { tries, nowMs: 299_999 })).toEqual([]);
    expect(lines(pods, drain, { tries, nowMs: 300_000 })).toEqual([
      'delete batch 10',
      'delete lone 10',
      'delete web 10',
    ]);
  });

  it('with force, removes a pod from the API server five seconds after its grace period', () => {
    const stubborn = pod('stubborn', { ending: true, graceSeconds: 30 });
    const tries = new Map([['uid-stubborn', refused('', 0, { forcedMs: 300_000 })]]);
    expect(lines([stubborn], { onTimeout: 'force' }, { tries, nowMs: 334_999 })).toEqual([]);
    expect(plan([stubborn], { onTimeout: 'force' }, { tries, nowMs: 334_000 }).reconcileAtMs).toBe(335_000);
    expect(lines([stubborn], { onTimeout: 'force' }, { tries, nowMs: 335_000 })).toEqual(['delete stubborn 0']);
    expect(lines([stubborn], { onTimeout: 'fail' }, { tries, nowMs: 335_000 })).toEqual([]);
  });
});

it('uses the grace period of the pool if it has one, and otherwise of the pod', () => {
  expect(lines([pod('a')], { gracePeriod: '5s' })).toEqual(['evict a 5']);
  expect(lines([pod('a')])).toEqual(['evict a']);
});

it('evicts many pods in batches, and names only some of them', () => {
  const pods = Array.from({ length: 50 }, (_, i) => pod(`p${String(i).padStart(2, '0')}`));
  expect(lines(pods)).toHaveLength(20);
  expect(namesOf(pods)).toMatch(/^default\/p00, .*default\/p09 and 40 more$/);
  expect(nameOf(pods[0]!)).toBe('default/p00');
});
