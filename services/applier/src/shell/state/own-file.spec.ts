import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '#libs/testing';
import { startOf } from '../process-table.js';
import { readOwn } from './own-file.js';
import { StateFolder } from './state-folder.js';

let path: string;
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'sluice-own-'));
  mkdirSync(join(path, 'configs'));
  mkdirSync(join(path, 'originals'));
});
afterEach(() => rmSync(path, { recursive: true, force: true }));

const HASH = 'a'.repeat(64);
const FILES = [
  'journal.json',
  'journal.json.tmp',
  'journal.prev.json',
  'journal.prev.json.new',
  'lock',
  'reserve',
  'hang.json',
  'frr.json',
  'guard',
  'guard.json',
  'guard.log',
];
const use = async (): Promise<void> => (await StateFolder.open(path)).close();
const refusal = (file: string, what: string, wanted = 'a file'): string =>
  `${join(path, file)}: this is ${what}, and the applier has ${wanted} here: move it away. If you have a copy of what was here before, put it back. Then start the applier again`;
const makeFifo = (file: string): void => void execFileSync('mkfifo', [join(path, file)]);

it.each(FILES)('refuses a FIFO at %s at once, and says what to do', async (file) => {
  makeFifo(file);
  await expect(use()).rejects.toThrow(refusal(file, 'a FIFO (named pipe)'));
  rmSync(join(path, file));
  await use();
});

it('lets a guard finish a rollback, unless it is the journal or the lock', async () => {
  const openAsGuard = async (): Promise<void> => {
    const folder = await StateFolder.open(path, true);
    await folder.readJournal('n', HASH).finally(() => folder.close());
  };
  for (const file of FILES.filter((name) => name !== 'lock' && !name.startsWith('journal'))) makeFifo(file);
  await openAsGuard();
  makeFifo('lock');
  await expect(openAsGuard()).rejects.toThrow(refusal('lock', 'a FIFO (named pipe)'));
  rmSync(join(path, 'lock'));
  makeFifo('journal.json');
  await expect(openAsGuard()).rejects.toThrow(refusal('journal.json', 'a FIFO (named pipe)'));
});

it('refuses a directory, a link, a socket and a device in the place of a file', async () => {
  const file = join(path, 'journal.json');
  mkdirSync(file);
  await expect(use()).rejects.toThrow(refusal('journal.json', 'a directory'));
  rmSync(file, { recursive: true });
  symlinkSync('/dev/zero', file);
  await expect(use()).rejects.toThrow(refusal('journal.json', 'a symbolic link'));
  rmSync(file);
  const server = createServer().listen(file);
  await once(server, 'listening');
  await expect(use()).rejects.toThrow(refusal('journal.json', 'a socket'));
  server.close();
});

it.each(['configs', 'originals'])('refuses a file in the place of the folder %s', async (folder) => {
  rmSync(join(path, folder), { recursive: true });
  writeFileSync(join(path, folder), '');
  await expect(use()).rejects.toThrow(refusal(folder, 'a file', 'a folder'));
});

it('leaves alone what is not its own', async () => {
  makeFifo('other');
  makeFifo('configs/other');
  await use();
  expect([existsSync(join(path, 'other')), existsSync(join(path, 'configs/other'))]).toEqual([true, true]);
});

it('does not wait for what is in the place of a config or of saved content', async () => {
  makeFifo(`configs/${HASH}.json`);
  makeFifo(`originals/${HASH}`);
  makeFifo('originals/sizes.json');
  const folder = await StateFolder.open(path);
  expect(await folder.readConfig(HASH)).toBe(refusal(`configs/${HASH}.json`, 'a FIFO (named pipe)'));
  await expect(folder.contents.has(HASH)).rejects.toThrow(refusal(`originals/${HASH}`, 'a FIFO (named pipe)'));
  expect(folder.contents.sizes.of(HASH)).toBeUndefined();
  await folder.close();
});

it('does not wait for what took the place of a file after the start', () => {
  makeFifo('lock');
  expect(() => readOwn(join(path, 'lock'))).toThrow(refusal('lock', 'a FIFO (named pipe)'));
});

it('ends at once when it is told to while it starts', async () => {
  // It waits for two minutes for the guard that holds this lock.
  const held = { pid: process.pid, started: startOf(process.pid), guard: true };
  writeFileSync(join(path, 'lock'), JSON.stringify(held));
  mkdirSync(join(path, 'root'));
  const repository = join(__dirname, '../../../../..');
  const applier = spawn(
    process.execPath,
    [
      join(repository, 'dist/services/applier/src/main.js'),
      ...['--node', 'n', '--root', join(path, 'root'), '--state', path, '--server', 'nats://127.0.0.1:1'],
    ],
    { stdio: 'ignore' },
  );
  const ended = once(applier, 'exit');
  await until(() => execFileSync('ls', [path], { encoding: 'utf8' }).includes('lock.'));
  applier.kill('SIGTERM');
  expect(await ended).toEqual([null, 'SIGTERM']);
});
