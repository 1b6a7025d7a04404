import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { connectBus, ensureTopology, type Bus } from '#libs/nats';
import { connectFleet } from '#libs/client';
import { ServiceNotes } from '#libs/nats';
import { SILENT } from '#libs/process';
import { Kube } from '#libs/kube';
import {
  ApiGate,
  describeOnKube,
  establish,
  until,
  type KubeObject,
  startNatsServer,
  type NatsServer,
} from '#libs/testing';
import { GatewaySession } from './session.js';

const DEFINITIONS = resolve(__dirname, '../../../../deploy/crds');
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const SPEC = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties';
const STATUS = SPEC.replace('/spec/properties', '/status/properties');
const FILES = '/apis/sluice.dev/v1alpha1/files';
const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

describeOnKube('sessions of the gateway', (world) => {
  let server: NatsServer;
  let bus: Bus;
  let gate: ApiGate;
  const closing: (() => Promise<void> | void)[] = [];
  beforeAll(async () => {
    await establish(world.scene.api, DEFINITIONS);
    server = await startNatsServer();
    bus = await connectBus({ servers: server.url, name: 'spec' });
    await ensureTopology(bus);
    gate = await ApiGate.before(world.cluster.access);
  });
  afterEach(async () => {
    gate.mode = { does: 'pass' };
    for (const close of closing.splice(0)) await close();
  });
  afterAll(async () => {
    await gate?.close();
    await bus?.close();
    await server?.stop();
  });

  /** A session that leads, whatever others do. */
  const begin = async (timeoutMs?: number): Promise<GatewaySession> => {
    const kube = await Kube.open({
      kubeconfig: await world.cluster.kubeconfigBy(gate.url),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    });
    const session = new GatewaySession({ bus, kube, logger: SILENT, digest, debounceMs: 100 }).start();
    closing.push(async () => {
      session.stop();
      await kube.close();
    });
    return session;
  };
  const apply = async (name: string, content: string): Promise<void> => {
    const manifest = {
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'File',
      metadata: { name },
      spec: { nodeSelector: {}, path: `/etc/${name}`, content },
    };
    expect(
      (
        await world.scene.api.call(
          'PATCH',
          `${FILES}/${name}?fieldManager=spec&force=true`,
          manifest,
          'application/apply-patch+yaml',
        )
      ).code,
    ).toBeLessThan(300);
  };
  /** `name=content` for everything that was published, in order. */
  const published = async (): Promise<readonly string[]> => {
    const fleet = await connectFleet({ servers: server.url });
    const found: string[] = [];
    for await (const { body } of fleet.events({
      subject: 'config.desired.*',
      follow: false,
      signal: new AbortController().signal,
    })) {
      for (const { metadata, spec } of (
        body as {
          readonly apply: readonly {
            readonly metadata: { readonly name: string };
            readonly spec: { readonly content: string };
          }[];
        }
      ).apply)
        found.push(`${metadata.name}=${spec.content}`);
    }
    await fleet.close();
    return found;
  };
  const shown = (name: string): Promise<unknown> =>
    until(
      async () => (await world.scene.api.get(`${FILES}/${name}`))?.status?.['phase'] === 'Pending',
      `${name} says that it is published`,
    );

  it('that lead at once publish everything once, while the merger is down', async () => {
    for (let i = 0; i < 3; i += 1) await begin();
    const names = Array.from({ length: 12 }, (_, i) => `twice-${i}`);
    for (const name of names) await apply(name, '1');
    for (const name of names) await shown(name);
    for (const name of names.slice(0, 4)) await apply(name, '2');
    const wanted = [...names.map((name) => `${name}=1`), ...names.slice(0, 4).map((name) => `${name}=2`)].sort();
    await until(async () => (await published()).length >= wanted.length, 'all is published');
    await apply('last', '1');
    await shown('last');
    // An object that was edited before its first state was published is published once.
    expect((await published()).filter((line) => line !== 'last=1').sort()).toEqual(wanted);
  });

  it('write a status once for each change, and none if nothing changes', async () => {
    await begin();
    await apply('quiet', '1');
    await shown('quiet');
    const writes = (): number => gate.requests.filter((line) => line.startsWith(`PATCH ${FILES}/quiet/status`)).length;
    expect(writes()).toBe(1);
    await apply('quiet', '1');
    await apply('other', '1');
    await shown('other');
    expect(writes()).toBe(1);
  });

  it('report definitions of another version: dropped fields, refusals and missing kinds, until they are fixed', async () => {
    const notes = new ServiceNotes();
    const kube = await Kube.open({ kubeconfig: world.cluster.kubeconfig });
    const session = new GatewaySession({
      bus,
      kube,
      logger: SILENT,
      digest,
      debounceMs: 100,
      notes,
      definitionsMs: 50,
    }).start();
    closing.push(async () => {
      session.stop();
      await kube.close();
    });
    const edit = async (plural: string, ...operations: readonly object[]): Promise<void> => {
      expect(
        (await world.scene.api.call('PATCH', `${CRDS}/${plural}.sluice.dev`, operations, 'application/json-patch+json'))
          .code,
      ).toBe(200);
    };
    const words = (): readonly string[] => notes.all.map((note) => note.words);
    const definition = async (): Promise<unknown> =>
      (
        (await world.scene.api.get(`${FILES}/odd`))?.status?.['conditions'] as
          | readonly { readonly type: string }[]
          | undefined
      )?.find(({ type }) => type === 'Definition');
    const [files, pools, execs] = await Promise.all(
      ['files', 'pools', 'execs'].map((plural) => world.scene.api.get(`${CRDS}/${plural}.sluice.dev`)),
    );
    const schemaOf = (object: KubeObject | undefined): unknown =>
      ((object?.spec?.['versions'] ?? []) as readonly { readonly schema: unknown }[])[0]?.schema;
    await edit(
      'files',
      { op: 'remove', path: `${SPEC}/mode` },
      { op: 'add', path: `${SPEC}/colour`, value: { type: 'string' } },
      { op: 'remove', path: `${STATUS}/observedGeneration` },
    );
    await edit('pools', { op: 'remove', path: `${SPEC}/editors` });
    await world.scene.api.remove(`${CRDS}/execs.sluice.dev`);
    await until(
      () =>
        words()[0] ===
        [
          'the API server has no definition of Exec',
          'the API server has another version of the definition of File: it does not have spec.mode, status.observedGeneration, and it has spec.colour, which this gateway rejects',
          'the API server has another version of the definition of Pool: it does not have spec.editors',
        ].join('; '),
      'it says what is wrong',
    );
    expect(notes.all).toMatchObject([
      { state: 'bad', todo: expect.stringContaining('kubectl apply --server-side -f deploy/crds') as string },
    ]);
    await world.scene.api.create(FILES, {
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'File',
      metadata: { name: 'odd' },
      spec: { nodeSelector: {}, path: '/etc/odd', content: '', colour: 'red' },
    });
    await until(definition, 'the object shows the reason');
    expect((await world.scene.api.get(`${FILES}/odd`))?.status).toMatchObject({
      phase: 'Rejected',
      message: expect.stringMatching(/^spec\.colour: unknown field/) as string,
    });
    expect(await definition()).toMatchObject({
      status: 'False',
      reason: 'AnotherVersion',
      message: expect.stringContaining('it does not have spec.mode') as string,
    });
    for (const [plural, whole] of [
      ['files', files],
      ['pools', pools],
    ] as const)
      await edit(plural, { op: 'replace', path: '/spec/versions/0/schema', value: schemaOf(whole) });
    await world.scene.api.create(CRDS, {
      apiVersion: execs?.apiVersion,
      kind: execs?.kind,
      metadata: { name: 'execs.sluice.dev' },
      spec: execs?.spec,
    });
    await until(() => words().length === 0, 'no problem is reported').catch((error: unknown) => {
      throw new Error(`${(error as Error).message}: ${words().join('; ')}`, { cause: error });
    });
    await until(async () => (await definition()) === undefined, 'the object no longer shows the reason');
  });

  it('publish while no status can be written, and write it when that is possible', async () => {
    await begin(2_000);
    gate.about = /PATCH .*\/status/;
    gate.mode = { does: 'refuse', code: 429, reason: 'TooManyRequests' };
    await apply('refused', '1');
    await until(async () => (await published()).includes('refused=1'), 'it is published');
    gate.mode = { does: 'stall' };
    await apply('stalled', '1');
    await until(async () => (await published()).includes('stalled=1'), 'the message is published');
    gate.mode = { does: 'pass' };
    await shown('refused');
    expect((await published()).filter((line) => /^(refused|stalled)=/.test(line))).toEqual(['refused=1', 'stalled=1']);
  });

  it('continue to publish while status writes get no answer', async () => {
    await begin(600_000);
    gate.about = /PATCH .*\/status/;
    gate.mode = { does: 'stall' };
    // More than can be written at once.
    const names = Array.from({ length: 12 }, (_, i) => `unanswered-${i}`);
    for (const name of names) {
      await apply(name, '1');
      await until(async () => (await published()).includes(`${name}=1`), `${name} is published`);
    }
  });
});
