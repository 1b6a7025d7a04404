import { spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { until } from '../until.js';
import { whyNoKube } from './why-no-kube.js';
import { describeOnKube } from './kube-fixture.js';
import { NEVER_ENDS } from './kubelet.js';
import { podPath } from './scene.js';

describeOnKube("the tests' API server", (world) => {
  it('counts the pods of a budget, and allows an eviction only if the budget does', async () => {
    const { scene } = world;
    await scene.node('a1');
    await scene.pod('web-1', { node: 'a1', labels: { app: 'web' } });
    await scene.budget('web', 'web', 0);
    const evict = () =>
      scene.api.call('POST', `${podPath('web-1')}/eviction`, {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name: 'web-1', namespace: 'default' },
      });
    expect((await evict()).code).toBe(429);
    await scene.removeBudget('web');
    expect((await evict()).code).toBe(201);
    await until(async () => (await scene.api.get(podPath('web-1'))) === undefined, 'the kubelet ends the pod');
  });

  it('keeps a pod that never ends until it is deleted by force', async () => {
    const { scene } = world;
    await scene.node('a2');
    await scene.pod('stubborn', { node: 'a2', annotations: { [NEVER_ENDS]: '' } });
    await scene.api.call('DELETE', podPath('stubborn'));
    expect((await scene.api.get(podPath('stubborn')))?.metadata.deletionTimestamp).toBeDefined();
    expect(await scene.podsOn('a2')).toEqual([]);
    await scene.api.remove(podPath('stubborn'));
    expect(await scene.api.get(podPath('stubborn'))).toBeUndefined();
  });

  it('has the same objects after a kill -9 and a restart on the same port', async () => {
    const { scene, cluster } = world;
    await scene.node('a3', { zone: 'x' });
    cluster.killApiServer();
    await cluster.restartApiServer();
    expect((await scene.api.get('/api/v1/nodes/a3'))?.metadata.labels?.['zone']).toBe('x');
  });
});

const why = whyNoKube();
(why === undefined ? test : test.skip)(
  `a process that is killed takes its API server and etcd with it${why === undefined ? '' : ` (${why})`}`,
  async () => {
    const script = `require(${JSON.stringify(require.resolve('../../../../dist/libs/testing/src/kube/cluster.js'))}).KubeCluster.start().then((c) => console.log(JSON.stringify({ folder: require('node:path').dirname(c.kubeconfig), pids: c.pids })))`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    const line = await new Promise<string>((resolve, reject) => {
      child.stdout.setEncoding('utf8').once('data', resolve);
      child.once('exit', (code) => reject(new Error(`ended with ${code}`)));
    });
    const { folder, pids } = JSON.parse(line) as { readonly folder: string; readonly pids: readonly number[] };
    expect(pids.length).toBe(3);
    expect(pids.every(isAlive)).toBe(true);
    child.kill('SIGKILL');
    await until(() => !pids.some(isAlive), 'no process is left');
    rmSync(folder, { recursive: true, force: true });
  },
);

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);
