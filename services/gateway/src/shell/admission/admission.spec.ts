import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { connectBus, ensureTopology, kvSubject, ServiceNotes, type Bus } from '#libs/nats';
import { encodeView, type ChangeView, type NodeView } from '#libs/contracts';
import { Kube } from '#libs/kube';
import { KINDS, pluralOf, ROLLOUT_KIND, webhookConfiguration, type FailurePolicy } from '#libs/manifests';
import type { Logger } from '#libs/process';
import {
  describeOnKube,
  establish,
  testAuthority,
  until,
  type TestAuthority,
  startNatsServer,
  type NatsServer,
} from '#libs/testing';
import { GatewaySession } from '../session.js';
import { Admission } from './admission.js';
import { describePurposes } from './purposes.fixture.js';

const DEFINITIONS = resolve(__dirname, '../../../../../deploy/crds');
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const DAY_MS = 24 * 3_600_000;
const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

interface ReviewAnswer {
  readonly code: number;
  readonly warnings: readonly string[];
  readonly message: string;
}

describeOnKube('admission on an API server', (world) => {
  let server: NatsServer;
  let bus: Bus;
  let kube: Kube;
  let authority: TestAuthority;
  let admission: Admission;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-admission-'));
  const logged: string[] = [];
  const notes = new ServiceNotes();
  const logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: (_: object, message: string) => logged.push(message),
    error: (_: object, message: string) => logged.push(message),
  } as unknown as Logger;

  beforeAll(async () => {
    await establish(world.scene.api, DEFINITIONS);
    await letEverybodyEdit();
    server = await startNatsServer();
    bus = await connectBus({ servers: server.url, name: 'spec' });
    await ensureTopology(bus);
    for (const [name, labels] of [
      ['edge-1', { role: 'edge', zone: 'a' }],
      ['edge-2', { role: 'edge' }],
      ['core-1', { role: 'core', zone: 'b' }],
    ] as const)
      await showNode(name, labels);
    kube = await Kube.open({ kubeconfig: world.cluster.kubeconfig });
    authority = await testAuthority();
    await begin();
    await install('Ignore');
  });
  afterAll(async () => {
    await admission?.close();
    await kube?.close();
    await bus?.close();
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const begin = async (port = 0): Promise<void> => {
    admission = await new Admission(
      { bus, kube, logger, notes, digest, lookMs: 20 },
      { port, ...(await authority.write(folder)) },
    ).start();
    await until(async () => (await health()) === 200, 'it is ready');
  };
  const health = (): Promise<number> =>
    new Promise((found) => {
      request({ host: '127.0.0.1', port: admission.port, path: '/healthz', ca: authority.ca }, (reply) =>
        found(reply.resume().statusCode ?? 0),
      )
        .once('error', () => found(0))
        .end();
    });
  const showNode = async (name: string, labels: object): Promise<void> => {
    const view = {
      ledger: 1,
      node: name,
      state: 'ready',
      labels,
      capabilities: [
        'kind:File',
        'kind:Vrf',
        'kind:Layer2Network',
        'kind:Directory',
        'link:vxlan',
        'link:bridge',
        'link:vrf',
        'action:restart',
      ],
      version: '',
      since: '',
      because: '',
      unavailable: '',
      uid: '',
    } as unknown as NodeView;
    await bus.publish(kvSubject('nodes', name), encodeView('nodes', view));
  };
  /** Waits until the API server calls the webhook: a change of its webhooks takes effect a moment later. */
  const install = async (failurePolicy: FailurePolicy): Promise<void> => {
    const body = webhookConfiguration(
      { url: `https://127.0.0.1:${admission.port}/admit`, caBundle: Buffer.from(authority.ca).toString('base64') },
      failurePolicy,
    );
    // A busy machine may take longer than the 3 s of the product, and `Ignore` would then let everything pass.
    const { code, body: answer } = await world.scene.api.call(
      'PATCH',
      `${CONFIGURATIONS}/${body.metadata.name}?fieldManager=spec&force=true`,
      { ...body, webhooks: body.webhooks.map((webhook) => ({ ...webhook, timeoutSeconds: 30 })) },
      'application/apply-patch+yaml',
    );
    expect({ code: code < 300, answer: code < 300 ? '' : answer }).toEqual({ code: true, answer: '' });
    await until(
      async () =>
        (await dryRun({ kind: 'Probe', name: 'asked', spec: { nodeSelector: {}, file: { path: '/a', matches: '(' } } }))
          .code === 422,
      'the API server asks',
    );
  };
  const uninstall = async (): Promise<void> => {
    await world.scene.api.remove(`${CONFIGURATIONS}/admission.sluice.dev`);
    await until(
      async () =>
        (await dryRun({ kind: 'Probe', name: 'asked', spec: { nodeSelector: {}, file: { path: '/a', matches: '(' } } }))
          .code < 300,
      'the API server asks no more',
    );
  };
  async function letEverybodyEdit(): Promise<void> {
    const kinds = [...KINDS.map(({ name }) => pluralOf(name)), pluralOf(ROLLOUT_KIND)];
    await world.scene.api.create(`${RBAC}/clusterroles`, {
      metadata: { name: 'edits' },
      rules: [{ apiGroups: ['sluice.dev'], resources: kinds.filter((plural) => plural !== 'execs'), verbs: ['*'] }],
    });
    await world.scene.api.create(`${RBAC}/clusterrolebindings`, {
      metadata: { name: 'edits' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edits' },
      subjects: [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'system:authenticated' }],
    });
  }

  interface WrittenObject {
    readonly kind: string;
    readonly name: string;
    readonly labels?: object;
    readonly spec: object;
  }
  const file = (name: string, spec: object, labels: object = {}): WrittenObject => ({
    kind: 'File',
    name,
    labels,
    spec: { nodeSelector: {}, path: `/etc/${name}`, content: '', ...spec },
  });
  const collection = (kind: string): string => `/apis/sluice.dev/v1alpha1/${pluralOf(kind)}`;
  const documentOf = ({ kind, name, labels = {}, spec }: WrittenObject): object => ({
    apiVersion: 'sluice.dev/v1alpha1',
    kind,
    metadata: { name, labels },
    spec,
  });
  const send = async (
    method: string,
    path: string,
    body: object | undefined,
    as: readonly string[],
  ): Promise<ReviewAnswer> => {
    const {
      code,
      warnings,
      body: reply,
    } = await world.scene.api.call(
      method,
      path,
      body,
      body === undefined ? 'application/json' : 'application/apply-patch+yaml',
      as,
    );
    return { code, warnings, message: code < 300 ? '' : String((reply as { readonly message?: string }).message) };
  };
  /** Like `kubectl apply --server-side`, as a given user. */
  const patch = (one: WrittenObject, as: readonly string[], query: string): Promise<ReviewAnswer> =>
    send('PATCH', `${collection(one.kind)}/${one.name}?fieldManager=spec&force=true${query}`, documentOf(one), as);
  const apply = (one: WrittenObject, ...as: readonly string[]): Promise<ReviewAnswer> => patch(one, as, '');
  const dryRun = (one: WrittenObject, ...as: readonly string[]): Promise<ReviewAnswer> => patch(one, as, '&dryRun=All');
  const remove = (kind: string, name: string, ...as: readonly string[]): Promise<ReviewAnswer> =>
    send('DELETE', `${collection(kind)}/${name}`, undefined, as);
  const kubectl = (
    text: string,
    ...args: readonly string[]
  ): Promise<{ readonly code: number; readonly stderr: string }> =>
    new Promise((done) => {
      const child = execFile(
        'kubectl',
        args,
        { env: { ...process.env, KUBECONFIG: world.cluster.kubeconfig, HOME: folder } },
        (error, _, stderr) => done({ code: error === null ? 0 : 1, stderr }),
      );
      child.stdin?.end(text);
    });

  it('refuses what only the validators detect, with their messages', async () => {
    expect(
      await apply({ kind: 'Probe', name: 'pattern', spec: { nodeSelector: {}, file: { path: '/a', matches: '(' } } }),
    ).toMatchObject({
      code: 422,
      message: expect.stringContaining('denied the request: spec.file.matches: must be a regular expression') as string,
    });
  });

  it('shows each reason with its field in kubectl', async () => {
    const { code, stderr } = await kubectl(
      JSON.stringify(
        documentOf({ kind: 'Probe', name: 'pattern', spec: { nodeSelector: {}, file: { path: '/a', matches: '(' } } }),
      ),
      'apply',
      '-f',
      '-',
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(/spec\.file\.matches: .*must be a regular expression/);
  });

  const network = (name: string, spec: object): WrittenObject => ({
    kind: 'Layer2Network',
    name,
    spec: { nodeSelector: { matchLabels: { role: 'core' } }, id: 100, vni: 100, ...spec },
  });
  const vrf = (name: string, spec: object): WrittenObject => ({
    kind: 'Vrf',
    name,
    spec: { nodeSelector: { matchLabels: { role: 'core' } }, vrf: name, ...spec },
  });
  /** Earlier writes arrive a moment later. Until then, the answer is the same as before. */
  const untilAnswer = (
    what: string,
    holds: (answer: ReviewAnswer) => boolean,
    ask: () => Promise<ReviewAnswer>,
  ): Promise<ReviewAnswer> =>
    until(async () => {
      const answer = await ask();
      return holds(answer) ? answer : undefined;
    }, what);

  it('accepts a network and its VRF in either order, and warns about one without the other', async () => {
    const first = await apply(network('storage', { vrf: 'blue' }));
    expect(first).toEqual({
      code: 201,
      message: '',
      warnings: [expect.stringMatching(/^spec\.vrf: .*blue.* \(core-1\)$/)],
    });
    expect(await apply(vrf('blue', {}))).toEqual({ code: 201, message: '', warnings: [] });
    await untilAnswer(
      'nothing is missing any more',
      ({ warnings }) => warnings.length === 0,
      () => dryRun(network('storage', { vrf: 'blue', mtu: 1_500 })),
    );
    await untilAnswer(
      'it would be missed',
      ({ warnings }) => /Layer2Network\/storage spec\.vrf: .*blue/.test(warnings.join()),
      () => remove('Vrf', 'blue?dryRun=All'),
    );
  });

  it('warns about two objects with the same claim, naming the other, and about what a node does not support', async () => {
    await apply(file('one', {}));
    await untilAnswer(
      'a path has two owners',
      ({ warnings }) =>
        warnings.join() === 'spec.path: File/one and File/two both put something at /etc/one (core-1, edge-1, edge-2)',
      () => dryRun(file('two', { path: '/etc/one' })),
    );
    expect((await dryRun(network('other', { id: 101 }))).warnings.join()).toMatch(
      /Layer2Network\/other and Layer2Network\/storage|Layer2Network\/storage and Layer2Network\/other/,
    );
    expect((await dryRun(file('zone', { content: '{{ node.labels.zone }}' }))).warnings).toEqual([
      'spec.content: {{ node.labels.zone }}: the node has no such label; it has role (edge-2)',
    ]);
    expect(
      (
        await dryRun({ kind: 'Sysctl', name: 'swap', spec: { nodeSelector: {}, key: 'vm.swappiness', value: '10' } })
      ).warnings.join(),
    ).toMatch(/did not announce kind:Sysctl/);
  });

  it('accepts two objects that exchange their claims, although each alone would conflict', async () => {
    await apply(file('left', {}));
    await apply(file('right', {}));
    await untilAnswer(
      'both are seen',
      ({ warnings }) => warnings.length > 0,
      () => dryRun(file('left', { path: '/etc/right' })),
    );
    expect((await apply(file('left', { path: '/etc/right' }))).code).toBe(200);
    expect((await apply(file('right', { path: '/etc/left' }))).code).toBe(200);
  });

  describePurposes(world, { apply, dryRun, remove, untilAnswer });

  describe('for a pool with editors', () => {
    const edge = (spec: object): WrittenObject =>
      file('of-edge', { nodeSelector: { matchLabels: { role: 'edge' } }, ...spec });
    const mary = ['mary', 'edge-team'] as const;
    const john = ['john', 'core-team'] as const;
    const pool = (editors: readonly object[], more: object = {}): WrittenObject => ({
      kind: 'Pool',
      name: 'edge',
      spec: { nodeSelector: { matchLabels: { role: 'edge' } }, editors, ...more },
    });
    beforeAll(async () => {
      expect(
        (await apply(pool([{ groups: ['edge-team', 'sre'] }, { groups: ['web-team'], kinds: ['File'] }]))).code,
      ).toBe(201);
      await untilAnswer(
        'it is seen',
        ({ code }) => code === 403,
        () => dryRun(edge({}), ...john),
      );
    });

    it('lets only its editors change what selects its nodes, and names verb, kind, pool and editors', async () => {
      expect(await dryRun(edge({}), ...john)).toMatchObject({
        code: 403,
        message: expect.stringContaining(
          '"john" may not create File/of-edge: it selects nodes of Pool/edge, where only edge-team, sre, web-team may change objects of kind File',
        ) as string,
      });
      expect((await apply(edge({}), ...mary)).code).toBe(201);
      expect((await dryRun(edge({ content: 'x' }), 'web', 'web-team')).code).toBe(200);
      expect((await dryRun(file('of-core', { nodeSelector: { matchLabels: { role: 'core' } } }), ...john)).code).toBe(
        201,
      );
      expect((await dryRun(file('of-all', {}), ...john)).message).toContain('"john" may not create File/of-all');
    });

    it('also checks the previous state, so that nobody else can take nodes away', async () => {
      expect((await dryRun(edge({ nodeSelector: { matchLabels: { role: 'core' } } }), ...john)).message).toContain(
        '"john" may not update File/of-edge',
      );
      expect((await remove('File', 'of-edge?dryRun=All', ...john)).message).toContain(
        '"john" may not delete File/of-edge',
      );
      expect((await remove('File', 'of-edge?dryRun=All', ...mary)).code).toBe(200);
    });

    it('checks rights by kind', async () => {
      const directory = {
        kind: 'Directory',
        name: 'srv',
        spec: { nodeSelector: { matchLabels: { role: 'edge' } }, path: '/srv/x' },
      };
      expect((await dryRun(directory, 'web', 'web-team')).message).toContain(
        'where only edge-team, sre may change objects of kind Directory',
      );
      expect((await dryRun(directory, ...mary)).code).toBe(201);
    });

    it('protects the pool itself: only an editor can remove editors, and another pool cannot take its nodes', async () => {
      expect((await dryRun(pool([]), ...john)).message).toContain(
        '"john" may not update Pool/edge: only edge-team, sre may change Pool/edge',
      );
      expect((await remove('Pool', 'edge?dryRun=All', ...john)).message).toContain('"john" may not delete Pool/edge');
      expect(
        (
          await dryRun(
            { kind: 'Pool', name: 'mine', spec: { nodeSelector: { matchLabels: { zone: 'a' } }, maxUnavailable: 1 } },
            ...john,
          )
        ).message,
      ).toContain('"john" may not create Pool/mine: it selects nodes of Pool/edge');
      expect((await dryRun(pool([], { maxUnavailable: 2 }), ...mary)).code).toBe(200);
    });

    it('lets users pause or resume a rollout who may change its kinds on its nodes, and the gateway creates Rollouts itself', async () => {
      const view = {
        ledger: 1,
        change: 'c5',
        phase: 'rolling',
        source: '',
        message: '',
        author: '',
        waitsFor: [],
        apply: [{ kind: 'Directory', name: 'srv' }],
        delete: [],
        attempt: 1,
        nodes: 2,
        unchanged: 0,
        pools: { edge: 2 },
        reasons: [],
        warnings: [],
        outcome: '',
        reason: '',
        generation: 0,
        retryOf: '',
        acceptedAt: '',
        endedAt: '',
      } as unknown as ChangeView;
      await bus.publish(kvSubject('changes', 'c5'), encodeView('changes', view));
      const rollout = (paused: boolean | undefined, as: readonly string[], query = ''): Promise<ReviewAnswer> =>
        send(
          'PATCH',
          `${collection(ROLLOUT_KIND)}/c5?fieldManager=spec&force=true${query}`,
          {
            apiVersion: 'sluice.dev/v1alpha1',
            kind: ROLLOUT_KIND,
            metadata: { name: 'c5' },
            spec: paused === undefined ? {} : { paused },
          },
          as,
        );
      await untilAnswer(
        'the change is noticed',
        ({ message }) => message.includes('where only edge-team, sre may change Directory'),
        () => rollout(true, john, '&dryRun=All'),
      );
      expect((await rollout(undefined, john)).code).toBe(201);
      expect((await rollout(true, ['web', 'web-team'])).message).toContain(
        '"web" may not pause Rollout/c5: it affects nodes of Pool/edge, where only edge-team, sre may change Directory',
      );
      expect((await rollout(true, mary)).code).toBe(200);
      expect(await rollout(false, john)).toMatchObject({
        code: 403,
        message: expect.stringContaining('"john" may not resume Rollout/c5') as string,
      });
      const marked = await world.scene.api.call(
        'PATCH',
        `${collection(ROLLOUT_KIND)}/c5?fieldManager=john`,
        { metadata: { labels: { team: 'core' } } },
        'application/merge-patch+json',
        john,
      );
      expect([marked.code, (await rollout(false, mary)).code]).toEqual([200, 200]);
    });

    it('lets Kubernetes roles decide who may change a kind at all', async () => {
      expect(
        (
          await dryRun(
            { kind: 'Exec', name: 'run', spec: { nodeSelector: {}, check: { argv: ['a'] }, apply: { argv: ['b'] } } },
            ...mary,
          )
        ).message,
      ).toContain('cannot patch resource "execs"');
    });

    it('allows everyone to change annotations, finalizers, and the status', async () => {
      const path = `${collection('File')}/of-edge`;
      const patched = (at: string, body: object): Promise<{ readonly code: number }> =>
        world.scene.api.call('PATCH', `${at}?fieldManager=john`, body, 'application/merge-patch+json', john);
      expect(
        (await patched(path, { metadata: { annotations: { note: 'x' }, finalizers: ['example.com/x'] } })).code,
      ).toBe(200);
      expect((await patched(path, { metadata: { finalizers: null } })).code).toBe(200);
      expect(
        (
          await world.scene.api.call(
            'PATCH',
            `${path}/status?fieldManager=gateway`,
            { status: { phase: 'Pending' } },
            'application/merge-patch+json',
          )
        ).code,
      ).toBe(200);
      expect((await patched(path, { spec: { content: 'mine' } })).code).toBe(403);
    });
  });

  describe('with a certificate', () => {
    const bad = { kind: 'Probe', name: 'pattern', spec: { nodeSelector: {}, file: { path: '/a', matches: '(' } } };
    const message = (): string => admission.certificateStatus.words;
    /** The API server keeps its connection, and sees no new certificate on it. */
    const restart = async (): Promise<void> => {
      const { port } = admission;
      await admission.close();
      admission = await new Admission(
        { bus, kube, logger, notes, digest, lookMs: 20 },
        { port, certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') },
      ).start();
      await until(() => admission.port === port, 'it listens');
    };
    afterAll(async () => {
      await authority.write(folder);
      await until(() => message() === '', 'the new one is in use');
      await install('Ignore');
    });

    it('continues with a replaced certificate without a restart', async () => {
      const serial = (): Promise<string> =>
        new Promise((found, failed) => {
          const healthRequest = request(
            { host: '127.0.0.1', port: admission.port, path: '/healthz', ca: authority.ca, agent: false },
            (reply) => {
              found((reply.socket as import('node:tls').TLSSocket).getPeerCertificate().serialNumber);
              reply.resume();
            },
          );
          healthRequest.once('error', failed).end();
        });
      const before = await serial();
      await authority.write(folder);
      await until(async () => (await serial()) !== before, 'it shows another certificate');
      expect((await dryRun(bad)).code).toBe(422);
    });

    it('warns everyone who applies, and in the log, before it expires', async () => {
      await authority.write(folder, { toMs: 9.5 * DAY_MS });
      await until(() => admission.certificateStatus.is === 'ending', 'it is in use');
      expect((await dryRun(file('soon', { content: 'x' }))).warnings.join()).toContain(
        'the certificate of the webhook expires in 9 days, on ',
      );
      expect(logged.join('\n')).toContain('the certificate of the webhook expires in 9 days');
      expect(notes.all).toEqual([
        { state: 'note', words: message(), todo: 'replace it: the new one is used without a restart' },
      ]);
    });

    it('cannot answer after it has expired: the failure policy lets requests pass or refuses them, and a message says so', async () => {
      await authority.write(folder, { fromMs: -2 * DAY_MS, toMs: -DAY_MS });
      await restart();
      expect(message()).toContain('the certificate of the webhook expired on ');
      expect(notes.all).toEqual([
        { state: 'bad', words: message(), todo: 'replace it: the new one is used without a restart' },
      ]);
      expect(logged.join('\n')).toContain('the certificate of the webhook expired on ');
      expect(
        (
          await untilAnswer(
            'nobody is asked',
            ({ code }) => code < 300,
            () => dryRun(bad),
          )
        ).warnings,
      ).toEqual([]);
      const configuration = `${CONFIGURATIONS}/admission.sluice.dev`;
      await world.scene.api.call(
        'PATCH',
        configuration,
        [{ op: 'replace', path: '/webhooks/0/failurePolicy', value: 'Fail' }],
        'application/json-patch+json',
      );
      expect(
        (
          await untilAnswer(
            'it fails',
            ({ code }) => code === 500,
            () => dryRun(file('any', {})),
          )
        ).message,
      ).toMatch(/failed calling webhook "admission\.sluice\.dev".*certificate has expired/);
    });

    it('and no answer, the policy Fail refuses all content but still releases objects, and Ignore lets everything pass', async () => {
      await admission.close();
      expect((await dryRun(file('any', {}))).message).toMatch(/failed calling webhook "admission\.sluice\.dev"/);
      const finalizers = await world.scene.api.call(
        'PATCH',
        `${collection('File')}/of-edge?fieldManager=sluice-gateway`,
        { metadata: { finalizers: ['sluice.dev/rollout'] } },
        'application/merge-patch+json',
      );
      expect(finalizers.code).toBe(200);
      await world.scene.api.call(
        'PATCH',
        `${CONFIGURATIONS}/admission.sluice.dev`,
        [{ op: 'replace', path: '/webhooks/0/failurePolicy', value: 'Ignore' }],
        'application/json-patch+json',
      );
      await untilAnswer(
        'it is let through',
        ({ code }) => code < 300,
        () => dryRun(bad),
      );
      const { port } = admission;
      await begin(port);
    });
  });

  it('without the webhook, what would be refused is accepted, and its status has the same messages', async () => {
    const bad = { kind: 'Probe', name: 'around', spec: { nodeSelector: {}, file: { path: '/a', matches: '(' } } };
    const refused = (await apply(bad)).message.replace(/^.*denied the request: /, '');
    await uninstall();
    expect((await apply(bad)).code).toBe(201);
    const session = new GatewaySession({ bus, kube, logger, digest, debounceMs: 100 }).start();
    try {
      const status = await until(
        async () => (await world.scene.api.get(`${collection('Probe')}/around`))?.status,
        'it says what is wrong',
      );
      expect(status).toMatchObject({
        phase: 'Rejected',
        message: refused,
        conditions: expect.arrayContaining([
          expect.objectContaining({ type: 'Accepted', status: 'False', reason: 'BadPattern', message: refused }),
        ]) as unknown,
      });
    } finally {
      session.stop();
    }
  });
});
