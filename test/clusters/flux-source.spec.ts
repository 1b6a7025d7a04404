import {
  describeOnFlux,
  establish,
  findFlux,
  FLUX_CONTROLLERS,
  GitServer,
  RunningController,
  until,
  type LeanCluster,
} from '#libs/testing';
import { HubFleet } from './hub-fleet.js';

const HELLO = '/api/v1/namespaces/default/configmaps/hello';
const SOURCE = '/apis/source.toolkit.fluxcd.io/v1/namespaces/fleet/gitrepositories/one.apps';

const files = (value: string): Readonly<Record<string, string>> => ({
  'app/hello.yaml': JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'hello', namespace: 'default' },
    data: { value },
  }),
});

describeOnFlux(
  'a hub with all of Flux, a git repository, and a cluster',
  2,
  (lean) => {
    let fleet: HubFleet;
    let git: GitServer;
    const running: RunningController[] = [];

    beforeAll(async () => {
      const [hub, cluster] = lean() as [LeanCluster, LeanCluster];
      for (const controller of FLUX_CONTROLLERS) await establish(hub.api, (await findFlux(controller)).definitions);
      git = await GitServer.start();
      for (const controller of FLUX_CONTROLLERS) running.push(await RunningController.start(controller, hub));
      fleet = await HubFleet.start(hub);
      await fleet.allowFlux();
      await fleet.secret('one', cluster.kubeconfig(), { 'sluice.dev/cluster': 'one' });
      await fleet.untilNodes({ 'one.fleet': 'ready' });
    });
    afterAll(async () => {
      await fleet?.close();
      for (const one of running) await one.stop();
      await git?.stop();
    });

    const apply = (commit: string): ReturnType<HubFleet['apply']> =>
      fleet.apply({
        apiVersion: 'sluice.dev/v1alpha1',
        kind: 'FluxSync',
        metadata: { name: 'apps' },
        spec: {
          nodeSelector: {},
          placement: 'hub',
          git: { url: git.url, branch: 'main', commit },
          path: './app',
          timeout: '30s',
        },
      });
    const value = async (): Promise<unknown> => {
      const found = await (lean()[1] as LeanCluster).api.get(HELLO);
      return (found as { readonly data?: { readonly value?: string } } | undefined)?.data?.value;
    };

    test('each commit is applied, and a push to the branch changes nothing', async () => {
      const first = git.commit(files('1'));
      expect([await apply(first), await value()]).toMatchObject([{ code: 0 }, '1']);
      const second = git.commit(files('2'));
      const [hub] = lean() as [LeanCluster];
      await hub.api.patch(SOURCE, { metadata: { annotations: { 'reconcile.fluxcd.io/requestedAt': 'now' } } });
      await until(
        async () => (await hub.api.get(SOURCE))?.status?.['lastHandledReconcileAt'] === 'now',
        'Flux has looked at the repository again',
      );
      expect(await value()).toBe('1');
      expect([await apply(second), await value()]).toMatchObject([{ code: 0 }, '2']);
      expect([await apply(first), await value()]).toMatchObject([{ code: 0 }, '1']);
    });

    test('a commit that is not in the repository is invalid, in the words of git', async () => {
      const { code, stderr } = await apply('f'.repeat(40));
      expect([code, await value()]).toEqual([4, '1']);
      expect(stderr).toMatch(/GitRepository\.\S+ has failed: GitOperationFailed: .*object not found/s);
    });

    test('a deletion leaves nothing behind', async () => {
      expect(await fleet.cli('delete', 'FluxSync', 'apps', '--wait')).toMatchObject({ code: 0 });
      expect([await value(), await (lean()[0] as LeanCluster).api.get(SOURCE)]).toEqual([undefined, undefined]);
    });
  },
  { controllers: FLUX_CONTROLLERS, isLong: true },
);
