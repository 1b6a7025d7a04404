import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newJournal, type Journal } from '../../core/index.js';
import { sha256 } from '../content.js';
import { startOf } from '../process-table.js';
import { StateFolder } from './state-folder.js';

const EMPTY = '0'.repeat(64);
const work: Journal['work'] = {
  phase: 'forward',
  lease: 'l-3',
  change: 'c3',
  pool: 'all',
  kind: 'forward',
  from: EMPTY,
  to: '1'.repeat(64),
  actions: [],
  applyMs: 1_000,
  bootId: 'b',
  readMs: 0,
  rollBackAtMs: 500,
  probes: {},
  ran: [],
  toUndo: [],
  changed: [],
  scope: { touched: [], aside: {} },
};
const journal = (seq: number): Journal => ({ ...newJournal('n0', EMPTY), seq });

let path: string;
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'sluice-state-'));
});
afterEach(() => rmSync(path, { recursive: true, force: true }));

it('continues from the previous journal if the last one is torn, and keeps it until another one is written', async () => {
  const folder = await StateFolder.open(path);
  await folder.writeJournal(journal(1));
  await folder.writeJournal(journal(2));
  const whole = readFileSync(join(path, 'journal.json'), 'utf8');
  writeFileSync(join(path, 'journal.json'), whole.slice(0, whole.length / 2));
  expect((await folder.readJournal('n0', EMPTY)).journal.seq).toBe(1);
  await folder.writeJournal(journal(3));
  expect((await folder.readJournal('n0', EMPTY)).journal.seq).toBe(3);
  writeFileSync(join(path, 'journal.json'), 'torn again');
  expect((await folder.readJournal('n0', EMPTY)).journal.seq).toBe(1);
  await folder.close();
});

it('finds unfinished work in both copies, whichever is lost, and the state before it in neither', async () => {
  const folder = await StateFolder.open(path);
  await folder.writeJournal(journal(1));
  await folder.writeJournal(journal(2));
  await folder.writeJournal({ ...journal(3), work });
  for (const lost of ['journal.json', 'journal.prev.json']) {
    const text = readFileSync(join(path, lost), 'utf8');
    writeFileSync(join(path, lost), '');
    const { journal: found } = await folder.readJournal('n0', EMPTY);
    expect([found.seq, found.work?.lease]).toEqual([3, 'l-3']);
    writeFileSync(join(path, lost), text);
  }
  await folder.close();
});

it('refuses the journal of a newer applier, and does not use the previous one instead', async () => {
  const folder = await StateFolder.open(path);
  await folder.writeJournal(journal(1));
  await folder.writeJournal(journal(2));
  const newer = JSON.stringify({ ...journal(3), v: 2 });
  writeFileSync(join(path, 'journal.json'), `{"sha256":"${sha256(newer)}","journal":${newer}}\n`);
  await expect(folder.readJournal('n0', EMPTY)).rejects.toThrow('written by a newer applier (v 2): start that version');
  await folder.close();
});

it('waits for an applier that was killed a moment ago', async () => {
  // The kernel needs a while to free so much memory; until then, the process is there.
  const holder = spawn(process.execPath, [
    '-e',
    'globalThis.kept = Buffer.alloc(1_000_000_000, 1); console.log("ready"); setInterval(() => undefined, 60_000)',
  ]);
  const ended = once(holder, 'exit');
  await once(holder.stdout, 'data');
  const pid = holder.pid as number;
  writeFileSync(join(path, 'lock'), JSON.stringify({ pid, started: startOf(pid) }));
  process.kill(pid, 'SIGKILL');
  await (await StateFolder.open(path)).close();
  await ended;
});
