import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { bootClock } from '../boot.js';
import { SILENT, type Hang, type Journal, type Log } from '../../core/index.js';
import { descendantsOf, killProcess, startOf, type ProcessId } from '../process-table.js';
import { runApplier } from '../run-applier.js';
import { decodeJournal } from '../state/journal-text.js';
import { holderOf } from '../state/lock.js';
import { readOwn } from '../state/own-file.js';
import { StateError } from '../state/state-error.js';
import { isMissing } from '../state/whole-file.js';
import { readHang, writeHang } from '../state/hang-file.js';
import { dueOf } from './guard.js';
import { readChange, type GuardedApplier, type GuardedChange } from './guarded-change.js';
import { readWatch, type Watch } from './watch-file.js';

/** In seconds: never again. */
const NEVER = 0;
/** A file was being written. */
const SOON = 1;
/** Another process is at work. */
const LATER = 5;
/** A process that does not die waits for a disk, or is the first process of a container. */
const MUCH_LATER = 60;
/** When the time of a change is over, a restarted applier may act first. */
const TURN_MS = 1_000;
const DYING_MS = 10_000;
const POLL_MS = 100;
/** After this time, a rollback that does not succeed is left to the next applier. */
const LONGEST_MS = 600_000;
/** An applier that waits for the state folder gets it after this time. It gives up after two minutes. */
const WAITED_MS = 60_000;

/**
 * Checks an applier process once that has shown no sign of life in time, and acts in its place: kills it if it hangs,
 * and rolls back its change. If it is gone, it has until the end of its time to restart. Returns in how many seconds to
 * check again; 0: nothing is left to do.
 */
export async function runGuard(id: string, file: string, log: Log = SILENT): Promise<number> {
  const watch = whole(() => readWatch(file));
  if (watch === 'torn') return SOON;
  if (watch === undefined || watch.id !== id || watch.dueMs === 0) return NEVER;
  const read = watch.stateDirs.map((stateDir) => whole(() => readChange(stateDir)));
  if (read.includes('torn')) return SOON;
  const changes = read.filter((change) => change !== undefined && change !== 'torn');
  const killed: GuardedChange[] = [];
  const late = changes.filter((change) => isLate(change, watch.beatMs));
  for (const [pid, together] of Map.groupBy(late, ({ pid }) => pid)) {
    const holder = holderIn(together);
    // Without a holder, it was killed by somebody else, so it does not hang.
    if (holder?.pid !== pid) continue;
    for (const change of together) await mark(change, changes, watch, log);
    log.warn({ pid, nodes: together.map(({ node }) => node) }, 'the applier hangs; killing it');
    if (!(await kill(holder))) {
      log.error({ pid }, 'the applier cannot be killed: it waits for a disk, or is the first process of a container');
      return MUCH_LATER;
    }
    killed.push(...together);
  }
  const next = await Promise.all(changes.map((change) => after(change, killed.includes(change), log)));
  const waits = next.filter((seconds) => seconds !== NEVER);
  return waits.length === 0 ? NEVER : Math.min(...waits);
}

/** It hangs, if its process still exists. */
const isLate = (change: GuardedChange, beatMs: number): boolean => bootClock() >= dueOf(change, beatMs);

/** Undefined if the file does not exist; torn while it is being written. */
function whole<T>(read: () => T): T | 'torn' | undefined {
  try {
    return read();
  } catch (error) {
    return isMissing(error) ? undefined : 'torn';
  }
}

/** The process that holds these state folders, according to their locks. A pid alone may be reused. */
function holderIn(changes: readonly GuardedChange[]): ProcessId | undefined {
  for (const { stateDir, pid } of changes) {
    const holder = holderOf(stateDir);
    if (holder?.pid === pid) return holder;
  }
  return undefined;
}

/**
 * Leaves a note for the next process that opens the journal, before anything else. Otherwise the next applier would
 * hang in the same place. The config is to blame only if no other change of the process may have hung.
 */
async function mark(change: GuardedChange, all: readonly GuardedChange[], watch: Watch, log: Log): Promise<void> {
  const silentMs = bootClock() - watch.beatMs;
  const how =
    silentMs >= change.hungMs
      ? `the applier did not respond for ${Math.round(silentMs / 1_000)} s`
      : 'the applier made no progress';
  const hang: Hang = {
    lease: change.lease,
    fault: all.every(({ fault }) => fault === 'content') ? 'content' : 'node',
    reason: `${how} in the step ${change.step}, so its guard killed it`,
  };
  await writeHang(change.stateDir, hang).catch((error: Error) =>
    log.warn({ node: change.node, error: error.message }, 'the reason cannot be saved'),
  );
}

/** With all processes that it has started: a command that continues would change what is rolled back. */
async function kill(holder: ProcessId): Promise<boolean> {
  const started = descendantsOf(holder.pid);
  killProcess(holder);
  started.forEach(killProcess);
  const endMs = bootClock() + DYING_MS;
  while (startOf(holder.pid) === holder.started) {
    if (bootClock() >= endMs) return false;
    await pause(POLL_MS);
  }
  return true;
}

/** The remaining work for one change, and when to check again. */
async function after(change: GuardedChange, wasKilled: boolean, log: Log): Promise<number> {
  const { stateDir, lease } = change;
  const hung = wasKilled || readHang(stateDir)?.lease === lease;
  const holder = holderOf(stateDir);
  if (holder?.pid === change.pid) return LATER;
  const work = journalOf(stateDir)?.work;
  if (work === undefined || work.lease !== lease) return NEVER;
  if (holder !== undefined) return LATER;
  const leftMs = work.rollBackAtMs + TURN_MS - bootClock();
  if (leftMs > 0 && !hung && work.phase !== 'rolling-back') return Math.ceil(leftMs / 1_000);
  return (await rollBack(change, lease, log)) ? NEVER : LATER;
}

/** False if another process was faster. */
async function rollBack(
  { node, root, stateDir, network, host, allowExec, allowSetuid }: GuardedApplier,
  lease: string,
  log: Log,
): Promise<boolean> {
  const beganMs = bootClock();
  try {
    log.warn({ node, lease }, 'the applier is gone; rolling back in its place');
    const applier = await runApplier({
      node,
      labels: {},
      root,
      stateDir,
      network,
      ...(host === undefined ? {} : { host }),
      allowExec,
      allowSetuid,
      log,
      asGuard: true,
      bus: () => Promise.reject(new Error('a guard has no bus')),
    });
    try {
      while (!(await isOver(stateDir, bootClock() - beganMs))) await pause(POLL_MS);
    } finally {
      await applier.stop();
    }
    return true;
  } catch (error) {
    if (error instanceof StateError) return false;
    throw error;
  }
}

/** Retries a rollback that does not succeed, unless an applier is waiting, which can do the same. */
async function isOver(stateDir: string, sinceMs: number): Promise<boolean> {
  if (sinceMs >= LONGEST_MS) return true;
  const journal = journalOf(stateDir);
  if (journal?.work === undefined && journal?.sound === true) return true;
  if (journal?.work !== undefined && sinceMs < WAITED_MS) return false;
  return (await readdir(stateDir)).some((name) => name.startsWith('lock.'));
}

/** The previous journal has unfinished work too. */
function journalOf(stateDir: string): Journal | undefined {
  for (const name of ['journal.json', 'journal.prev.json']) {
    const text = whole(() => readOwn(join(stateDir, name)));
    const journal = decodeJournal(text ?? '');
    if (typeof journal !== 'string') return journal;
  }
  return undefined;
}
