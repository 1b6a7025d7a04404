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
    ['what is no id of a change', ['pause', 'motd']],
    ['what is no name of a node', ['skip', 'A_B']],
    ['what cannot be got', ['get', 'cars']],
    ['clear without a reason', ['clear', 'a'.repeat(64)]],
    ['clear with half a hash', ['clear', 'abc', '--reason', 'ok']],
    ['delete with neither name nor file', ['delete']],
    ['delete with both', ['delete', 'File', 'motd', '-f', '-']],
    ['a service that does not exist', ['service', 'butcher']],
    ['an output that does not exist', ['status', '-o', 'xml']],
    ['yaml where there is none', ['status', '-o', 'yaml']],
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

  test('--help and --version are data, and no failure', async () => {
    expect(await cli(['--help'])).toMatchObject({ exit: 0, err: '' });
    expect(await cli(['apply', '--help'])).toMatchObject({ exit: 0, err: '' });
    expect(await cli(['--version'])).toMatchObject({
      exit: 0,
      out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string,
    });
  });

  test('common flags stand before or after the command', async () => {
    const views = { changes: { c7: [changeView()] } };
    for (const argv of [
      ['-o', 'json', 'get', 'changes'],
      ['get', 'changes', '-o', 'json'],
    ]) {
      expect(JSON.parse((await cli(argv, { views })).out)).toMatchObject([{ change: 'c7' }]);
    }
  });
});

test('without a server it ends with 6, and names the address, where that is from, and the way out', async () => {
  const { exit, out, err } = await cli(['status', '--server', 'nats://127.0.0.1:1']);
  expect([exit, out]).toEqual([6, '']);
  expect(err).toMatch(/nats:\/\/127\.0\.0\.1:1.*\(address from --server\)\n.*sluice up/);
});

describe('apply', () => {
  test('publishes one change, with author and an id of its own, and prints its id alone', async () => {
    const published: NonNullable<FakeFleet['published']> = [];
    const { exit, out, err } = await apply({ published }, '-m', 'Greet');
    expect([exit, out]).toEqual([0, 'c7\n']);
    expect(err).toBe('published; follow it with sluice status c7 -w\n');
    expect(published).toEqual([
      {
        source: 'cli',
        body: { apply: [JSON.parse(MOTD)], delete: [], message: 'Greet', author: 'ada' },
        id: expect.stringMatching(/^cli:[0-9a-f-]{36}$/) as string,
      },
    ]);
  });

  test('reads the manifests of a folder in order of their names, and nothing else', async () => {
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

  test('what cannot be understood is refused with every reason before anything is published', async () => {
    const published: NonNullable<FakeFleet['published']> = [];
    const two = `${MOTD.replace('"nodeSelector":{},', '').replace('/etc/motd', 'motd')}\n---\n{"kind": "Car"}`;
    const { exit, out, err } = await cli([...APPLY, '-o', 'json'], { published }, {}, two);
    expect([exit, published]).toEqual([3, []]);
    const codes = (JSON.parse(out) as { rejected: { code: string }[] }).rejected.map(({ code }) => code);
    expect(codes).toEqual(expect.arrayContaining(['required', 'bad-path', 'unknown-kind']));
    expect(err).toContain('File/motd spec.path');
  });

  test('the same fragment twice is refused with both places', async () => {
    expect(await cli(APPLY, {}, {}, `${MOTD}\n---\n${MOTD}`)).toMatchObject({
      exit: 3,
      err: expect.stringContaining('is defined at stdin:1 and again at stdin:3') as string,
    });
  });

  test('more than 900 KiB are refused before anything is published', async () => {
    const { exit, err } = await cli(APPLY, {}, {}, MOTD.replace('hello', 'x'.repeat(900 * 1_024)));
    expect([exit, err]).toEqual([3, expect.stringContaining('the limit is 900 KiB')]);
  });
});

describe('apply --wait ends as the change does', () => {
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
    ['reverted, told by the scheduler alone', 4, [changeView()], [failed]],
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

  test('its words say which node and why', async () => {
    const { err } = await apply(
      { views: { changes: { c7: [changeView({ phase: 'ended', outcome: 'reverted' })] }, rollouts: { c7: [failed] } } },
      '--wait',
    );
    expect(err).toContain('w-1 invalid: probe greets failed');
  });

  test('as JSON it is one value', async () => {
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

test('delete --wait stands before its arguments as well', async () => {
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
  test('joins the pages of the answer into one value', async () => {
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

  test('with reasons against it ends with 3', async () => {
    const rejected = [
      { fragment: 'File/motd', field: 'spec.path', code: 'conflict', message: 'is taken', nodes: ['n1'] },
    ];
    expect(
      await cli(['plan', '-f', '-'], { answers: { 'ops.config.plan': () => ({ rejected, nodes: [] }) } }, {}, MOTD),
    ).toEqual({ exit: 3, out: 'This change would be rejected:\n  ✖ File/motd spec.path: is taken (n1)\n', err: '' });
  });

  test('reads what it cannot understand as a plan that is rejected, without a server', async () => {
    const { exit, out } = await cli(['plan', '-f', '-', '-o', 'json'], undefined, {}, '{"kind": "Car"}');
    expect(exit).toBe(3);
    expect(JSON.parse(out)).toMatchObject({
      nodes: [],
      rejected: expect.arrayContaining([expect.objectContaining({ code: 'unknown-kind' })]) as object,
    });
  });
});

test('a refusal by a service ends with 1 and says what it said', async () => {
  expect(await cli(['pause', 'c9'], {})).toEqual({
    exit: 1,
    out: '',
    err: 'error: nothing answers ops.rollout.pause\n',
  });
});

test('steering tells who asked, and prints the answer for programs', async () => {
  const asked: object[] = [];
  const answers = { 'ops.rollout.pause': (body: object) => (asked.push(body), { change: 'c9', paused: true }) };
  expect(await cli(['pause', 'c9', '--reason', 'lunch', '-o', 'json'], { answers })).toEqual({
    exit: 0,
    out: '{"change":"c9","paused":true}\n',
    err: '',
  });
  expect(asked).toEqual([{ change: 'c9', reason: 'lunch', by: 'ada' }]);
});

test('status CHANGE -w exits as the change ends, with a line for each step', async () => {
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

test('get NAME finds a fragment by name or Kind/name, and says when there is none', async () => {
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

test('actions plans offline, selectors left out', async () => {
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

test('get disruption-policy NODE shows each rule that holds there, and the policies that it comes from', async () => {
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

it('a node that another tool has is taken for a time, and shown as taken', async () => {
  let asked: Record<string, unknown> = {};
  const answers = {
    'ops.pool.take': (request: Record<string, unknown>) => (
      (asked = request),
      { node: 'w-1', pool: 'edge', owner: 'kured', taken: true }
    ),
  };
  expect(await cli(['take', 'w-1', '--owner', 'kured', '--for', '30m'], { answers })).toMatchObject({
    exit: 0,
    err: 'w-1 taken out of service by kured for 30m; it counts as unavailable in pool edge. Give it back earlier with sluice give w-1 --owner kured\n',
  });
  expect(asked).toMatchObject({ node: 'w-1', owner: 'kured', forMs: 1_800_000 });
  await cli(['take', 'w-1', '--owner', 'kured'], { answers });
  expect(asked).not.toHaveProperty('forMs');
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

test('get nodes shows all that keeps a node from being fine', async () => {
  const node = { state: 'ready', labels: {}, unavailable: '', since: '', version: '' };
  const fine = { restored: true, deferred: '', incompatible: false, drifted: [] };
  const views = {
    nodes: { a: [{ ...node, node: 'a' }], b: [{ ...node, node: 'b' }], c: [{ ...node, node: 'c' }] },
    status: {
      a: [{ ...fine, node: 'a' }],
      b: [{ ...fine, node: 'b', restored: false, drifted: ['/etc/motd'] }],
      c: [{ ...fine, node: 'c', incompatible: true, deferred: 'failed twice' }],
    },
  };
  expect((await cli(['get', 'nodes'], { views })).out).toMatch(
    /^a +ready +0\nb +ready,degraded +1\nc +ready,incompatible,deferred +0$/m,
  );
});

test('get changes says that a change is paused', async () => {
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

test('status of a change that no service has read yet says what to check', async () => {
  const { exit, err } = await cli(['status', 'c8'], { views: {}, unread: ['c8'] });
  expect([exit, err]).toEqual([1, expect.stringMatching(/c8 was published, but no service has read it yet: .*doctor/)]);
});

test.each([
  ['status', ['status']],
  ['status of a change', ['status', 'c7']],
  ['get', ['get', 'changes']],
  ['apply', APPLY],
])('%s names the services that do not answer, on stderr', async (_, argv) => {
  const views = { changes: { c7: [changeView()] } };
  const run = async (...missing: string[]): Promise<string> => (await cli(argv, { views, missing }, {}, MOTD)).err;
  expect(await run()).not.toContain('warning');
  expect(await run('merger')).toContain('warning: the service merger does not answer, ');
  expect(await run('merger', 'drain')).toContain('warning: the services merger, drain do not answer, ');
});

test('--strict makes apply and plan ask that a warning rejects the change', async () => {
  const published: NonNullable<FakeFleet['published']> = [];
  await apply({ published });
  await apply({ published }, '--strict');
  expect(published.map(({ body }) => body['strategy'])).toEqual([undefined, { strict: true }]);
  const asked: unknown[] = [];
  const answers = { 'ops.config.plan': (body: object) => (asked.push(body), { rejected: [], nodes: [] }) };
  await cli(['plan', '-f', '-', '--strict'], { answers }, {}, MOTD);
  expect(asked).toMatchObject([{ strategy: { strict: true } }]);
});

test('remove asks for force only where it is wanted', async () => {
  const asked: unknown[] = [];
  const answers = { 'ops.node.remove': (body: object) => (asked.push(body), { node: 'w-1', removed: true }) };
  await cli(['remove', 'w-1'], { answers });
  await cli(['remove', 'w-1', '--force'], { answers });
  expect(asked).toMatchObject([
    { node: 'w-1', force: false },
    { node: 'w-1', force: true },
  ]);
});
