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
  const said: string[] = [];
  const notes = new ServiceNotes();
  const logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: (_: object, words: string) => said.push(words),
    error: (_: object, words: string) => said.push(words),
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
    await until(async () => (await health()) === 200, 'it has read all');
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
  /** Waits until the API server asks: it takes a change of its webhooks a moment later. */
  const install = async (failurePolicy: FailurePolicy): Promise<void> => {
    const body = webhookConfiguration(
      { url: `https://127.0.0.1:${admission.port}/admit`, caBundle: Buffer.from(authority.ca).toString('base64') },
      failurePolicy,
    );
    const { code, body: answer } = await world.scene.api.call(
      'PATCH',
      `${CONFIGURATIONS}/${body.metadata.name}?fieldManager=spec&force=true`,
      body,
      'application/apply-patch+yaml',
    );
    expect({ code: code < 300, answer: code < 300 ? '' : answer }).toEqual({ code: true, answer: '' });
    await until(
      async () =>
        (await tried({ kind: 'Probe', name: 'asked', spec: { nodeSelector: {}, file: { path: '/a', matches: '(' } } }))
          .code === 422,
      'the API server asks',
    );
  };
  const uninstall = async (): Promise<void> => {
    await world.scene.api.remove(`${CONFIGURATIONS}/admission.sluice.dev`);
    await until(
      async () =>
        (await tried({ kind: 'Probe', name: 'asked', spec: { nodeSelector: {}, file: { path: '/a', matches: '(' } } }))
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

  interface Written {
    readonly kind: string;
    readonly name: string;
    readonly labels?: object;
    readonly spec: object;
  }
  const file = (name: string, spec: object, labels: object = {}): Written => ({
    kind: 'File',
    name,
    labels,
    spec: { nodeSelector: {}, path: `/etc/${name}`, content: '', ...spec },
  });
  const collection = (kind: string): string => `/apis/sluice.dev/v1alpha1/${pluralOf(kind)}`;
  const documentOf = ({ kind, name, labels = {}, spec }: Written): object => ({
    apiVersion: 'sluice.dev/v1alpha1',
    kind,
    metadata: { name, labels },
    spec,
  });
  const told = async (
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
  /** As `kubectl apply --server-side` does it, by somebody. */
  const sent = (one: Written, as: readonly string[], query: string): Promise<ReviewAnswer> =>
    told('PATCH', `${collection(one.kind)}/${one.name}?fieldManager=spec&force=true${query}`, documentOf(one), as);
  const applied = (one: Written, ...as: readonly string[]): Promise<ReviewAnswer> => sent(one, as, '');
  const tried = (one: Written, ...as: readonly string[]): Promise<ReviewAnswer> => sent(one, as, '&dryRun=All');
  const removed = (kind: string, name: string, ...as: readonly string[]): Promise<ReviewAnswer> =>
    told('DELETE', `${collection(kind)}/${name}`, undefined, as);
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

  it('refuses what the validators refuse and a schema cannot, in their words', async () => {
    expect(
      await applied({ kind: 'Probe', name: 'pattern', spec: { nodeSelector: {}, file: { path: '/a', matches: '(' } } }),
    ).toMatchObject({
      code: 422,
      message: expect.stringContaining('denied the request: spec.file.matches: must be a regular expression') as string,
    });
  });

  it('shows kubectl each reason with its field', async () => {
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

  const network = (name: string, spec: object): Written => ({
    kind: 'Layer2Network',
    name,
    spec: { nodeSelector: { matchLabels: { role: 'core' } }, id: 100, vni: 100, ...spec },
  });
  const vrf = (name: string, spec: object): Written => ({
    kind: 'Vrf',
    name,
    spec: { nodeSelector: { matchLabels: { role: 'core' } }, vrf: name, ...spec },
  });
  /** What was written before is seen a moment later: until then the answer is the one before. */
  const untilTold = (
    what: string,
    holds: (told: ReviewAnswer) => boolean,
    ask: () => Promise<ReviewAnswer>,
  ): Promise<ReviewAnswer> =>
    until(async () => {
      const answer = await ask();
      return holds(answer) ? answer : undefined;
    }, what);

  it('takes a network and the VRF that it is in, in either order, and warns of one without the other', async () => {
    const first = await applied(network('storage', { vrf: 'blue' }));
    expect(first).toEqual({
      code: 201,
      message: '',
      warnings: [expect.stringMatching(/^spec\.vrf: .*blue.* \(core-1\)$/)],
    });
    expect(await applied(vrf('blue', {}))).toEqual({ code: 201, message: '', warnings: [] });
    await untilTold(
      'nothing is missing any more',
      ({ warnings }) => warnings.length === 0,
      () => tried(network('storage', { vrf: 'blue', mtu: 1_500 })),
    );
    await untilTold(
      'it would be missed',
      ({ warnings }) => /Layer2Network\/storage spec\.vrf: .*blue/.test(warnings.join()),
      () => removed('Vrf', 'blue?dryRun=All'),
    );
  });

  it('warns of what two objects both claim, naming the other, and of what a node does not have', async () => {
    await applied(file('one', {}));
    await untilTold(
      'a path has two owners',
      ({ warnings }) =>
        warnings.join() === 'spec.path: File/one and File/two both put something at /etc/one (core-1, edge-1, edge-2)',
      () => tried(file('two', { path: '/etc/one' })),
    );
    expect((await tried(network('other', { id: 101 }))).warnings.join()).toMatch(
      /Layer2Network\/other and Layer2Network\/storage|Layer2Network\/storage and Layer2Network\/other/,
    );
    expect((await tried(file('zone', { content: '{{ node.labels.zone }}' }))).warnings).toEqual([
      'spec.content: {{ node.labels.zone }}: the node has no such label; it has role (edge-2)',
    ]);
    expect(
      (
        await tried({ kind: 'Sysctl', name: 'swap', spec: { nodeSelector: {}, key: 'vm.swappiness', value: '10' } })
      ).warnings.join(),
    ).toMatch(/did not announce kind:Sysctl/);
  });

  it('takes two objects that exchange what they claim, though each alone does not go', async () => {
    await applied(file('left', {}));
    await applied(file('right', {}));
    await untilTold(
      'both are seen',
      ({ warnings }) => warnings.length > 0,
      () => tried(file('left', { path: '/etc/right' })),
    );
    expect((await applied(file('left', { path: '/etc/right' }))).code).toBe(200);
    expect((await applied(file('right', { path: '/etc/left' }))).code).toBe(200);
  });

  it('keeps a purpose that was given', async () => {
    await applied(file('purposed', {}));
    expect((await applied(file('purposed', {}, { 'sluice.dev/purpose': 'edge' }))).code).toBe(200);
    for (const labels of [{ 'sluice.dev/purpose': 'core' }, { 'sluice.dev/purpose': '' }]) {
      expect(await applied(file('purposed', {}, labels))).toMatchObject({
        code: 422,
        message: expect.stringMatching(
          /metadata\.labels\["sluice\.dev\/purpose"\]: is "edge" and cannot change to/,
        ) as string,
      });
    }
    expect(await applied(file('purposed', {}, { team: 'a' }))).toMatchObject({
      code: 422,
      message: expect.stringMatching(/cannot be removed: delete File\/purposed/) as string,
    });
    expect((await applied(file('purposed', { content: 'new' }, { 'sluice.dev/purpose': 'edge' }))).code).toBe(200);
  });

  describe('of a pool with editors', () => {
    const edge = (spec: object): Written =>
      file('of-edge', { nodeSelector: { matchLabels: { role: 'edge' } }, ...spec });
    const mary = ['mary', 'edge-team'] as const;
    const john = ['john', 'core-team'] as const;
    const pool = (editors: readonly object[], more: object = {}): Written => ({
      kind: 'Pool',
      name: 'edge',
      spec: { nodeSelector: { matchLabels: { role: 'edge' } }, editors, ...more },
    });
    beforeAll(async () => {
      expect(
        (await applied(pool([{ groups: ['edge-team', 'sre'] }, { groups: ['web-team'], kinds: ['File'] }]))).code,
      ).toBe(201);
      await untilTold(
        'it is seen',
        ({ code }) => code === 403,
        () => tried(edge({}), ...john),
      );
    });

    it('lets its editors change what selects its nodes, and nobody else, and names verb, kind, pool and who may', async () => {
      expect(await tried(edge({}), ...john)).toMatchObject({
        code: 403,
        message: expect.stringContaining(
          '"john" may not create File/of-edge: it selects nodes of Pool/edge, where only edge-team, sre, web-team may change objects of kind File',
        ) as string,
      });
      expect((await applied(edge({}), ...mary)).code).toBe(201);
      expect((await tried(edge({ content: 'x' }), 'web', 'web-team')).code).toBe(200);
      expect((await tried(file('of-core', { nodeSelector: { matchLabels: { role: 'core' } } }), ...john)).code).toBe(
        201,
      );
      expect((await tried(file('of-all', {}), ...john)).message).toContain('"john" may not create File/of-all');
    });

    it('looks at what was there, too: nobody takes away what is not theirs', async () => {
      expect((await tried(edge({ nodeSelector: { matchLabels: { role: 'core' } } }), ...john)).message).toContain(
        '"john" may not update File/of-edge',
      );
      expect((await removed('File', 'of-edge?dryRun=All', ...john)).message).toContain(
        '"john" may not delete File/of-edge',
      );
      expect((await removed('File', 'of-edge?dryRun=All', ...mary)).code).toBe(200);
    });

    it('holds by kind', async () => {
      const directory = {
        kind: 'Directory',
        name: 'srv',
        spec: { nodeSelector: { matchLabels: { role: 'edge' } }, path: '/srv/x' },
      };
      expect((await tried(directory, 'web', 'web-team')).message).toContain(
        'where only edge-team, sre may change objects of kind Directory',
      );
      expect((await tried(directory, ...mary)).code).toBe(201);
    });

    it('guards itself: its editors are taken away by one of them only, and another pool cannot take its nodes', async () => {
      expect((await tried(pool([]), ...john)).message).toContain(
        '"john" may not update Pool/edge: only edge-team, sre may change Pool/edge',
      );
      expect((await removed('Pool', 'edge?dryRun=All', ...john)).message).toContain('"john" may not delete Pool/edge');
      expect(
        (
          await tried(
            { kind: 'Pool', name: 'mine', spec: { nodeSelector: { matchLabels: { zone: 'a' } }, maxUnavailable: 1 } },
            ...john,
          )
        ).message,
      ).toContain('"john" may not create Pool/mine: it selects nodes of Pool/edge');
      expect((await tried(pool([], { maxUnavailable: 2 }), ...mary)).code).toBe(200);
    });

    it('lets those pause a rollout over its nodes, or let it go on, who may change there what it carries; and the gateway makes it unasked', async () => {
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
        told(
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
      await untilTold(
        'the change is seen',
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

    it('leaves who may change a kind at all to the roles of Kubernetes', async () => {
      expect(
        (
          await tried(
            { kind: 'Exec', name: 'run', spec: { nodeSelector: {}, check: { argv: ['a'] }, apply: { argv: ['b'] } } },
            ...mary,
          )
        ).message,
      ).toContain('cannot patch resource "execs"');
    });

    it('keeps nobody from what changes no content: annotations, finalizers, and the status', async () => {
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
    const words = (): string => admission.certificateStatus.words;
    /** The API server keeps a connection, on which it sees no other certificate. */
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
      await until(() => words() === '', 'the new one is in use');
      await install('Ignore');
    });

    it('that was put in the place of another goes on with that one, without a restart', async () => {
      const serial = (): Promise<string> =>
        new Promise((found, failed) => {
          const asked = request(
            { host: '127.0.0.1', port: admission.port, path: '/healthz', ca: authority.ca, agent: false },
            (reply) => {
              found((reply.socket as import('node:tls').TLSSocket).getPeerCertificate().serialNumber);
              reply.resume();
            },
          );
          asked.once('error', failed).end();
        });
      const before = await serial();
      await authority.write(folder);
      await until(async () => (await serial()) !== before, 'it shows another certificate');
      expect((await tried(bad)).code).toBe(422);
    });

    it('that is about to run out says so to everybody who applies, and in the log', async () => {
      await authority.write(folder, { toMs: 9.5 * DAY_MS });
      await until(() => admission.certificateStatus.is === 'ending', 'it is in use');
      expect((await tried(file('soon', { content: 'x' }))).warnings.join()).toContain(
        'the certificate of the webhook expires in 9 days, on ',
      );
      expect(said.join('\n')).toContain('the certificate of the webhook expires in 9 days');
      expect(notes.all).toEqual([
        { state: 'note', words: words(), todo: 'replace it: the new one is used without a restart' },
      ]);
    });

    it('that ran out is no answer: what cannot be reviewed is let through, or refused where the policy is to fail, and it is said', async () => {
      await authority.write(folder, { fromMs: -2 * DAY_MS, toMs: -DAY_MS });
      await restart();
      expect(words()).toContain('the certificate of the webhook expired on ');
      expect(notes.all).toEqual([
        { state: 'bad', words: words(), todo: 'replace it: the new one is used without a restart' },
      ]);
      expect(said.join('\n')).toContain('the certificate of the webhook expired on ');
      expect(
        (
          await untilTold(
            'nobody is asked',
            ({ code }) => code < 300,
            () => tried(bad),
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
          await untilTold(
            'it fails',
            ({ code }) => code === 500,
            () => tried(file('any', {})),
          )
        ).message,
      ).toMatch(/failed calling webhook "admission\.sluice\.dev".*certificate has expired/);
    });

    it('and nobody who answers, Fail refuses all content, and still lets go of an object; Ignore lets everything through', async () => {
      await admission.close();
      expect((await tried(file('any', {}))).message).toMatch(/failed calling webhook "admission\.sluice\.dev"/);
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
      await untilTold(
        'it is let through',
        ({ code }) => code < 300,
        () => tried(bad),
      );
      const { port } = admission;
      await begin(port);
    });
  });

  it('without the webhook what was refused is taken, and its status says the same in the same words', async () => {
    const bad = { kind: 'Probe', name: 'around', spec: { nodeSelector: {}, file: { path: '/a', matches: '(' } } };
    const refused = (await applied(bad)).message.replace(/^.*denied the request: /, '');
    await uninstall();
    expect((await applied(bad)).code).toBe(201);
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
