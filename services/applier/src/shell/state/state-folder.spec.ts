import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newJournal, type Journal } from '../../core/index.js';
import { sha256 } from './original-store.js';
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
  changed: [],
};
const journal = (seq: number): Journal => ({ ...newJournal('n0', EMPTY), seq });

let path: string;
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'sluice-state-'));
});
afterEach(() => rmSync(path, { recursive: true, force: true }));

it('goes on from the journal before when the last one is torn, and keeps that until another one stands', async () => {
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

it('finds an unfinished work in both copies, whichever is lost, and in neither what was before it', async () => {
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

it('refuses the journal of a newer applier, and does not go on from the one before in its place', async () => {
  const folder = await StateFolder.open(path);
  await folder.writeJournal(journal(1));
  await folder.writeJournal(journal(2));
  const newer = JSON.stringify({ ...journal(3), v: 2 });
  writeFileSync(join(path, 'journal.json'), `{"sha256":"${sha256(newer)}","journal":${newer}}\n`);
  await expect(folder.readJournal('n0', EMPTY)).rejects.toThrow('written by a newer applier (v 2): start that version');
  await folder.close();
});
