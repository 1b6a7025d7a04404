import { ApiGate, describeOnClusters, until } from '#libs/testing';
import { ClusterScene, config, configMap, configMapPath, objects, plainKubeconfig } from './cluster.fixture.js';

const OLD = config(objects('a', [configMap('x', { a: '1' }), configMap('y', { a: '1' })]));
/** Changes one object, drops one, and adds one. */
const NEW = config(objects('a', [configMap('x', { a: '2' }), configMap('z', { a: '2' })]));
const BEFORE = [{ a: '1' }, { a: '1' }, undefined];
const AFTER = [{ a: '2' }, undefined, { a: '2' }];

describeOnClusters('an applier that is killed', 1, (clusters) => {
  /** More than one lease needs. The last kills come after it. */
  const CALLS = 24;

  it.each(Array.from({ length: CALLS }, (_, at) => at))(
    'at call %i of a change leaves a cluster that the next one brings to the old or the new config',
    async (at) => {
      const [cluster] = clusters();
      if (cluster === undefined) throw new Error('there is no cluster');
      const scene = new ClusterScene(cluster);
      const gate = await ApiGate.before(cluster.access);
      const values = () => Promise.all(['x', 'y', 'z'].map((name) => scene.data(name)));
      try {
        await scene.start('one', plainKubeconfig(gate.url));
        await scene.bus.reported(({ kind }) => kind === 'announced');
        expect((await scene.bus.roll(OLD)).verdict).toBe('applied');
        let calls = 0;
        // From this call on, nothing of the first copy reaches the cluster, and it hears of nothing.
        gate.onRequest = (line) => {
          if (line.includes('watch=1') || line.includes('/readyz')) return;
          calls += 1;
          if (calls > at) gate.mode = { does: 'stall' };
        };
        const lease = scene.bus.grant(NEW, { applyMs: 60_000 });
        const isDone = (): boolean => scene.bus.reports.some((report) => report.lease === lease);
        await until(() => gate.mode.does === 'stall' || isDone(), 'the first copy is killed, or done');
        scene.aheadMs = 80_000;
        await scene.start('two');
        const { verdict } = await scene.bus.reported((report) => report.lease === lease);
        expect(await values()).toEqual(verdict === 'applied' ? AFTER : BEFORE);
        expect((await scene.bus.roll(NEW)).verdict).toBe('applied');
        expect(await values()).toEqual(AFTER);
        expect((await scene.bus.roll(config())).verdict).toBe('applied');
        expect(await values()).toEqual([undefined, undefined, undefined]);
      } finally {
        gate.mode = { does: 'refuse', code: 503, reason: 'Gone' };
        await gate.close();
        await scene.end();
        for (const name of ['x', 'y', 'z']) await scene.api.remove(configMapPath(name));
      }
    },
  );
});
