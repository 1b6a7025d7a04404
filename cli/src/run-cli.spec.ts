import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { changeView, cli, rolloutView, type FakeFleet } from './fakes.fixture.js';

const MOTD = JSON.stringify({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'File',
  metadata: { name: 'motd' },
  spec: { nodeSelector: {}, path: '/etc/motd', content: 'hello\n' },
});
const APPLY = ['apply', '-f', '-'];
const apply = (fleet: FakeFleet, ...flags: string[]) => cli([...APPLY, ...flags], fleet, {}, MOTD);

describe('usage', () => {
  test.each([
    ['no command', []],
    ['an unknown command', ['fly']],
    ['an unknown flag', ['status', '--fast']],
    ['too many arguments', ['pause', 'c1', 'c2']],
    ['a missing argument', ['why']],
    ['-f missing', ['apply']],
    ['a file that is not there', ['apply', '-f', '/nowhere.yaml']],
    ['an empty input', APPLY],
    ['a bad duration', [...APPLY, '--wait=soon']],
    ['an invalid change id', ['pause', 'motd']],
    ['an invalid node name', ['skip', 'A_B']],
    ['an unknown resource', ['get', 'cars']],
    ['an unknown resource with the name of a method', ['get', 'constructor']],
    ['clear without a reason', ['clear', 'a'.repeat(64)]],
    ['clear with a hash that is too short', ['clear', 'abc', '--reason', 'ok']],
    ['delete with neither name nor file', ['delete']],
    ['delete with both', ['delete', 'File', 'motd', '-f', '-']],
    ['a service that does not exist', ['service', 'butcher']],
    ['an output that does not exist', ['status', '-o', 'xml']],
    ['yaml for a command that has no yaml output', ['status', '-o', 'yaml']],
    ['a context that does not exist', ['status', '--context', 'none']],
    ['a bad --since', ['events', '--since', 'yesterday']],
    ['two sources of nodes', ['up', '--nodes', '3', '--inventory', '/x.json']],
    ['a bad port', ['up', '--port', 'many']],
    ['a bad label', ['applier', '--node', 'n1', '--label', 'zone']],
  ])('%s ends with 2 and says why on stderr', async (_what, argv) => {
    const { exit, out, err } = await cli(argv, argv[0] === 'up' || argv[0] === 'status' ? undefined : {});
    expect([exit, out]).toEqual([2, '']);
    expect(err).not.toBe('');
  });

  test('--help shows no default that a reader cannot use', async () => {
    const pages = await Promise.all(['apply', 'up', 'import'].map((name) => cli([name, '--help'])));
    expect(pages.map(({ out }) => /\(default: (\[\]|false)\)/.exec(out)?.[0])).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('--help and --version are data, not failures', async () => {
    expect(await cli(['--help'])).toMatchObject({ exit: 0, err: '' });
    expect(await cli(['apply', '--help'])).toMatchObject({ exit: 0, err: '' });
    expect(await cli(['--version'])).toMatchObject({
      exit: 0,
      out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string,
    });
  });

  test('common flags may be before or after the command', async () => {
    const views = { changes: { c7: [changeView()] } };
    for (const argv of [
      ['-o', 'json', 'get', 'changes'],
      ['get', 'changes', '-o', 'json'],
    ]) {
      expect(JSON.parse((await cli(argv, { views })).out)).toMatchObject([{ change: 'c7' }]);
    }
  });
});

test('without a server it ends with 6, and names the address, its source, and what to do', async () => {
  const { exit, out, err } = await cli(['status', '--server', 'nats://127.0.0.1:1']);
  expect([exit, out]).toEqual([6, '']);
  expect(err).toMatch(/nats:\/\/127\.0\.0\.1:1.*\(address from --server\)\n.*sluice up/);
});

describe('apply', () => {
  test('publishes one change, with its author and a unique id, and prints only its id', async () => {
    const published: NonNullable<FakeFleet['published']> = [];
    const { exit, out, err } = await apply({ published }, '-m', 'Greet');
    expect([exit, out]).toEqual([0, 'c7\n']);
    expect(err).toBe('published; follow it with sluice status c7 -w\n');
    expect(published).toEqual([
      {
        source: 'cli',
        body: { apply: [JSON.parse(MOTD)], delete: [], message: 'Greet', author: 'ada' },
        id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      },
    ]);
  });

  test('reads the manifests of a folder in the order of their names, and nothing else', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-apply-'));
    for (const name of ['b.yaml', 'a.json', 'c.yml'])
      writeFileSync(join(folder, name), MOTD.replace('motd', name[0] as string));
    writeFileSync(join(folder, 'README.md'), '# not a manifest');
    const published: NonNullable<FakeFleet['published']> = [];
    await cli(['apply', '-f', folder], { published });
    expect(
      (published[0]?.body['apply'] as { metadata: { name: string } }[] | undefined)?.map(
        ({ metadata }) => metadata.name,
      ),
    ).toEqual(['a', 'b', 'c']);
    rmSync(folder, { recursive: true });
  });

  test('refuses bad input with every reason before anything is published', async () => {
    const published: NonNullable<FakeFleet['published']> = [];
    const two = `${MOTD.replace('"nodeSelector":{},', '').replace('/etc/motd', 'motd')}\n---\n{"kind": "Car"}`;
    const { exit, out, err } = await cli([...APPLY, '-o', 'json'], { published }, {}, two);
    expect([exit, published]).toEqual([3, []]);
    const codes = (JSON.parse(out) as { rejected: { code: string }[] }).rejected.map(({ code }) => code);
    expect(codes).toEqual(expect.arrayContaining(['required', 'bad-path', 'unknown-kind']));
    expect(err).toContain('File/motd spec.path');
  });

  test('refuses a fragment that appears twice, and names both places', async () => {
    expect(await cli(APPLY, {}, {}, `${MOTD}\n---\n${MOTD}`)).toMatchObject({
      exit: 3,
      err: expect.stringContaining('is defined at stdin:1 and again at stdin:3') as string,
    });
  });

  test('refuses more than 900 KiB before anything is published', async () => {
    const { exit, err } = await cli(APPLY, {}, {}, MOTD.replace('hello', 'x'.repeat(900 * 1_024)));
    expect([exit, err]).toEqual([3, expect.stringContaining('the limit is 900 KiB')]);
  });
});

describe('apply --wait ends with the status of the change', () => {
  const failed = rolloutView({
    phase: 'reverted',
    failed: 1,
    worst: [{ node: 'w-1', pool: 'w', state: 'invalid', reason: 'probe greets failed', since: '' }],
  });
  test.each([
    [
      'committed',
      0,
      [changeView(), changeView({ phase: 'committed' })],
      [rolloutView(), rolloutView({ phase: 'succeeded', applied: 6 })],
    ],
    ['committed without a rollout', 0, [changeView({ phase: 'committed', nodes: 0 })], []],
    [
      'rejected',
      3,
      [
        changeView({
          phase: 'rejected',
          reasons: [
            {
              fragment: 'File/motd',
              field: 'spec.path',
              code: 'conflict',
              message: 'is managed by File/other',
              nodes: [],
            },
          ],
        }),
      ],
      [],
    ],
    ['reverted', 4, [changeView({ phase: 'ended', outcome: 'reverted' })], [failed]],
    ['reverted, known only from the scheduler', 4, [changeView()], [failed]],
    [
      'superseded',
      4,
      [changeView({ phase: 'ended', outcome: 'superseded' })],
      [rolloutView({ phase: 'superseded', supersededBy: 'c8' })],
    ],
    ['paused', 5, [changeView()], [rolloutView({ paused: true })]],
    ['not finished in time', 5, [changeView()], [rolloutView()]],
  ])('%s: %i', async (_what, code, changes, rollouts) => {
    const { exit, out } = await apply(
      { views: { changes: { c7: changes }, rollouts: { c7: rollouts } } },
      code === 5 ? '--wait=300ms' : '--wait=5s',
    );
    expect([exit, out]).toEqual([code, 'c7\n']);
  });

  test('says which node failed and why', async () => {
    const { err } = await apply(
      { views: { changes: { c7: [changeView({ phase: 'ended', outcome: 'reverted' })] }, rollouts: { c7: [failed] } } },
      '--wait',
    );
    expect(err).toContain('w-1 invalid: probe greets failed');
  });

  test('prints one JSON value', async () => {
    const { exit, out, err } = await apply(
      { views: { changes: { c7: [changeView({ phase: 'committed' })] } } },
      '--wait',
      '-o',
      'json',
    );
    expect([exit, err]).toEqual([0, '']);
    expect(JSON.parse(out)).toMatchObject({ change: 'c7', outcome: 'committed', because: 'ended' });
  });
});

test('delete accepts --wait before its arguments too', async () => {
  const published: NonNullable<FakeFleet['published']> = [];
  const { exit } = await cli(['delete', '--wait', 'File', 'motd'], {
    published,
    views: { changes: { c7: [changeView({ phase: 'committed' })] } },
  });
  expect([exit, published[0]?.body['delete']]).toEqual([0, [{ kind: 'File', name: 'motd' }]]);
});

describe('plan', () => {
  const node = (name: string) => ({
    node: name,
    pool: 'w',
    from: 'a',
    to: 'b',
    actions: [{ kind: 'none' }],
    changed: ['/etc/motd'],
  });
  test('combines the pages of the answer into one value', async () => {
    const pages: Record<string, object> = {
      '': { rejected: [], nodes: [node('n1')], pools: {}, next: 'x' },
      x: { rejected: [], nodes: [node('n2')] },
    };
    const { exit, out } = await cli(
      ['plan', '-f', '-', '-o', 'json'],
      { answers: { 'ops.config.plan': ({ cursor }) => pages[String(cursor ?? '')] } },
      {},
      MOTD,
    );
    expect(exit).toBe(0);
    const plan = JSON.parse(out) as Record<string, unknown>;
    expect(plan).toMatchObject({ rejected: [], nodes: [{ node: 'n1' }, { node: 'n2' }] });
    expect(plan).not.toHaveProperty('next');
  });

  test('shows how many units of a pool are free, and which nodes keep the others', async () => {
    const held = (name: string, because: string, lease = '') => ({ node: name, because, lease });
    const shown = async (budget: number, ...unavailable: readonly object[]): Promise<string> => {
      const pools = { w: [{ pool: 'w', drift: 'repair', used: unavailable.length, unavailable }] };
      const answer = { rejected: [], nodes: [node('n1')], pools: { w: { nodes: 1, budget } } };
      const { out } = await cli(
        ['plan', '-f', '-'],
        { answers: { 'ops.config.plan': () => answer }, views: { pools } },
        {},
        MOTD,
      );
      return out;
    };
    const silent = held('n2', 'silent');
    expect(await shown(1, silent)).toMatch(/ 1, 0 now\n/);
    expect(await shown(1, silent)).toContain(
      '! n2 (silent) holds the only unit of pool w: no other node can change; bring the nodes back, or continue without one: sluice skip NODE, or sluice remove NODE if it is gone for good',
    );
    expect(await shown(3, silent, held('n3', 'unknown: it did not report', 'n3-l1'))).toContain(
      '! n2 (silent), n3 (unknown: it did not report) hold 2 of the 3 units of pool w: fewer nodes can change at once; bring the nodes back, or continue without one: sluice skip NODE, or sluice remove NODE if it is gone for good',
    );
    const busy = await shown(2, held('n4', 'applying', 'n4-l1'));
    expect(busy).toMatch(/ 2, 1 now\n/);
    expect(busy).not.toContain('!');
    expect(await shown(2)).toMatch(/ 2\n/);
  });

  test('ends with 3 if the plan is rejected', async () => {
    const rejected = [
      { fragment: 'File/motd', field: 'spec.path', code: 'conflict', message: 'is taken', nodes: ['n1'] },
    ];
    expect(
      await cli(['plan', '-f', '-'], { answers: { 'ops.config.plan': () => ({ rejected, nodes: [] }) } }, {}, MOTD),
    ).toEqual({ exit: 3, out: 'This change would be rejected:\n  ✖ File/motd spec.path: is taken (n1)\n', err: '' });
  });

  test('rejects bad input without a server', async () => {
    const { exit, out } = await cli(['plan', '-f', '-', '-o', 'json'], undefined, {}, '{"kind": "Car"}');
    expect(exit).toBe(3);
    expect(JSON.parse(out)).toMatchObject({
      nodes: [],
      rejected: expect.arrayContaining([expect.objectContaining({ code: 'unknown-kind' })]) as object,
    });
  });
});

test('a refusal by a service ends with 1 and its message', async () => {
  expect(await cli(['pause', 'c9'], {})).toEqual({
    exit: 1,
    out: '',
    err: 'error: nothing answers ops.rollout.pause\n',
  });
});

test('steering commands send the user, and print the answer for programs', async () => {
  const requests: object[] = [];
  const answers = { 'ops.rollout.pause': (body: object) => (requests.push(body), { change: 'c9', paused: true }) };
  expect(await cli(['pause', 'c9', '--reason', 'lunch', '-o', 'json'], { answers })).toEqual({
    exit: 0,
    out: '{"change":"c9","paused":true}\n',
    err: '',
  });
  expect(requests).toEqual([{ change: 'c9', reason: 'lunch', by: 'ada' }]);
});

test('status CHANGE -w exits with the status of the change, and prints a line for each step', async () => {
  const views = {
    changes: {
      c7: [
        changeView({ phase: 'accepted' }),
        changeView({
          phase: 'rejected',
          reasons: [{ fragment: 'File/a', field: '', code: 'x', message: 'no', nodes: [] }],
        }),
      ],
    },
  };
  expect(await cli(['status', 'c7', '-w'], { views })).toEqual({
    exit: 3,
    err: '',
    out: 'c7  accepted  about to be rendered\nc7  rejected  File/a: no\n',
  });
});

test('get NAME finds a fragment by name or Kind/name, and says if there is none', async () => {
  const views = {
    fragments: {
      'File.motd': [
        {
          ledger: 1,
          fragment: { kind: 'File', name: 'motd', labels: {}, spec: { path: '/etc/motd' } },
          change: 'c1',
          gone: false,
        },
      ],
    },
  };
  for (const name of ['motd', 'File/motd'])
    expect(JSON.parse((await cli(['get', 'fragments', name, '-o', 'json'], { views })).out)).toMatchObject({
      change: 'c1',
    });
  expect((await cli(['get', 'fragment', 'motd', '-o', 'yaml'], { views })).out).toBe(
    'apiVersion: sluice.dev/v1alpha1\nkind: File\nmetadata:\n  name: motd\nspec:\n  path: /etc/motd\n',
  );
  expect(await cli(['get', 'fragments', 'other'], { views })).toMatchObject({
    exit: 1,
    err: 'error: "other" not found in fragments: list them with sluice get fragments\n',
  });
});

test('events as JSON are one per line', async () => {
  const event = {
    stream: 'LEDGER',
    sequence: 3,
    subject: 'config.committed.c1',
    time: '2026-11-21T10:00:00.123Z',
    body: { v: 1, at: 'x', change: 'c1', generation: 1, digest: 'ab' },
  };
  expect((await cli(['events', '-o', 'json', '--no-follow'], { events: [event, event] })).out).toBe(
    `${JSON.stringify(event)}\n${JSON.stringify(event)}\n`,
  );
  expect((await cli(['events', '--no-follow'], { events: [event] })).out).toBe(
    '10:00:00.123 config.committed.c1  generation=1 digest=ab\n',
  );
});

test('actions plans offline, and ignores selectors', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-actions-'));
  const policy = {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'DisruptionPolicy',
    metadata: { name: 'p' },
    spec: {
      nodeSelector: { matchLabels: { role: 'edge' } },
      files: [{ path: '/etc', actions: [{ kind: 'reload', unit: 'a.service' }] }],
    },
  };
  writeFileSync(join(folder, 'from.json'), '');
  writeFileSync(join(folder, 'to.yaml'), `${MOTD}\n---\n${JSON.stringify(policy)}`);
  const { exit, out } = await cli([
    'actions',
    '--from',
    join(folder, 'from.json'),
    '--to',
    join(folder, 'to.yaml'),
    '-o',
    'json',
  ]);
  expect(exit).toBe(0);
  expect(JSON.parse(out)).toMatchObject({
    actions: [{ kind: 'reload', unit: 'a.service' }],
    because: [{ what: '/etc/motd', rule: expect.stringContaining('DisruptionPolicy/p') as string }],
  });
  rmSync(folder, { recursive: true });
});

test('get disruption-policy NODE shows each rule for the node, and its policies', async () => {
  const policy = (name: string, spec: object) => ({
    ledger: 1,
    fragment: {
      kind: 'DisruptionPolicy',
      name,
      labels: {},
      spec: { nodeSelector: { matchLabels: { role: 'edge' } }, ...spec },
    },
    change: 'c1',
    gone: false,
  });
  const views = {
    nodes: {
      'w-1': [{ node: 'w-1', state: 'ready', labels: { role: 'edge' } }],
      'w-2': [{ node: 'w-2', state: 'gone', labels: {} }],
    },
    fragments: {
      'DisruptionPolicy.a': [
        policy('a', {
          files: [{ path: '/etc/frr', actions: [{ kind: 'reload', unit: 'frr.service' }] }],
          sysctl: [{ key: 'net', actions: [{ kind: 'drain' }] }],
        }),
      ],
      'DisruptionPolicy.b': [
        policy('b', {
          files: [{ path: '/etc/frr/', actions: [{ kind: 'drain' }] }],
          network: [{ kind: 'Vrf', actions: [{ kind: 'none' }] }],
        }),
      ],
      'DisruptionPolicy.c': [{ ...policy('c', { default: [{ kind: 'reboot' }] }), gone: true }],
    },
  };
  const { rules } = JSON.parse((await cli(['get', 'disruption-policy', 'w-1', '-o', 'json'], { views })).out) as {
    rules: object[];
  };
  expect(rules.slice(0, 3)).toEqual([
    {
      target: 'files',
      match: '/etc/frr',
      actions: [{ kind: 'drain' }, { kind: 'reload', unit: 'frr.service' }],
      rule: 'DisruptionPolicy/a files /etc/frr, DisruptionPolicy/b files /etc/frr/',
      policies: ['a', 'b'],
    },
    {
      target: 'sysctl',
      match: 'net',
      actions: [{ kind: 'drain' }],
      rule: 'DisruptionPolicy/a sysctl net',
      policies: ['a'],
    },
    {
      target: 'network',
      match: 'Vrf',
      actions: [{ kind: 'none' }],
      rule: 'DisruptionPolicy/b network Vrf',
      policies: ['b'],
    },
  ]);
  const { out } = await cli(['get', 'disruption-policy', 'w-1'], { views });
  expect(out).toMatch(/^files \/etc\/frr +drain, reload frr\.service +a, b +DisruptionPolicy\/a/m);
  expect(out).toMatch(/^any KernelArguments +drain, reboot +kernel arguments need a reboot$/m);
  expect(out).toMatch(/^any SystemdUnit +daemon-reload, restart <unit> +default of SystemdUnit$/m);
  expect(await cli(['get', 'disruption-policy', 'w-2'], { views })).toMatchObject({
    exit: 1,
    err: 'error: node w-2 not found: list nodes with sluice get nodes\n',
  });
  expect(await cli(['get', 'disruption-policy'], { views })).toMatchObject({ exit: 2 });
});

it('take records the owner of a node and a time, and the node is shown as taken', async () => {
  let requests: Record<string, unknown> = {};
  const answers = {
    'ops.pool.take': (request: Record<string, unknown>) => (
      (requests = request),
      { node: 'w-1', pool: 'edge', owner: 'kured', taken: true }
    ),
  };
  expect(await cli(['take', 'w-1', '--owner', 'kured', '--for', '30m'], { answers })).toMatchObject({
    exit: 0,
    err: 'w-1 taken out of service by kured for 30m; it counts as unavailable in pool edge. Give it back earlier with sluice give w-1 --owner kured\n',
  });
  expect(requests).toMatchObject({ node: 'w-1', owner: 'kured', forMs: 1_800_000 });
  await cli(['take', 'w-1', '--owner', 'kured'], { answers });
  expect(requests).not.toHaveProperty('forMs');
  expect(await cli(['take', 'w-1', '--owner', 'kured', '--for', 'soon'], { answers })).toMatchObject({
    exit: 2,
    err: expect.stringContaining('--for: "soon" is not a duration') as string,
  });
  const node = { node: 'w-1', state: 'ready', labels: {}, unavailable: '', since: '', version: '' };
  const views = {
    nodes: { 'w-1': [node], 'w-2': [{ ...node, node: 'w-2' }] },
    status: { 'w-1': [{ node: 'w-1', taken: { owner: 'kured', reason: '', at: '', forMs: 1_800_000 } }] },
  };
  expect((await cli(['get', 'nodes'], { views })).out).toMatch(/^w-1 +ready,taken by kured for 30m\nw-2 +ready$/m);
  expect(JSON.parse((await cli(['get', 'nodes', 'w-1', '-o', 'json'], { views })).out)).toMatchObject({
    node: 'w-1',
    taken: { owner: 'kured' },
  });
});

test('get changes shows that a change is paused', async () => {
  const views = { changes: { c7: [changeView()] }, rollouts: { c7: [rolloutView({ paused: true })] } };
  expect((await cli(['get', 'changes'], { views })).out).toMatch(/^c7 +⏸ paused /m);
  expect(JSON.parse((await cli(['get', 'changes', 'c7', '-o', 'json'], { views })).out)).toMatchObject({
    change: 'c7',
    phase: 'rolling',
    state: 'paused',
  });
});

test.each([[[]], [['-w']]])('status %j of a change that was never published ends and says so', async (flags) => {
  const views = { changes: { c7: [changeView()] } };
  expect(await cli(['status', 'c99', ...flags], { views })).toEqual({
    exit: 1,
    out: '',
    err: 'error: change c99 not found: list changes with sluice get changes\n',
  });
});

test.each([['status'], ['get changes']])(
  '%s of a change that no service has read yet says what to check',
  async (argv) => {
    const { exit, err } = await cli([...argv.split(' '), 'c8'], { views: {}, unread: ['c8'] });
    expect([exit, err]).toEqual([
      1,
      expect.stringMatching(/c8 was published, but no service has read it yet: .*doctor/),
    ]);
  },
);

test('why of a change that no service has read yet says that it waits for the merger', async () => {
  expect(await cli(['why', 'c8'], { unread: ['c7', 'c8'] })).toMatchObject({
    exit: 0,
    out: expect.stringMatching(/no service has read c8 yet: it waits for the merger; .*doctor/) as string,
  });
  expect((await cli(['why', 'c8'], { unread: ['c7'] })).err).toContain('change c8 not found');
});

test.each([
  ['status', ['status']],
  ['status of a change', ['status', 'c7']],
  ['get', ['get', 'changes']],
  ['apply', APPLY],
])('%s names the services that do not answer, and the changes that nobody has read, on stderr', async (_, argv) => {
  const views = { changes: { c7: [changeView()] } };
  const run = async (...missing: string[]): Promise<string> => (await cli(argv, { views, missing }, {}, MOTD)).err;
  expect(await run()).not.toContain('warning');
  expect(await run('merger')).toContain('warning: the service merger does not answer, ');
  expect(await run('merger', 'drain')).toContain('warning: the services merger, drain do not answer, ');
  const { err } = await cli(argv, { views, missing: ['merger'], unread: ['c8', 'c9'] }, {}, MOTD);
  expect(err).toContain('until it runs; no service has read c8, c9 yet: see sluice doctor');
});

test('--strict makes apply and plan reject a change with warnings', async () => {
  const published: NonNullable<FakeFleet['published']> = [];
  await apply({ published });
  const requests: unknown[] = [];
  const answers = { 'ops.config.plan': (body: object) => (requests.push(body), { rejected: [], nodes: [] }) };
  await apply({ published, answers }, '--strict');
  expect(published.map(({ body }) => body['strategy'])).toEqual([undefined, { strict: true }]);
  await cli(['plan', '-f', '-', '--strict'], { answers }, {}, MOTD);
  expect(requests).toMatchObject([{ strategy: { strict: true } }, { strategy: { strict: true } }]);
});

test('--take-over lets apply and plan touch fragments of other sources', async () => {
  const published: NonNullable<FakeFleet['published']> = [];
  await apply({ published });
  await apply({ published }, '--take-over');
  expect(published.map(({ body }) => body['takeOver'])).toEqual([undefined, true]);
  const requests: unknown[] = [];
  const answers = { 'ops.config.plan': (body: object) => (requests.push(body), { rejected: [], nodes: [] }) };
  await cli(['plan', '-f', '-', '--take-over'], { answers }, {}, MOTD);
  expect(requests).toMatchObject([{ source: 'cli', takeOver: true }]);
});

test('get fragments names the nodes that still have what is being removed', async () => {
  const fragment = { kind: 'Mwan3Rule', name: 'mail', labels: {}, spec: {} };
  const shown = async (stillOn: readonly string[]): Promise<string> => {
    const view = { ledger: 1, fragment, change: 'c7', source: 'ci', gone: true, removing: true, stillOn };
    return (await cli(['get', 'fragments'], { views: { fragments: { 'Mwan3Rule.mail': [view] } } })).out;
  };
  expect(await shown(['cnf-1'])).toContain(' c7 (being removed from cnf-1) ');
  expect(await shown(['cnf-1', 'cnf-2', 'cnf-3', 'cnf-4'])).toContain(' (being removed from cnf-1, cnf-2, cnf-3, …) ');
});

test('get changes and get fragments name the source', async () => {
  const fragment = { kind: 'File', name: 'motd', labels: {}, spec: {} };
  const views = {
    changes: { c7: [changeView({ source: 'ci' })] },
    fragments: { 'File.motd': [{ ledger: 1, fragment, change: 'c7', source: 'ci', gone: false }] },
  };
  expect((await cli(['get', 'changes'], { views })).out).toMatch(/^c7 .* ci +ada/m);
  expect((await cli(['get', 'fragments'], { views })).out).toMatch(/^File +motd +c7 +ci/m);
});

test('a duplicate is followed as the change that it repeats', async () => {
  const views = {
    changes: {
      c7: [
        changeView({
          phase: 'ended',
          outcome: 'duplicate',
          duplicateOf: 'c3',
          reason: 'cli published it before, as c3',
        }),
      ],
      c3: [changeView({ change: 'c3', phase: 'rejected' })],
    },
  };
  expect((await cli(['status', 'c7'], { views })).out).toContain('duplicate');
  expect((await apply({ views }, '--wait')).exit).toBe(3);
});

test('rollback asks for it, and prints the new change', async () => {
  const requests: unknown[] = [];
  const answers = {
    'ops.config.rollback': (body: object) => (requests.push(body), { change: 'c9', rollbackOf: 'c7' }),
  };
  expect(await cli(['rollback', 'c7'], { answers })).toMatchObject({ exit: 0, out: 'c9\n' });
  expect(requests).toEqual([{ change: 'c7', by: 'ada' }]);
  const tree = (await cli(['status', 'c9'], { views: { changes: { c9: [changeView({ rollbackOf: 'c7' })] } } })).out;
  expect(tree).toContain('rollback of c7');
});

test('remove sends force only with --force', async () => {
  const requests: unknown[] = [];
  const answers = { 'ops.node.remove': (body: object) => (requests.push(body), { node: 'w-1', removed: true }) };
  await cli(['remove', 'w-1'], { answers });
  await cli(['remove', 'w-1', '--force'], { answers });
  expect(requests).toMatchObject([
    { node: 'w-1', force: false },
    { node: 'w-1', force: true },
  ]);
});
