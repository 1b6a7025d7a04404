import type { ConfigEntry, NodeReport } from '#libs/contracts';
import {
  describeOnFlux,
  establish,
  findFlux,
  FLUX_CONTROLLERS,
  ObjectStore,
  OciRegistry,
  RunningController,
  type LeanCluster,
} from '#libs/testing';
import { ClusterScene, config, configMap } from './cluster.fixture.js';

const BUCKET = 'releases';
const KEYS = 'keys-of-the-bucket';
const AUTHORITY = 'authority-of-the-bucket';
const NO_DIGEST = `sha256:${'f'.repeat(64)}`;
const hello = (value: string): Readonly<Record<string, string>> => ({
  'app/hello.yaml': JSON.stringify(configMap('hello', { value })),
});
const broken = { 'app/hello.yaml': JSON.stringify(configMap('hello', {}, { namespace: 'nowhere' })) };

const sync = (source: object, path: string): ConfigEntry => ({
  kind: 'FluxSync',
  name: 'apps',
  spec: { ...source, path, namespace: 'default', timeout: '30s' } as unknown as ConfigEntry['spec'],
});

/** Everything is real: both controllers of Flux, a registry and an object store. */
describeOnFlux(
  'a FluxSync of another source than git',
  1,
  (clusters) => {
    let scene: ClusterScene;
    let registry: OciRegistry;
    let store: ObjectStore;
    const controllers: RunningController[] = [];
    beforeAll(async () => {
      const cluster = clusters()[0] as LeanCluster;
      for (const controller of FLUX_CONTROLLERS) await establish(cluster.api, (await findFlux(controller)).definitions);
      registry = await OciRegistry.start();
      store = await ObjectStore.start(BUCKET);
      for (const controller of FLUX_CONTROLLERS) controllers.push(await RunningController.start(controller, cluster));
      await cluster.api.create('/api/v1/namespaces/default/secrets', {
        metadata: { name: KEYS },
        stringData: { accesskey: 'a-key', secretkey: 'a-secret' },
      });
      await cluster.api.create('/api/v1/namespaces/default/secrets', {
        metadata: { name: AUTHORITY },
        stringData: { 'ca.crt': store.ca },
      });
      scene = new ClusterScene(cluster);
      await scene.joined();
    });
    afterAll(async () => {
      await scene?.end();
      for (const one of controllers) await one.stop();
      await registry?.stop();
      await store?.stop();
    });

    const roll = async (fragment?: ConfigEntry, applyMs = 120_000): Promise<string> => {
      const { verdict, reason }: NodeReport = await scene.bus.roll(
        config(...(fragment === undefined ? [] : [fragment])),
        { applyMs },
      );
      return reason === '' ? verdict : `${verdict}: ${reason}`;
    };
    const value = async (): Promise<unknown> =>
      ((await scene.data('hello')) as { readonly value?: string } | undefined)?.value;

    describe('an artifact of a registry', () => {
      const artifact = (digest: string): ConfigEntry => sync({ oci: { url: registry.url, digest } }, './app');
      const digests: string[] = [];
      beforeAll(async () => {
        for (const files of [hello('1'), hello('2'), broken]) digests.push(await registry.push(files));
      });
      const of = (n: number): ConfigEntry => artifact(digests[n - 1] as string);

      it('is applied, then the next one, and the first one again', async () => {
        for (const n of [1, 2, 1]) expect([await roll(of(n)), await value()]).toEqual(['applied', String(n)]);
      });

      it.each([
        [
          'that does not exist',
          () => artifact(NO_DIGEST),
          /^invalid: OCIRepository\.\S+ has failed: .*MANIFEST_UNKNOWN/s,
        ],
        [
          'that the cluster refuses',
          () => of(3),
          /^invalid: Kustomization\.\S+ has failed: ReconciliationFailed: .*nowhere/s,
        ],
      ])('%s is invalid, and the last one is applied when that is reported', async (_name, fragment, words) => {
        expect([await roll(fragment()), await value()]).toEqual([expect.stringMatching(words), '1']);
      });

      it('is pruned when the fragment is deleted', async () => {
        expect([await roll(), await value()]).toEqual(['applied', undefined]);
      });
    });

    describe('the content of a bucket', () => {
      const release = (n: number, revision: string, more: object = { certSecret: AUTHORITY }): ConfigEntry => {
        const bucket = { endpoint: store.endpoint, name: BUCKET, prefix: `releases/${n}/`, revision, secret: KEYS };
        return sync({ bucket: { ...bucket, ...more } }, `./releases/${n}/app`);
      };
      const revisions: string[] = [];
      beforeAll(async () => {
        for (const [i, files] of [hello('1'), hello('2'), broken].entries())
          revisions.push(await store.upload(BUCKET, `releases/${i + 1}/`, files));
      });
      const of = (n: number): ConfigEntry => release(n, revisions[n - 1] as string);

      it('is applied, then that of the next release, and the first one again', async () => {
        for (const n of [1, 2, 1]) expect([await roll(of(n)), await value()]).toEqual(['applied', String(n)]);
      });

      it.each([
        [
          'that the cluster refuses',
          () => of(3),
          /^invalid: Kustomization\.\S+ has failed: ReconciliationFailed: .*nowhere/s,
        ],
        [
          'that does not exist',
          () => release(1, NO_DIGEST, { certSecret: AUTHORITY, name: 'nothing' }),
          /^invalid: Bucket\.\S+ has failed: .*'nothing' not found/,
        ],
      ])('%s is invalid, and the last one is applied when that is reported', async (_name, fragment, words) => {
        expect([await roll(fragment()), await value()]).toEqual([expect.stringMatching(words), '1']);
      });

      it('that is another one than its revision says is not confirmed, and both are named', async () => {
        const other = revisions[1] as string;
        expect(await roll(release(2, NO_DIGEST), 40_000)).toMatch(
          new RegExp(`^failed: not confirmed .* Bucket\\.\\S+: its content is ${other}, and not ${NO_DIGEST}`),
        );
        expect(await value()).toBe('1');
      });

      it('of a server whose certificate Flux does not trust is not confirmed, and that is why', async () => {
        expect(await roll(release(1, revisions[0] as string, {}), 40_000)).toMatch(
          /^failed: not confirmed .* Bucket\.\S+: .*: certificate signed by unknown authority/,
        );
      });

      it('is pruned when the fragment is deleted', async () => {
        expect([await roll(), await value()]).toEqual(['applied', undefined]);
      });
    });
  },
  { controllers: FLUX_CONTROLLERS, isLong: true },
);
