import { join } from 'node:path';
import { until } from '#libs/testing';
import { fleetFixture, run } from './fleet.js';
import { file, manifest, selecting } from './manifests.js';
import { NatsCli } from './nats-cli.js';
import { describeWith, testWith } from './needs.js';

describeWith(['nats'], 'the real nats command line', () => {
  const stage = fleetFixture({ sizes: [4, 2, 4], env: { SLUICE_DRAIN: 'external' } });
  let nats: NatsCli;
  beforeAll(async () => {
    nats = await NatsCli.of(stage.fleet);
  });
  afterAll(() => nats.close());
  afterEach(() => expect(stage.fleet.witness.exceeded).toEqual([]));

  /** Publishes a change. Returns its id, which is in the acknowledgement. */
  const publish = async (body: object): Promise<string> => {
    const { code, stderr, stdout } = await nats.run('pub', '--jetstream', 'config.desired.me', JSON.stringify(body));
    expect(code).toBe(0);
    return `c${/Sequence: (\d+)/.exec(stderr + stdout)?.[1]}`;
  };

  test('pub of a bare manifest is a change, and sub receives its commit', async () => {
    const { fleet } = stage;
    const subscription = await nats.follow(nats.path, ['sub', 'config.committed.*']);
    const change = await publish(file('motd', 'hello\n'));
    await until(() => subscription.lines.some((line) => line.startsWith('{')), 'the fact is received');
    expect(subscription.lines[0]).toMatch(`Received on "config.committed.${change}"`);
    expect(JSON.parse(subscription.lines.find((line) => line.startsWith('{')) as string)).toMatchObject({
      v: 1,
      change,
      generation: 2,
    });
    expect(fleet.files()).toEqual(fleet.filesWith(() => ({ '/etc/motd.conf': 'hello\n' })));
  });

  /** Publishes as a source with headers. Returns the id of the change. */
  const publishAs = async (source: string, body: object, ...headers: readonly string[]): Promise<string> => {
    const flags = headers.flatMap((header) => ['-H', header]);
    const { stderr, stdout } = await nats.run(
      'pub',
      '--jetstream',
      ...flags,
      `config.desired.${source}`,
      JSON.stringify(body),
    );
    return `c${/Sequence: (\d+)/.exec(stderr + stdout)?.[1]}`;
  };

  test('a Sluice-Id makes a second pub harmless', async () => {
    const { fleet } = stage;
    const body = { apply: [file('once', 'once\n', 'core')] };
    const first = await publishAs('me', body, 'Sluice-Id:build-42');
    const second = await publishAs('me', body, 'Sluice-Id:build-42');
    expect(await fleet.client.get('changes', (await fleet.ended(second)).change)).toMatchObject({ change: first });
    expect(await fleet.ended(first)).toMatchObject({ phase: 'committed', nodes: 2 });
    expect(await fleet.when('changes', second, ({ phase }) => phase === 'ended')).toMatchObject({
      outcome: 'duplicate',
      duplicateOf: first,
      source: 'me',
    });
    const { code, stdout } = await fleet.cli('status', second, '-w');
    expect([code, stdout]).toEqual([0, expect.stringContaining('committed')]);
  });

  test.each(['Sluice-Id', 'Nats-Msg-Id'])(
    'a guessed %s does not swallow a change of another source',
    async (header) => {
      const { fleet } = stage;
      const guess = await publishAs('mallory', { apply: [{ kind: 'Nothing' }] }, `${header}:ci:build-42`);
      expect(await fleet.ended(guess)).toMatchObject({ phase: 'rejected', source: 'mallory' });
      const body = { apply: [file('guessed', `${header}\n`, 'core')] };
      // For 100 ms the server itself answers a second Nats-Msg-Id with the first message, and this cannot be disabled.
      const change = await until(async () => {
        const published = await publishAs('me', body, `${header}:ci:build-42`);
        return published === guess ? undefined : published;
      }, 'the server takes the id again');
      expect(await fleet.ended(change)).toMatchObject({ change, phase: 'committed', nodes: 2 });
    },
  );

  test('a fragment belongs to the source that created it, until another takes it over', async () => {
    const { fleet } = stage;
    const motd = { apply: [file('motd', 'hello from other\n')] };
    expect(await fleet.ended(await publishAs('other', motd))).toMatchObject({
      phase: 'rejected',
      reasons: [{ fragment: 'File/motd', code: 'owned-by' }],
    });
    const deletion = { delete: [{ kind: 'File', name: 'guessed' }] };
    expect(await fleet.ended(await publishAs('other', deletion))).toMatchObject({ reasons: [{ code: 'owned-by' }] });
    const taken = await fleet.ended(await publishAs('other', { ...deletion, takeOver: true }));
    expect(taken).toMatchObject({ phase: 'committed', nodes: 2 });
    const { stdout } = await fleet.cli('get', 'fragments');
    expect(stdout).toMatch(/^File +motd +c\d+ +me/m);
    for (const node of fleet.nodesOf('core'))
      expect(fleet.folders.files(node)).toEqual({ '/etc/motd.conf': 'hello\n', '/etc/once.conf': 'once\n' });
  });

  test('kv shows known-bad configs, and every bucket', async () => {
    const { fleet } = stage;
    const probe = manifest('Probe', 'quiet', {
      nodeSelector: selecting('edge'),
      file: { path: '/etc/loud.conf', absent: true },
      retries: 0,
    });
    expect(await fleet.ended(await publish({ apply: [probe] }))).toMatchObject({ phase: 'committed' });
    const bad = await publish({ apply: [file('loud', 'LOUD\n', 'edge')] });
    expect(await fleet.ended(bad)).toMatchObject({ phase: 'ended', outcome: 'reverted' });
    const keysShown = async (): Promise<readonly string[]> =>
      (await nats.run('kv', 'ls', 'known-bad')).stdout.split('\n').flatMap((line) => line.trim() || []);
    // The validator shows them, and the merger shows how the change ended.
    const keys = await until(async () => {
      const shown = await keysShown();
      return shown.length === 2 ? shown : undefined;
    }, 'the config and its recipe are known-bad');
    expect(keys.map((key) => key.replace(/[0-9a-f]{64}$/, '…')).sort()).toEqual(['config.…', 'recipe.…']);
    const config = keys.find((key) => key.startsWith('config.')) as string;
    expect(JSON.parse((await nats.run('kv', 'get', '--raw', 'known-bad', config)).stdout)).toMatchObject({
      hash: config.slice('config.'.length),
      change: bad,
      gone: false,
    });
    expect((await nats.run('kv', 'get', 'known-bad', `config.${'0'.repeat(64)}`)).code).toBe(1);
    const { stdout } = await nats.run('kv', 'ls', '--names');
    expect(stdout.split('\n')).toEqual(
      expect.arrayContaining([
        'nodes',
        'pools',
        'leases',
        'drains',
        'changes',
        'reviews',
        'rollouts',
        'status',
        'known-bad',
      ]),
    );
  });

  test('stream info shows the ledger', async () => {
    const { stdout } = await nats.run('stream', 'info', 'LEDGER', '--json');
    expect(JSON.parse(stdout)).toMatchObject({
      config: { name: 'LEDGER', storage: 'file', deny_delete: true, allow_atomic: true },
    });
    for (const [name, options] of [
      ['CHANGES', { deny_purge: false, discard: 'new', max_bytes: 268_435_456 }],
      ['REPORTS', { deny_purge: true }],
    ] as const) {
      const info = JSON.parse((await nats.run('stream', 'info', name, '--json')).stdout) as object;
      expect(info).toMatchObject({ config: { name, storage: 'file', deny_delete: true, ...options } });
    }
  });

  test('micro ls and micro info show every service', async () => {
    const services = async (): Promise<readonly string[]> => {
      const { stdout } = await nats.run('micro', 'ls', '--json');
      return (JSON.parse(stdout) as readonly { readonly name: string }[]).map(({ name }) => name).sort();
    };
    // The CLI waits only a moment for answers, and a busy service may answer later.
    const all = ['drain', 'inventory', 'merger', 'scheduler', 'validator'];
    await until(async () => (await services()).join() === all.join(), `micro ls lists ${all.join(', ')}`);
    const { stdout } = await nats.run('micro', 'info', 'scheduler');
    for (const subject of [
      'ops.rollout.list',
      'ops.rollout.get',
      'ops.rollout.pause',
      'ops.rollout.resume',
      'ops.rollout.abort',
      'ops.node.why',
      'ops.node.skip',
      'ops.pool.list',
      'ops.pool.get',
    ])
      expect(stdout).toMatch(`Subject: ${subject}\n`);
  });

  test('req sends requests to the services', async () => {
    const [edge = ''] = stage.fleet.nodesOf('edge');
    expect(await nats.ask('ops.rollout.get', '{"change":"c2"}')).toMatchObject({
      change: 'c2',
      phase: 'succeeded',
      applied: 10,
      pending: 0,
    });
    expect(await nats.ask('ops.node.why', JSON.stringify({ node: edge }))).toMatchObject({
      node: edge,
      because: 'up-to-date',
      pool: 'edge',
    });
    expect(await nats.ask('ops.pool.get', '{"pool":"edge"}')).toMatchObject({ pool: 'edge', budget: 2, members: 4 });
    expect(await nats.ask('ops.node.list', '{"limit":3}')).toMatchObject({
      nodes: [{}, {}, {}],
      next: expect.any(String) as string,
    });
    expect(await nats.ask('ops.pool.list', '')).toMatchObject({ pools: expect.any(Array) as unknown[] });
  });

  test.each([
    ['not JSON', 'ops.rollout.get', '{"change"', 'bad-request', /not JSON/],
    [
      'an unknown field',
      'ops.rollout.get',
      '{"change":"c1","colour":"red"}',
      'bad-request',
      /^colour: unknown field; known fields: change, cursor, limit/,
    ],
    ['a wrong type', 'ops.rollout.get', '{"change":7}', 'bad-request', /^change: /],
    ['an unknown change', 'ops.rollout.get', '{"change":"c999"}', 'not-found', /c999/],
    ['a pause of a change that has ended', 'ops.rollout.pause', '{"change":"c2"}', 'conflict', /c2/],
    ['an unknown node', 'ops.node.why', '{"node":"nowhere"}', 'not-found', /nowhere/],
    ['a retry of an unknown change', 'ops.config.retry', '{"change":"c999"}', 'not-found', /c999/],
    ['a clearing without a reason', 'ops.known-bad.clear', `{"hash":"${'0'.repeat(64)}"}`, 'bad-request', /^reason/],
    ['a drain that was not requested', 'ops.node.drained', '{"node":"nowhere"}', 'not-found', /nowhere/],
  ])('req with %s is refused in JSON', async (_what, subject, body, code, message) => {
    expect(await nats.ask(subject, body)).toEqual({
      error: { code, message: expect.stringMatching(message) as string },
    });
  });

  test('a drainer as a shell script drains nodes, and no node changes before that', async () => {
    const { fleet } = stage;
    const policy = manifest('DisruptionPolicy', 'kernel', {
      nodeSelector: selecting('edge'),
      files: [{ path: '/etc/kernel.conf', actions: [{ kind: 'drain' }] }],
    });
    expect(await fleet.ended(await publish(policy))).toMatchObject({ phase: 'committed', nodes: 0 });
    const change = await publish(file('kernel', 'quiet\n', 'edge'));
    await until(
      async () =>
        [...(await fleet.client.list('leases')).values()].filter(
          (lease) => lease.change === change && lease.phase === 'draining',
        ).length === 2,
      'two nodes are to be drained',
    );
    expect(fleet.files()).toEqual(
      fleet.filesWith((node) => ({
        '/etc/motd.conf': 'hello\n',
        ...(node.startsWith('core') ? { '/etc/once.conf': 'once\n' } : {}),
      })),
    );

    // These two were granted before the drainer listened: a person answers for them.
    const waiting = [...(await fleet.client.list('drains')).values()].filter(({ state }) => state === 'draining');
    const drainer = await nats.follow('sh', [join(__dirname, 'drainer.sh'), nats.path]);
    for (const { node, lease } of waiting)
      expect(await nats.ask('ops.node.drained', JSON.stringify({ node, lease, by: 'me' }))).toEqual({ node, lease });
    expect(await fleet.ended(change)).toMatchObject({ phase: 'committed', nodes: 4 });
    for (const node of fleet.nodesOf('edge'))
      expect(fleet.folders.files(node)).toEqual({ '/etc/motd.conf': 'hello\n', '/etc/kernel.conf': 'quiet\n' });
    const drained = (await fleet.events('node.drained.*')).map(
      ({ body }) => body as { readonly node: string; readonly by: string; readonly evicted: number },
    );
    expect(drained.map(({ by, evicted }) => `${by} ${evicted}`).sort()).toEqual([
      'drainer.sh 3',
      'drainer.sh 3',
      'me 0',
      'me 0',
    ]);
    expect(drained.map(({ node }) => node).sort()).toEqual([...fleet.nodesOf('edge')]);
    await until(() => drainer.lines.length === 2, 'the drainer was answered');
    for (const node of fleet.nodesOf('edge')) await fleet.when('leases', node, ({ phase }) => phase === 'released');
    const phases = (await fleet.events(`node.lease.*.edge.${fleet.nodesOf('edge')[3]?.replace('.', '_')}`))
      .map(({ subject }) => subject.split('.')[2])
      .slice(-5);
    expect(phases).toEqual(['granted', 'applying', 'settled', 'uncordoning', 'released']);
  });

  testWith(['python3'], 'a config in its bucket has the hash in its key, as a Python program finds it', async () => {
    const { fleet } = stage;
    const odd = {
      '\u20ac': 'euro',
      '\r': 'return',
      '\ufb33': 'dalet',
      '1': 'one',
      '\u{1f600}': 'smile',
      '\u0080': 'control',
      '\u00f6': 'o',
    };
    const content = `quotes " and \\, tabs\t, bells \u0007, ${JSON.stringify(odd)} for {{ node.name }} \u2028 ends`;
    const probe = manifest('Probe', 'numbers', {
      nodeSelector: {},
      file: { path: '/etc/odd.conf', matches: 'quotes' },
      timeout: '5s',
      retries: 0,
    });
    expect(await fleet.ended(await fleet.apply(file('odd', content), probe))).toMatchObject({ phase: 'committed' });
    const hashes: string[] = [];
    for (const node of fleet.nodes) {
      const { desired } = await fleet.when('status', node, ({ hash, desired: wanted }) => hash === wanted);
      const { stdout } = await nats.run('kv', 'get', '--raw', 'configs', `${node.replace('.', '_')}.${desired}`);
      expect(JSON.parse(stdout)).toMatchObject({
        fragments: expect.arrayContaining([
          {
            kind: 'File',
            name: 'odd',
            spec: { path: '/etc/odd.conf', content: content.replace('{{ node.name }}', node) },
          },
        ]) as unknown,
      });
      expect(await run('python3', [join(__dirname, 'canonical.py')], { input: stdout })).toEqual({
        code: 0,
        stdout: `${desired}\n`,
        stderr: '',
      });
      hashes.push(desired);
    }
    expect(new Set(hashes).size).toBe(fleet.nodes.length);
  });

  testWith(['python3'], 'that Python program gives the RFC its own example', async () => {
    const example = String.raw`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`;
    const { stdout } = await run('python3', [join(__dirname, 'canonical.py'), '--show'], { input: example });
    expect(stdout).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });
});
