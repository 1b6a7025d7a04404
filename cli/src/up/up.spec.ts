import { until } from '#libs/testing';
import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { awaitLeftovers, defaultDataFolder, takeDataFolder } from './data-folder.js';
import { localNodes, nodesOfShard, parseInventory, shardsFor } from './inventory.js';

describe('an inventory', () => {
  test('has nodes with labels', () => {
    expect(
      parseInventory('{"nodes": [{"name": "w-1.dc1", "labels": {"role": "edge"}}, {"name": "w-2"}]}', 'i.json'),
    ).toEqual([
      { name: 'w-1.dc1', labels: { role: 'edge' } },
      { name: 'w-2', labels: {} },
    ]);
  });

  test('is refused with every reason if it is invalid', () => {
    const text =
      '{"nodes": [{"name": "W_1"}, {"name": "a", "labels": {"x": 1}}, {"name": "a"}, 7, {"name": "b", "role": "edge"}]}';
    expect(() => parseInventory(text, 'i.json')).toThrow(
      [
        '--inventory i.json: nodes[3]: must be an object, but is a number',
        '--inventory i.json: nodes[4].role: unknown field; known fields: name, labels',
        '--inventory i.json: nodes[2].name: "a" is defined twice',
        '--inventory i.json: nodes[0].name: must be the name of a node: a DNS subdomain',
        '--inventory i.json: nodes[1].labels.x: must be a string, but is a number: put it in quotes',
        'An inventory looks like {"nodes": [{"name": "w-1", "labels": {"role": "edge"}}]}',
      ].join('\n'),
    );
    expect(() => parseInventory('[]', 'i.json')).toThrow(
      '--inventory i.json: must be an object, but is a list\nAn inventory looks like {"nodes": ',
    );
    expect(() => parseInventory('{', 'i.json')).toThrow(/not valid JSON/);
  });

  test.each([
    [0, 8, ['1/1']],
    [50, 8, ['1/1']],
    [51, 8, ['1/2', '2/2']],
    [1_000, 2, ['1/2', '2/2']],
    [150, 8, ['1/3', '2/3', '3/3']],
  ])('of %d nodes on %d cores is split into the shards %j', (nodes, cores, shards) => {
    expect(shardsFor(nodes, cores)).toEqual(shards);
  });

  test('is covered by its shards, with each node once', () => {
    const nodes = localNodes('101');
    const served = shardsFor(101, 4).flatMap((shard) => nodesOfShard(nodes, shard));
    expect(served.map(({ name }) => name).sort()).toEqual(nodes.map(({ name }) => name));
  });

  test.each(['', '0/1', '3/2', '1', 'x/y', '-1/2'])('has no shard %j', (shard) => {
    expect(() => nodesOfShard([], shard)).toThrow(
      `--shard: ${JSON.stringify(shard)} is not a shard; use a value like 1/2`,
    );
  });

  test('of local nodes has two roles and three zones', () => {
    const nodes = localNodes('10');
    expect(nodes[0]).toEqual({ name: 'node-01', labels: { role: 'edge', zone: 'a' } });
    expect(nodes.filter(({ labels }) => labels['role'] === 'worker')).toHaveLength(6);
    expect(localNodes('120')[4]?.name).toBe('node-005');
    expect(() => localNodes('-1')).toThrow(/--nodes/);
  });
});

describe('the data folder', () => {
  let path: string;
  beforeEach(() => (path = mkdtempSync(join(tmpdir(), 'sluice-data-'))));
  afterEach(() => rmSync(path, { recursive: true }));

  test('gets a complete up.json, which is removed at the end', () => {
    const folder = takeDataFolder(path);
    folder.write({ server: 'nats://x', pid: 1, pids: { merger: 2 } });
    expect(JSON.parse(readFileSync(join(path, 'up.json'), 'utf8'))).toEqual({
      server: 'nats://x',
      pid: 1,
      pids: { merger: 2 },
    });
    writeFileSync(join(path, 'inventory.json'), '{}');
    folder.release();
    expect(readdirSync(path).sort()).toEqual(['inventory.json', 'logs', 'sluice-up.txt']);
  });

  test('is refused to a second process, with the pid of the first', () => {
    const folder = takeDataFolder(path);
    expect(() => takeDataFolder(path)).toThrow(`in use by another sluice up (pid ${process.pid})`);
    folder.release();
    takeDataFolder(path).release();
  });

  const modeOf = (folder: string): number => statSync(folder).mode & 0o7777;

  test('is private to the user', () => {
    const made = join(path, 'a/data');
    takeDataFolder(made).release();
    expect([modeOf(made), modeOf(join(path, 'a'))]).toEqual([0o700, 0o777 & ~process.umask()]);
    chmodSync(made, 0o755);
    takeDataFolder(made).release();
    expect(modeOf(made)).toBe(0o700);
  });

  test.each([
    ['a file', 0o755, 'file'],
    ['a folder logs of another program', 0o755, 'logs/x.log'],
    ['a folder logs of another program, closed to others', 0o700, 'logs/x.log'],
    ['an inventory', 0o700, 'inventory.json'],
  ])('is not a folder that holds other files, such as %s', (_, mode, name) => {
    const others = join(path, 'others');
    mkdirSync(join(others, dirname(name)), { recursive: true });
    writeFileSync(join(others, name), 'theirs');
    chmodSync(others, mode);
    const before = readdirSync(others, { recursive: true });
    expect(() => takeDataFolder(others)).toThrow(/others holds other files: .*--data/);
    expect([modeOf(others), readdirSync(others, { recursive: true })]).toEqual([mode, before]);
  });

  test('is not a file', () => {
    const file = join(path, 'file');
    writeFileSync(file, 'theirs');
    expect(() => takeDataFolder(file)).toThrow(/file is not a folder: .*--data/);
  });

  test('is not a folder to which every user may write, although it is empty', () => {
    const shared = join(path, 'shared');
    mkdirSync(shared);
    chmodSync(shared, 0o1777);
    expect(() => takeDataFolder(shared)).toThrow(/shared is shared with other users, or belongs to one: .*--data/);
    expect([modeOf(shared), readdirSync(shared)]).toEqual([0o1777, []]);
  });

  test('is refused at once if it cannot be created', () => {
    expect(() => takeDataFolder('/proc/sluice/data')).toThrow(/cannot make the data folder: ENOENT.*--data/);
  });

  test('is taken over after its `up` was killed, once those processes have ended', async () => {
    takeDataFolder(path).release();
    const left = spawn('sh', ['-c', `read end; exit 0; : sluice ${path}`]);
    writeFileSync(join(path, 'up.lock'), '4194305');
    writeFileSync(join(path, 'up.json'), JSON.stringify({ server: 'x', pid: 4_194_305, pids: { merger: left.pid } }));
    const folder = takeDataFolder(path);
    expect(folder.leftPids).toEqual([left.pid]);
    expect(existsSync(join(path, 'up.json'))).toBe(false);
    const ended = awaitLeftovers(folder.leftPids, folder.path);
    left.stdin.end();
    await ended;
    // The system knows about its end before Node.js reports it here.
    await until(() => left.exitCode !== null);
    expect(left.exitCode).toBe(0);
    folder.release();
  });

  test('is in XDG_DATA_HOME, or in the home folder', () => {
    expect(defaultDataFolder({ XDG_DATA_HOME: '/d', HOME: '/h' })).toBe('/d/sluice');
    expect(defaultDataFolder({ HOME: '/h' })).toBe('/h/.local/share/sluice');
    expect(defaultDataFolder({ HOME: '/h' }, 'sluice-kubernetes')).toBe('/h/.local/share/sluice-kubernetes');
  });
});
