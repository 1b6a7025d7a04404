import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from '#libs/testing';
import type { CommandOutput } from './fleet.js';
import { isAlive, LocalInstallation } from './local-installation.js';
import { file, manifest } from './manifests.js';

interface ChangeJson {
  readonly change: string;
  readonly outcome: string;
  readonly because: string;
}
interface ListedNode {
  readonly node: string;
  readonly change: string;
}

const PROCESSES = ['appliers', 'merger+validator+inventory+drain', 'nats-server', 'scheduler'];
const NODES = ['node-01', 'node-02', 'node-03', 'node-04'];

const here = new LocalInstallation();
/** Requests of a probe. They are answered when the test allows it. */
const waiting: ServerResponse[] = [];
let answers = true;
const service = createServer((_request, response) => (answers ? response.end() : waiting.push(response)));
const letAnswer = (): void => {
  answers = true;
  for (const response of waiting.splice(0)) response.end();
};

beforeAll(async () => {
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  await here.up('--nodes', '4');
});
afterAll(async () => {
  letAnswer();
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
  await here.close();
});

const motd = (content: string): string => here.write('motd.json', file('motd', content));

describe('exit codes', () => {
  test('apply --wait ends with 0 when the change is committed, and prints only its id', async () => {
    const probe = manifest('Probe', 'polite', {
      nodeSelector: {},
      file: { path: '/etc/motd.conf', matches: '^hello' },
      retries: 0,
    });
    expect(
      await here.run(
        'apply',
        '-f',
        here.write('first.json', file('motd', 'hello {{ node.name }}\n'), probe),
        '--wait',
        '-m',
        'greet',
      ),
    ).toMatchObject({ code: 0, stdout: 'c1\n' });
    expect(NODES.map((node) => here.file(node, '/etc/motd.conf'))).toEqual(NODES.map((node) => `hello ${node}\n`));
  });

  test('3 for what is refused before it is published', async () => {
    const { code, stdout, stderr } = await here.run(
      'apply',
      '-f',
      here.write('bad.json', { ...file('motd', 'x'), kind: 'Fiel' }),
    );
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toMatch(/Fiel\/motd.*kind.*unknown kind/s);
    expect(await here.json<ListedNode[]>('get', 'changes')).toHaveLength(1);
  });

  test('3 for what the services reject', async () => {
    const { code, stderr } = await here.run('apply', '-f', motd('{{ node.labels.colour }}'), '--wait');
    expect(code).toBe(3);
    expect(stderr).toMatch(/File\/motd.*spec\.content.*no such label/s);
    expect((await here.run('plan', '-f', motd('{{ node.labels.colour }}'))).code).toBe(3);
  });

  test('4 for a change that is rolled back, and 3 when it is published again', async () => {
    const { code, stderr } = await here.run('apply', '-f', motd('go away\n'), '--wait');
    expect(code).toBe(4);
    expect(stderr).toMatch(/node-01 invalid: the probe polite passed before and fails now/);
    expect(NODES.map((node) => here.file(node, '/etc/motd.conf'))).toEqual(NODES.map((node) => `hello ${node}\n`));
    expect((await here.run('apply', '-f', motd('go away\n'), '--wait')).code).toBe(3);
  });

  test('5 for a change that has not ended in time or is paused, which continues without the command', async () => {
    const { port } = service.address() as AddressInfo;
    const probe = manifest('Probe', 'slow', {
      nodeSelector: {},
      http: { url: `http://127.0.0.1:${port}/` },
      timeout: '60s',
      retries: 0,
    });
    answers = false;
    const { code, stdout, stderr } = await here.run('apply', '-f', here.write('slow.json', probe), '--wait=5s');
    expect(code).toBe(5);
    // A slow machine may still be reviewing it.
    expect(stderr).toMatch(/is still \S.* after 5s and continues in the background/);
    const change = stdout.trim();
    await until(() => waiting.length > 0, 'a node runs the probe');
    expect(await here.run('pause', change, '--reason', 'lunch')).toMatchObject({ code: 0 });
    const following = here.run('status', change, '-w');
    letAnswer();
    await until(
      async () => (await here.json<{ rollout: { applied: number } }>('status', change)).rollout.applied === 1,
      'what had begun is finished',
    );
    expect(await here.json('status', change)).toMatchObject({ change, state: 'paused', ended: false });
    expect(await here.run('resume', change)).toMatchObject({ code: 0 });
    expect((await following).code).toBe(0);
    expect(await here.json('status', change)).toMatchObject({ change, state: 'committed', ended: true });
  });

  test('6 for a missing server, and 2 for invalid arguments', async () => {
    expect(await here.run('get', 'nodes', '--server', 'nats://127.0.0.1:1')).toMatchObject({ code: 6, stdout: '' });
    for (const args of [
      ['get', 'colours'],
      ['apply'],
      ['apply', '-f', '/nowhere.yaml'],
      ['apply', '-f', motd('hello\n'), '--max-unavailable', '0%'],
      ['pause', 'seven'],
      ['nonsense'],
      ['clear', 'f'.repeat(64)],
    ]) {
      expect([args, (await here.run(...args)).code]).toEqual([args, 2]);
    }
  });
});

describe('-o json', () => {
  test('apply, delete and retry print the change and how it ended', async () => {
    const applied = await here.json<ChangeJson>(
      'apply',
      '-f',
      here.write('extra.json', file('extra', 'extra\n')),
      '--wait',
    );
    expect(applied).toMatchObject({
      outcome: 'committed',
      because: 'ended',
      reasons: [],
      warnings: [],
      rollout: { applied: 4, failed: 0, pending: 0 },
    });
    const again = await here.run('retry', applied.change);
    expect([again.code, again.stderr]).toEqual([
      1,
      expect.stringContaining(`${applied.change} was committed: `) as string,
    ]);
    const needsLabel = here.write('incompatible.json', file('needs-label', '{{ node.labels.nobody-has-it }}'));
    const rejected = await here.json<ChangeJson>('apply', '-f', needsLabel, '--wait');
    const retried = await here.json<ChangeJson>('retry', rejected.change, '--wait');
    expect([rejected, retried]).toMatchObject([{ outcome: 'rejected' }, { outcome: 'rejected' }]);
    expect(await here.json('get', 'changes', retried.change)).toMatchObject({
      change: retried.change,
      retryOf: rejected.change,
    });
    expect(await here.json('delete', 'File', 'extra', '--wait')).toMatchObject({ outcome: 'committed' });
    expect(NODES.map((node) => here.file(node, '/etc/extra.conf'))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(await here.json('delete', 'File', 'nowhere', '--wait')).toMatchObject({
      outcome: 'committed',
      warnings: [{ fragment: 'File/nowhere' }],
    });
    expect(await here.json('apply', '-f', motd('hello there\n'))).toEqual({
      change: expect.stringMatching(/^c\d+$/) as string,
    });
  });

  test('rollback restores the state before a change, deletions included', async () => {
    const write = (name: string, content: string): string => here.write(`${name}.json`, file(name, content));
    const files = (): readonly (string | undefined)[] =>
      ['kept', 'made'].map((name) => here.file('node-01', `/etc/${name}.conf`));
    const committed = async (...args: readonly string[]): Promise<string> => {
      const end = await here.json<ChangeJson & { readonly outcome: string }>(...args, '--wait');
      expect(end.outcome).toBe('committed');
      return end.change;
    };
    const first = await committed('apply', '-f', write('kept', '1'));
    const second = await committed('apply', '-f', write('kept', '2'), '-f', write('made', '2'));
    const refused = await here.run('rollback', first);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining(`(File/kept by ${second}): run sluice apply`) as string,
    ]);
    const third = await committed('rollback', second);
    expect(files()).toEqual(['1', undefined]);
    expect(await here.json('get', 'changes', third)).toMatchObject({ rollbackOf: second, source: 'cli' });
    const deleted = await committed('delete', 'File', 'kept');
    expect(files()).toEqual([undefined, undefined]);
    await committed('rollback', deleted);
    expect(files()).toEqual(['1', undefined]);
    await committed('delete', 'File', 'kept');
  });

  test('plan says per node what would change, and changes nothing', async () => {
    const before = await here.json<ListedNode[]>('get', 'changes');
    const plan = await here.json('plan', '-f', here.write('planned.json', file('planned', 'planned\n', 'edge')));
    expect(plan).toMatchObject({ rejected: [], warnings: [], touched: 2, pools: { default: { nodes: 2, budget: 1 } } });
    expect((plan as { readonly nodes: readonly object[] }).nodes).toEqual(
      ['node-01', 'node-02'].map((node) => ({
        node,
        pool: 'default',
        from: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
        to: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
        actions: [{ kind: 'none' }],
        changed: ['/etc/planned.conf'],
      })),
    );
    expect(await here.json('plan', '-f', here.write('bad.json', { ...file('motd', 'x'), kind: 'Fiel' }))).toMatchObject(
      { rejected: [{ fragment: 'Fiel/motd', field: 'kind', code: 'unknown-kind' }], nodes: [] },
    );
    expect(await here.json<ListedNode[]>('get', 'changes')).toHaveLength(before.length);
  });

  test('plan and apply warn of what exists on a node already, which --strict rejects', async () => {
    here.put('node-02', '/etc/planned.conf', 'mine');
    const over = here.write('over.json', file('planned', 'planned\n', 'edge'));
    const below = here.write(
      'below.json',
      manifest('File', 'below', { nodeSelector: {}, path: '/etc/planned.conf/below', content: 'x' }),
    );
    const warning = /File\/planned.*\/etc\/planned.conf exists already: a file of 4 bytes .*\(node-02\)/;
    const drop = () => here.run('delete', 'File', 'planned', '--wait');
    // A busy node may take longer to answer than a command waits, and then its paths were not checked.
    const checked = (args: readonly string[], undo?: () => Promise<unknown>): Promise<CommandOutput> =>
      until(
        async () => {
          const ran = await here.run(...args);
          if (!/could not be checked/.test(ran.stdout + ran.stderr)) return ran;
          await undo?.();
          return undefined;
        },
        `${args.join(' ')} checks the paths`,
      );
    expect(await checked(['plan', '-f', over])).toMatchObject({ code: 0, stdout: expect.stringMatching(warning) });
    expect((await checked(['plan', '-f', over, '--strict'])).code).toBe(3);
    expect(await checked(['apply', '-f', over, '--strict', '--wait'], drop)).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringMatching(warning),
    });
    expect(here.file('node-02', '/etc/planned.conf')).toBe('mine');
    expect((await checked(['plan', '-f', below])).stdout).toMatch(
      /\/etc\/planned.conf\/below cannot be used: \/etc\/planned.conf is not a directory/,
    );
    expect(await checked(['apply', '-f', over, '--wait'], drop)).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(warning),
    });
    expect((await checked(['plan', '-f', over])).stdout).not.toMatch(/exists already/);
    expect((await drop()).code).toBe(0);
    expect(here.file('node-02', '/etc/planned.conf')).toBe('mine');
  });

  test('--strict publishes nothing that the review would reject, and says why, also without --wait', async () => {
    const before = await here.json<unknown[]>('get', 'changes');
    const nobody = here.write('nobody.json', file('nobody', 'x', 'no-such-role'));
    for (const [args, code] of [
      [['delete', 'File', 'nowhere'], 'it cannot be deleted: it does not exist'],
      [['apply', '-f', nobody], 'File/nobody'],
    ] as const)
      expect(await here.run(...args, '--strict')).toMatchObject({
        code: 3,
        stdout: '',
        stderr: expect.stringContaining(code),
      });
    expect(await here.json('get', 'changes')).toHaveLength(before.length);
  });

  test('status, get, why, diff and events', async () => {
    expect(await here.json('status')).toMatchObject({
      nodes: { total: 4, silent: 0, silentNodes: [] },
      pools: [{ pool: 'default', members: 4 }],
      changes: expect.any(Array) as unknown[],
    });
    expect((await here.json<ListedNode[]>('get', 'nodes')).map(({ node }) => node)).toEqual(NODES);
    expect(await here.json('get', 'nodes', 'node-03')).toMatchObject({
      node: 'node-03',
      state: 'ready',
      labels: { role: 'worker', zone: 'c' },
    });
    expect(await here.json('get', 'fragments', 'File/motd')).toMatchObject({
      fragment: { kind: 'File', name: 'motd', spec: { path: '/etc/motd.conf' } },
    });
    expect((await here.json<ListedNode[]>('get', 'leases')).map(({ node }) => node)).toEqual(NODES);
    expect(await here.json<unknown[]>('get', 'pools')).toMatchObject([
      { pool: 'default', maxUnavailable: '1', budget: 1 },
    ]);
    expect((await here.json<unknown[]>('get', 'known-bad')).length).toBeGreaterThan(0);
    await until(
      async () => (await here.json<{ because: string }>('why', 'node-01')).because === 'up-to-date',
      'node-01 is up to date',
    );
    expect(await here.json('why', 'node-01')).toMatchObject({ node: 'node-01', because: 'up-to-date', holders: [] });
    expect(await here.json('why', 'c1')).toMatchObject({ change: 'c1' });
    const same = await here.json<{ readonly from: string; readonly to: string }>('diff', 'node-01');
    expect(same.from).toBe(same.to);
    const { stdout } = await here.run(
      'events',
      '--since',
      '1h',
      '--subject',
      'config.*.c1',
      '--no-follow',
      '-o',
      'json',
    );
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { readonly stream: string; readonly subject: string; readonly body: unknown });
    expect(events.map(({ subject }) => subject)).toEqual([
      'config.accepted.c1',
      'config.rendered.c1',
      'config.validated.c1',
      'config.committed.c1',
    ]);
    expect(events[0]).toMatchObject({
      stream: 'LEDGER',
      sequence: expect.any(Number) as number,
      body: { v: 1, change: 'c1', message: 'greet', author: 'somebody', source: 'cli' },
    });
  });

  test('doctor reports no problems', async () => {
    // A busy service may answer later than doctor waits.
    const answer = await until(async () => {
      const ran = await here.run('doctor', '-o', 'json');
      return ran.code === 0 ? ran : undefined;
    }, 'doctor finds no problems');
    expect(JSON.parse(answer.stdout)).toMatchObject({ ok: true });
  });
});

describe('sluice up', () => {
  test('writes the address of its server and its processes to up.json', () => {
    const { server, pid, pids } = here.upJson;
    expect(server).toBe(here.env['NATS_URL']);
    expect(Object.keys(pids).sort()).toEqual(PROCESSES);
    expect([pid, ...Object.values(pids)].filter((one) => !isAlive(one))).toEqual([]);
  });

  test('is refused a second time in the same folder', async () => {
    const { code, stdout, stderr } = await here.run('up', '--data', here.data, '--port', '0');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(`is in use by another sluice up (pid ${here.upJson.pid})`);
    expect(isAlive(here.upJson.pid)).toBe(true);
  });

  test.each(PROCESSES)('restarts %s after a kill, and updates up.json', async (name) => {
    const before = here.upJson;
    process.kill(before.pids[name] as number, 'SIGKILL');
    await until(
      () => here.upJson.pids[name] !== undefined && here.upJson.pids[name] !== before.pids[name],
      `${name} runs again`,
    );
    expect(here.upJson).toEqual({ ...before, pids: { ...before.pids, [name]: here.upJson.pids[name] } });
    // Everything works again, no matter what had to reconnect.
    const { code } = await until(async () => {
      const ran = await here.run('apply', '-f', motd(`hello after ${name}\n`), '--wait=5m');
      return ran.code === 6 ? undefined : ran;
    }, 'the server is there');
    expect(code).toBe(0);
    expect(NODES.map((node) => here.file(node, '/etc/motd.conf'))).toEqual(NODES.map(() => `hello after ${name}\n`));
  });

  test('ends everything after Ctrl-C, and finds its data again', async () => {
    const { pid, pids } = here.upJson;
    expect(await here.interrupt()).toBe(0);
    expect([pid, ...Object.values(pids)].filter(isAlive)).toEqual([]);
    expect(here.hasUpJson).toBe(false);
    await here.up();
    expect((await here.json<ListedNode[]>('get', 'nodes')).map(({ node }) => node)).toEqual(NODES);
    expect(await here.json('status', 'c1')).toMatchObject({ state: 'committed' });
    expect(await here.run('apply', '-f', motd('hello again\n'), '--wait')).toMatchObject({ code: 0 });
    expect(NODES.map((node) => here.file(node, '/etc/motd.conf'))).toEqual(NODES.map(() => 'hello again\n'));
  });
});
