import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectFleet } from '#libs/client';
import { connectTarget } from '#libs/nats';
import { CONNECTION_SETTINGS, findNatsServer, type ConnectFlags, type ConnectionKey } from '#libs/process';
import { startNatsServer, until } from '#libs/testing';
import { testOperator } from '../../libs/nats/src/connecting/operator.fixture.js';
import { startSecured, WAYS, type SecuredServer } from '../../libs/nats/src/connecting/secured-server.fixture.js';
import { run, type CommandOutput } from './fleet.js';
import { Processes, SLUICE } from './processes.js';

/** How a person configures a connection. */
interface ConnectionConfig {
  readonly flags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const byFlags = (server: string, flags: ConnectFlags): ConnectionConfig => ({
  env: {},
  flags: [
    ...['--server', server],
    ...Object.entries(flags).flatMap(([key, value]) => {
      const [flag = ''] = CONNECTION_SETTINGS[key as ConnectionKey].flag.split(' ');
      return value === true ? [flag] : [flag, String(value)];
    }),
  ],
});

const byEnvironment = (server: string, flags: ConnectFlags): ConnectionConfig => ({
  flags: [],
  env: {
    NATS_URL: server,
    ...Object.fromEntries(
      Object.entries(flags).map(([key, value]) => [CONNECTION_SETTINGS[key as ConnectionKey].variable, String(value)]),
    ),
  },
});

const FIELDS: Readonly<Record<string, string>> = {
  ...{ tlsCa: 'ca', tlsCert: 'cert', tlsKey: 'key', tlsFirst: 'tls_first', inboxPrefix: 'inbox_prefix' },
};

describe('connecting to a secured NATS server', () => {
  let folder: string;
  let processes: Processes;
  let env: NodeJS.ProcessEnv;
  let outputs: string[] = [];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-connecting-'));
    mkdirSync(join(folder, 'nats', 'context'), { recursive: true });
    outputs = [];
    env = { PATH: process.env['PATH'], HOME: folder, XDG_CONFIG_HOME: folder, NO_COLOR: '1' };
    processes = new Processes(folder, env);
  });
  afterEach(async () => {
    // Their clean shutdown is tested elsewhere, and takes seconds.
    await Promise.all([...processes.pids.keys()].map((name) => processes.kill(name)));
    await processes.stopAll();
    rmSync(folder, { recursive: true });
  });

  function byContext(name: string, fields: object): ConnectionConfig {
    writeFileSync(join(folder, 'nats', 'context', `${name}.json`), JSON.stringify(fields));
    return { env: {}, flags: ['--context', name] };
  }

  const contextOf = (url: string, flags: ConnectFlags): object => ({
    url,
    ...Object.fromEntries(Object.entries(flags).map(([key, value]) => [FIELDS[key] ?? key, value])),
  });

  async function cli(config: ConnectionConfig, ...args: readonly string[]): Promise<CommandOutput> {
    const ran = await run(process.execPath, [SLUICE, ...config.flags, ...args], { env: { ...env, ...config.env } });
    outputs.push(ran.stdout, ran.stderr);
    return ran;
  }

  const startService = (name: string, config: ConnectionConfig): void =>
    processes.start(name, [...config.flags, 'service', 'merger', 'inventory'], { env: config.env });
  const startApplier = (node: string, config: ConnectionConfig): void => {
    mkdirSync(join(folder, `root-${node}`), { recursive: true });
    processes.start(
      node,
      [
        ...[
          'applier',
          '--node',
          node,
          '--root',
          join(folder, `root-${node}`),
          '--state',
          join(folder, `state-${node}`),
        ],
        ...config.flags,
      ],
      { env: config.env },
    );
  };

  const log = (name: string): string => readFileSync(join(folder, `${name}.log`), 'utf8');
  const logs = (): string =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.log'))
      .map((name) => readFileSync(join(folder, name), 'utf8'))
      .join('\n');

  /** Waits for the nodes, and lists them with each of these configurations. */
  async function expectNodes(
    server: SecuredServer,
    ways: readonly ConnectionConfig[],
    nodes: readonly string[],
  ): Promise<void> {
    // On a busy machine the server may give up waiting for the credentials.
    const fleet = await until(
      () => connectFleet(connectTarget({ server: server.url, ...server.right }, {})).catch(() => undefined),
      'a connection',
    );
    try {
      await until(
        async () => {
          const known = await fleet.list('nodes').catch(() => new Map());
          return nodes.every((node) => known.has(node));
        },
        `the nodes ${nodes.join(', ')}`,
      );
    } finally {
      await fleet.close();
    }
    for (const config of ways) {
      const { stdout } = await cli(config, 'get', 'nodes', '-o', 'json');
      for (const node of nodes) expect(stdout).toContain(`"${node}"`);
    }
  }

  function expectNoSecrets({ secrets }: Pick<SecuredServer, 'secrets'>): void {
    const output = [...outputs, logs()].join('\n');
    for (const secret of secrets) expect(output).not.toContain(secret);
  }

  test.each(Object.keys(WAYS))('%s: CLI, services and appliers, by flags, environment and context', async (way) => {
    const server = await startSecured(way, folder);
    try {
      const ways = {
        flags: byFlags(server.url, server.rightInFiles),
        env: byEnvironment(server.url, server.right),
        context: byContext('right', contextOf(server.url, server.right)),
      };
      for (const [name, config] of Object.entries(ways)) {
        startService(`service-${name}`, config);
        startApplier(`w-${name}`, config);
      }
      await expectNodes(server, Object.values(ways), ['w-flags', 'w-env', 'w-context']);
      // One copy is enough for the nodes, and the others may start later.
      const { stdout } = await until(async () => {
        const ran = await cli(ways.context, 'doctor');
        return /merger +3 copies/.test(ran.stdout) ? ran : undefined;
      }, 'doctor lists all copies');
      expect(stdout).toContain(server.url);

      const { code, stderr } = await cli(byFlags(server.url, server.wrong), 'status');
      expect({ code, stderr }).toEqual({ code: 6, stderr: expect.stringMatching(server.refusal) as string });
      expect(stderr).not.toContain('Is it running?');
      startService('wrong-service', byEnvironment(server.url, server.wrong));
      startApplier('wrong-node', byContext('wrong', contextOf(server.url, server.wrong)));
      await until(() => !processes.isRunning('wrong-service'), 'the service ends');
      expect(log('wrong-service')).toMatch(server.refusal);
      await until(() => server.refusal.test(log('wrong-node')), 'the applier says why it cannot connect');
      expect(processes.isRunning('wrong-node')).toBe(true);
      expectNoSecrets(server);
    } finally {
      await server.stop();
    }
  });

  test('tls:// never falls back to an unencrypted connection', async () => {
    const server = await startNatsServer();
    try {
      const url = server.url.replace('nats://', 'tls://');
      const refusal = /the server 127\.0\.0\.1:\d+ offers no TLS, and Sluice never falls back/;
      for (const config of [byFlags(url, {}), byEnvironment(url, {}), byContext('tls', { url })]) {
        const { code, stderr } = await cli(config, 'status');
        expect({ code, stderr }).toEqual({ code: 6, stderr: expect.stringMatching(refusal) as string });
      }
      startService('service', byEnvironment(url, {}));
      startApplier('w-1', byFlags(url, {}));
      await until(() => !processes.isRunning('service'), 'the service ends');
      expect(log('service')).toMatch(refusal);
      await until(() => refusal.test(log('w-1')), 'the applier says why it cannot connect');
    } finally {
      await server.stop();
    }
  });

  test('a user and password in the URL are used, and never printed', async () => {
    const server = await startSecured('user and password', folder);
    try {
      const withUser = (password: string): string => server.url.replace('://', `://ada:${password}@`);
      const right = byEnvironment(withUser('right-passw0rd'), {});
      startService('service', right);
      startApplier('w-1', right);
      await expectNodes(server, [right], ['w-1']);
      const doctor = await cli(byFlags(withUser('right-passw0rd'), {}), 'doctor');
      expect(doctor.stdout).toContain(`at ${server.url};`);
      const wrong = await cli(byContext('wrong', { url: withUser('wrong-passw0rd') }), 'doctor');
      expect(wrong.stderr).toMatch(server.refusal);
      await server.stop();
      const away = await cli(right, 'doctor');
      expect(away.stderr).toContain(`no nats-server answers at ${server.url}`);
      expectNoSecrets(server);
    } finally {
      await server.stop();
    }
  });

  test('a context with a user JWT works with its seed, and without one as a bearer', async () => {
    const operator = testOperator();
    const server = await startNatsServer({ config: operator.config });
    try {
      const [user, bearer] = [operator.user(), operator.user({ isBearer: true })];
      const contexts = [{ user_jwt: user.jwt, user_seed: user.seed }, { user_jwt: bearer.jwt }];
      for (const fields of contexts) {
        const { stdout } = await cli(byContext('jwt', { url: server.url, ...fields }), 'doctor');
        expect(stdout).toContain(`at ${server.url};`);
      }
      const { stderr } = await cli(byContext('jwt', { url: server.url, user_jwt: user.jwt }), 'doctor');
      expect(stderr).toContain('refused the credentials (the user JWT)');
    } finally {
      await server.stop();
    }
  });

  test("a local fleet ignores the user's settings for other servers", async () => {
    const config = byEnvironment('nats://ada:passw0rd@other:4222', { tlsCa: '/none', inboxPrefix: '_INBOX_ada' });
    const data = join(folder, 'up');
    processes.start('up', ['up', '--nodes', '1', '--port', '0', '--data', data], {
      env: { ...config.env, NATS_NKEY: '/none', SLUICE_NATS_SERVER: await findNatsServer() },
    });
    await until(() => log('up').includes('Press Ctrl-C'), 'the fleet runs');
    const [url = ''] = /^nats:\S+$/m.exec(log('up')) ?? [];
    await until(async () => (await cli(byFlags(url, {}), 'doctor')).code === 0, 'doctor finds no problems');
    expect(logs()).not.toContain('passw0rd');
  });
});
