import { CORDON_ANNOTATION, KEEP_CORDONED_ANNOTATION, UNCORDONED_ANNOTATION } from '#libs/contracts';
import { ApiGate, describeOnKube, NEVER_ENDS, nodePath, podPath, until } from '#libs/testing';
import { Kube } from '#libs/kube';
import { SILENT } from '#libs/process';
import type { Drain } from '../../core/index.js';
import { DrainStage } from './drain-stage.fixture.js';
import { NodeDrain } from './node-drain.js';

describeOnKube('a node in Kubernetes', (world) => {
  let stage: DrainStage;
  beforeAll(async () => {
    stage = await DrainStage.start();
    await stage.serve(world.cluster.kubeconfig);
    await begin();
  });
  afterAll(() => stage.stop());

  /** The slow drains are started first and checked last. */
  const begin = async (): Promise<void> => {
    const { scene } = world;
    for (const [node, onTimeout] of [
      ['d1', 'defer'],
      ['d2', 'fail'],
    ] as const) {
      await scene.node(node);
      await scene.pod(`${node}-stubborn`, { node, annotations: { [NEVER_ENDS]: '' } });
      await stage.grant(node, { drainMs: 10_000, drain: { onTimeout } });
    }
    await scene.node('d3');
    await scene.pod('d3-held', { node: 'd3', labels: { app: 'd3' } });
    await scene.pod('d3-lone', { node: 'd3', by: '' });
    await scene.pod('d3-stubborn', { node: 'd3', annotations: { [NEVER_ENDS]: '' }, graceSeconds: 1 });
    await scene.budget('d3', 'd3');
    const lease = await stage.grant('d3', { drainMs: 24_000, drain: { onTimeout: 'force' } });
    await stage.untilFact('node.drain.blocked', lease);
    expect(await scene.podsOn('d3')).toEqual(['d3-held', 'd3-lone', 'd3-stubborn']);
  };

  const annotation = async (node: string, key: string): Promise<string | undefined> =>
    (await world.scene.api.get(nodePath(node)))?.metadata.annotations?.[key];

  it('is cordoned, drained, kept cordoned while it changes, and given back', async () => {
    const { scene } = world;
    await scene.node('a1');
    await scene.pod('a1-web', { node: 'a1' });
    await scene.pod('a1-api', { node: 'a1', namespace: 'kube-system' });
    await scene.pod('a1-daemon', { node: 'a1', by: 'DaemonSet' });
    const lease = await stage.grant('a1');
    expect(await stage.untilFact('node.drained', lease)).toMatchObject({
      node: 'a1',
      pool: 'edge',
      change: 'c1',
      lease,
      evicted: 2,
      by: 'kubernetes',
    });
    expect(await stage.facts('node.cordoned', lease)).toHaveLength(1);
    expect([await scene.podsOn('a1'), await scene.isCordoned('a1'), await annotation('a1', CORDON_ANNOTATION)]).toEqual(
      [['a1-daemon'], true, `{"lease":"${lease}","alreadyCordoned":false}`],
    );
    expect((await stage.untilView('a1', ({ state }) => state === 'drained')).strategy).toBe('kubernetes');
    await stage.settle('a1', lease);
    await stage.untilFact('node.uncordoned', lease);
    expect([
      await scene.isCordoned('a1'),
      await annotation('a1', CORDON_ANNOTATION),
      await annotation('a1', UNCORDONED_ANNOTATION),
    ]).toEqual([false, undefined, lease]);
  });

  it('is shown as blocked by a budget, with its pods, and continues when the budget is removed', async () => {
    const { scene } = world;
    await scene.node('b1');
    await scene.pod('b1-web', { node: 'b1', labels: { app: 'b1' } });
    await scene.pod('b1-other', { node: 'b1' });
    await scene.budget('b1', 'b1', 0);
    const lease = await stage.grant('b1');
    expect(await stage.untilView('b1', ({ budget, evicted }) => budget !== '' && evicted === 1)).toMatchObject({
      state: 'draining',
      total: 2,
      evicted: 1,
      waitingFor: ['default/b1-web'],
      budget: 'default/b1',
      allowed: 0,
      blocked: ['default/b1-web'],
    });
    const blocked = await stage.untilFact('node.drain.blocked', lease);
    expect(blocked).toMatchObject({ budget: 'default/b1', allowed: 0, pods: ['default/b1-web'] });
    expect(blocked.reason).toMatch(/^the budget default\/b1 allows 0 evictions: /);
    expect(Date.parse(blocked.since)).toBeLessThan(Date.parse(blocked.at));
    expect(await scene.podsOn('b1')).toEqual(['b1-web']);
    await scene.removeBudget('b1');
    expect((await stage.untilFact('node.drained', lease)).evicted).toBe(2);
    expect(await stage.facts('node.drain.blocked', lease)).toHaveLength(1);
    await stage.settle('b1', lease);
    await stage.untilFact('node.uncordoned', lease);
  });

  it('is given back if its drain is cancelled while a budget blocks it (SRIOV #429, #537)', async () => {
    const { scene } = world;
    await scene.node('b2');
    await scene.pod('b2-web', { node: 'b2', labels: { app: 'b2' } });
    await scene.budget('b2', 'b2', 0);
    const lease = await stage.grant('b2');
    await stage.untilView('b2', ({ budget }) => budget !== '');
    await stage.settle('b2', lease);
    await stage.untilFact('node.uncordoned', lease);
    expect([await scene.isCordoned('b2'), await scene.podsOn('b2'), await stage.facts('node.drained', lease)]).toEqual([
      false,
      ['b2-web'],
      [],
    ]);
  });

  it('is blocked by a pod without a controller, and no other pod is evicted needlessly', async () => {
    const { scene } = world;
    await scene.node('b3');
    await scene.pod('b3-lone', { node: 'b3', by: '' });
    await scene.pod('b3-web', { node: 'b3' });
    const lease = await stage.grant('b3');
    expect(await stage.untilFact('node.drain.blocked', lease)).toMatchObject({ budget: '', pods: ['default/b3-lone'] });
    expect(await scene.podsOn('b3')).toEqual(['b3-lone', 'b3-web']);
    await scene.api.remove(podPath('b3-lone'));
    expect((await stage.untilFact('node.drained', lease)).evicted).toBe(2);
  });

  it('is drained partially if the pool says so, but fully before a reboot (SRIOV #1090, #225)', async () => {
    const { scene } = world;
    const drain = { only: { resources: ['example.com/nic'] } };
    await scene.node('c1');
    await scene.pod('c1-web', { node: 'c1' });
    await scene.pod('c1-nic', { node: 'c1', resources: ['example.com/nic'] });
    const first = await stage.grant('c1', { drain });
    expect((await stage.untilFact('node.drained', first)).evicted).toBe(1);
    expect([await scene.podsOn('c1'), await scene.isCordoned('c1')]).toEqual([['c1-web'], true]);
    await stage.settle('c1', first);
    await stage.untilFact('node.uncordoned', first);
    const second = await stage.grant('c1', { drain, reboots: true });
    expect((await stage.untilFact('node.drained', second)).evicted).toBe(1);
    expect(await scene.podsOn('c1')).toEqual([]);
  });

  it('is drained in the order of the rules', async () => {
    const { scene } = world;
    await scene.node('c2');
    for (const app of ['web', 'db', 'batch'])
      await scene.pod(`c2-${app}`, {
        node: 'c2',
        labels: { app },
        ...(app === 'web' ? { annotations: { [NEVER_ENDS]: '' } } : {}),
      });
    const rule = (app: string, more: object) => ({ podSelector: { matchLabels: { app } }, ...more });
    const lease = await stage.grant('c2', {
      drain: {
        rules: [rule('web', { order: -1 }), rule('batch', { action: 'wait', order: 3 }), rule('db', { order: 5 })],
      },
    });
    await until(
      async () => (await scene.api.get(podPath('c2-web')))?.metadata.deletionTimestamp !== undefined,
      'the first starts to end',
    );
    await stage.untilView('c2', ({ total, evicted }) => total === 3 && evicted === 0);
    expect(await scene.podsOn('c2')).toEqual(['c2-batch', 'c2-db']);
    await scene.api.remove(podPath('c2-web'));
    await stage.untilView('c2', ({ evicted }) => evicted === 1);
    expect(await scene.podsOn('c2')).toEqual(['c2-batch', 'c2-db']);
    await scene.api.remove(podPath('c2-batch'));
    expect((await stage.untilFact('node.drained', lease)).evicted).toBe(3);
  });

  describe('and people', () => {
    it('keeps a cordon that existed before (MCO #4475)', async () => {
      const { scene } = world;
      await scene.node('p1');
      await scene.cordon('p1');
      const lease = await stage.grant('p1');
      await stage.untilFact('node.drained', lease);
      expect(await annotation('p1', CORDON_ANNOTATION)).toBe(`{"lease":"${lease}","alreadyCordoned":true}`);
      await stage.settle('p1', lease);
      await stage.untilFact('node.uncordoned', lease);
      expect(await scene.isCordoned('p1')).toBe(true);
    });

    it('is cordoned again if a person uncordons it during or after the drain (MCO #6028, #5281)', async () => {
      const { scene } = world;
      await scene.node('p2');
      await scene.pod('p2-web', { node: 'p2', labels: { app: 'p2' } });
      await scene.budget('p2', 'p2', 0);
      const lease = await stage.grant('p2');
      await stage.untilView('p2', ({ budget }) => budget !== '');
      await scene.uncordon('p2');
      await until(() => scene.isCordoned('p2'), 'the cordon is put back');
      await scene.removeBudget('p2');
      await stage.untilFact('node.drained', lease);
      await scene.uncordon('p2');
      await until(() => scene.isCordoned('p2'), 'the cordon is put back');
      await stage.settle('p2', lease);
      await stage.untilFact('node.uncordoned', lease);
      expect(await scene.isCordoned('p2')).toBe(false);
    });

    it('with `give-up`, stops the drain when a person uncordons it, and is not cordoned again', async () => {
      const { scene } = world;
      await scene.node('p3');
      await scene.pod('p3-web', { node: 'p3', annotations: { [NEVER_ENDS]: '' } });
      const lease = await stage.grant('p3', { drain: { onUncordon: 'give-up' } });
      await stage.untilFact('node.cordoned', lease);
      await scene.uncordon('p3');
      expect(await stage.untilFact('node.drain.stopped', lease)).toMatchObject({ outcome: 'deferred' });
      expect(await scene.isCordoned('p3')).toBe(false);
      await stage.settle('p3', lease);
      await stage.untilFact('node.uncordoned', lease);
      expect(await annotation('p3', CORDON_ANNOTATION)).toBeUndefined();
    });

    it('keeps the cordon that a person set after uncordoning it', async () => {
      const { scene } = world;
      await scene.node('p4');
      const lease = await stage.grant('p4', { drain: { onUncordon: 'give-up' } });
      await stage.untilFact('node.drained', lease);
      await scene.uncordon('p4');
      await scene.cordon('p4');
      await stage.settle('p4', lease);
      await stage.untilFact('node.uncordoned', lease);
      expect(await scene.isCordoned('p4')).toBe(true);
    });

    it('stays cordoned if a person asks for that', async () => {
      const { scene } = world;
      await scene.node('p5');
      const lease = await stage.grant('p5');
      await stage.untilFact('node.drained', lease);
      await scene.api.patch(nodePath('p5'), {
        metadata: { annotations: { [KEEP_CORDONED_ANNOTATION]: 'a broken fan' } },
      });
      await stage.settle('p5', lease);
      await stage.untilFact('node.uncordoned', lease);
      expect([await scene.isCordoned('p5'), await annotation('p5', CORDON_ANNOTATION)]).toEqual([true, undefined]);
    });

    it('is drained again as a new Node if a person deletes and recreates it', async () => {
      const { scene } = world;
      await scene.node('p6');
      await scene.pod('p6-web', { node: 'p6', annotations: { [NEVER_ENDS]: '' } });
      const lease = await stage.grant('p6');
      await stage.untilFact('node.cordoned', lease);
      await scene.api.remove(nodePath('p6'));
      await stage.untilFact('node.drain.blocked', lease);
      expect((await stage.facts('node.drain.blocked', lease))[0]?.reason).toContain('Kubernetes has no Node named p6');
      await scene.node('p6');
      await until(() => scene.isCordoned('p6'), 'the new one is cordoned');
      expect(await stage.facts('node.drained', lease)).toEqual([]);
      await scene.api.remove(podPath('p6-web'));
      await stage.untilFact('node.drained', lease);
      await stage.settle('p6', lease);
      await stage.untilFact('node.uncordoned', lease);
      expect(await scene.isCordoned('p6')).toBe(false);
    });
  });

  describe('that cannot be drained in time', () => {
    it.each([
      ['d1', 'deferred'],
      ['d2', 'failed'],
    ])('stops the drain, as the pool of %s says: %s', async (node, outcome) => {
      const { scene } = world;
      const lease = `${node}-l1`;
      expect(await stage.untilFact('node.drain.stopped', lease)).toMatchObject({
        outcome,
        reason: `not drained within 10 s, waiting for default/${node}-stubborn`,
      });
      await stage.settle(node, lease);
      await stage.untilFact('node.uncordoned', lease);
      expect([await scene.isCordoned(node), await stage.facts('node.drained', lease)]).toEqual([false, []]);
      expect(await scene.api.get(podPath(`${node}-stubborn`))).toBeDefined();
    });

    it('deletes the pods despite budgets and safeguards, but only if the pool says `force`', async () => {
      expect((await stage.untilFact('node.drained', 'd3-l1')).evicted).toBe(3);
      expect(await world.scene.api.get(podPath('d3-stubborn'))).toBeUndefined();
      expect(await stage.facts('node.drain.blocked', 'd3-l1')).toHaveLength(1);
    });
  });

  it('is drained and given back although the API server is killed and resets its connections', async () => {
    const { scene } = world;
    await scene.node('e1');
    await scene.pod('e1-web', { node: 'e1', labels: { app: 'e1' } });
    await scene.budget('e1', 'e1', 0);
    const lease = await stage.grant('e1');
    await stage.untilView('e1', ({ budget }) => budget !== '');
    world.cluster.killApiServer();
    await stage.untilView('e1', ({ reason }) => reason.includes('does not answer'));
    await world.cluster.restartApiServer();
    await scene.removeBudget('e1');
    await stage.untilFact('node.drained', lease);
    await stage.settle('e1', lease);
    await stage.untilFact('node.uncordoned', lease);
    expect(await scene.isCordoned('e1')).toBe(false);
  });

  it('is not cordoned again by a copy that read it before it was given back and writes after', async () => {
    const { scene } = world;
    await scene.node('e2');
    await scene.pod('e2-web', { node: 'e2', annotations: { [NEVER_ENDS]: '' } });
    const kube = await Kube.open({ kubeconfig: world.cluster.kubeconfig });
    const outcomes: string[] = [];
    let wake: () => void = () => undefined;
    const asleep = new Promise<void>((resolve) => (wake = resolve));
    const drain: Drain = {
      node: 'e2',
      pool: 'edge',
      change: 'c1',
      lease: 'e2-l1',
      phase: 'draining',
      sinceMs: 0,
      since: '',
      drainMs: 600_000,
      how: {},
      pauses: [],
      termsMs: performance.now(),
      amended: 0,
      reboots: false,
      cordoned: false,
      pods: 0,
      blocked: undefined,
    };
    let looked = 0;
    const slow = new NodeDrain(
      {
        kube: {
          node: (name) => kube.node(name),
          podsOn: (name) => kube.podsOn(name),
          pausable: () => Promise.reject(new Error('it reads what to pause')),
          writePausable: () => Promise.reject(new Error('it pauses')),
          evict: () => Promise.reject(new Error('it evicts')),
          delete: () => Promise.reject(new Error('it deletes')),
          onChange: () => () => undefined,
          writeNode: async (read, change) => {
            const outcome = await kube.writeNode(read, change);
            outcomes.push(outcome);
            return outcome;
          },
        },
        logger: SILENT,
        self: undefined,
        pausers: () => Promise.resolve([]),
        say: () => Promise.resolve(),
        show: () => undefined,
        // It reads the lease and pauses before it continues. When it reads again, the lease is over.
        drainOf: async () => {
          looked += 1;
          if (looked > 1) return { ...drain, phase: 'uncordoned' };
          await asleep;
          return drain;
        },
      },
      drain,
    ).start();
    await until(() => looked === 1, 'it has reconciled once');
    const lease = await stage.grant('e2');
    await stage.untilFact('node.cordoned', lease);
    await stage.settle('e2', lease);
    await stage.untilFact('node.uncordoned', lease);
    wake();
    await until(() => looked > 1, 'it has reconciled again');
    expect([outcomes, await scene.isCordoned('e2'), await scene.podsOn('e2')]).toEqual([['overtaken'], false, []]);
    slow.stop();
    await kube.close();
  });

  describe('and its drain service', () => {
    let gate: ApiGate;
    beforeAll(async () => {
      gate = await ApiGate.before(world.cluster.access);
      await stage.stopServing();
    });
    afterAll(async () => {
      await stage.stopServing();
      await gate.close();
    });

    it('evicts its own pod last if it runs on the node, and another copy finishes (MCO #3212)', async () => {
      const { scene } = world;
      await scene.node('s1');
      for (const name of ['drain-0', 'a-web', 'z-web']) await scene.pod(name, { node: 's1' });
      await stage.serve(await world.cluster.kubeconfigBy(gate.url), 'default/drain-0');
      const lease = await stage.grant('s1');
      await until(() => gate.requests.some((line) => line.includes('/pods/drain-0/eviction')), 'it evicts its own pod');
      const evicted = gate.requests.flatMap((line) => /\/pods\/([^/]+)\/eviction/.exec(line)?.[1] ?? []);
      expect(evicted.slice(0, 2).sort()).toEqual(['a-web', 'z-web']);
      expect(evicted[2]).toBe('drain-0');
      await stage.stopServing();
      await stage.serve(world.cluster.kubeconfig);
      await stage.untilFact('node.drained', lease);
      await stage.settle('s1', lease);
      await stage.untilFact('node.uncordoned', lease);
      expect(await scene.isCordoned('s1')).toBe(false);
    });

    it('names a missing permission, and continues when it is granted', async () => {
      const { scene, cluster } = world;
      await scene.node('s3');
      await scene.pod('s3-web', { node: 's3' });
      await scene.api.create('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'drain' } });
      const { token } = (await scene.api.create('/api/v1/namespaces/default/serviceaccounts/drain/token', { spec: {} }))
        .status as { token: string };
      await stage.stopServing();
      await stage.serve(await cluster.kubeconfigOf('drain', token));
      const lease = await stage.grant('s3');
      expect((await stage.untilFact('node.drain.blocked', lease)).reason).toMatch(
        /nodes "s3" is forbidden: .*cannot get resource "nodes"/,
      );
      const rbac = '/apis/rbac.authorization.k8s.io/v1';
      // The permissions in docs/reference/protocol.md.
      const rules = [
        { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch', 'patch'] },
        { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'delete'] },
        { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] },
        { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['list', 'watch'] },
      ];
      await scene.api.create(`${rbac}/clusterroles`, { metadata: { name: 'drain' }, rules });
      await scene.api.create(`${rbac}/clusterrolebindings`, {
        metadata: { name: 'drain' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'drain' },
        subjects: [{ kind: 'ServiceAccount', namespace: 'default', name: 'drain' }],
      });
      await stage.untilFact('node.drained', lease);
      await stage.settle('s3', lease);
      await stage.untilFact('node.uncordoned', lease);
      expect([await scene.podsOn('s3'), await scene.isCordoned('s3')]).toEqual([[], false]);
    });

    it('keeps trying while the server refuses, and says why', async () => {
      const { scene } = world;
      await scene.node('s2');
      await scene.pod('s2-web', { node: 's2' });
      gate.mode = { does: 'refuse', code: 429, reason: 'TooManyRequests' };
      await stage.stopServing();
      await stage.serve(await world.cluster.kubeconfigBy(gate.url));
      const lease = await stage.grant('s2');
      await stage.untilView('s2', ({ reason }) => reason === 'the gate says TooManyRequests');
      gate.mode = { does: 'pass' };
      await stage.untilFact('node.drained', lease);
      expect(await scene.podsOn('s2')).toEqual([]);
    });
  });
});
