import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { bootClock } from '../boot.js';
import { SILENT, type Hang, type Journal, type Log } from '../../core/index.js';
import { descendantsOf, killProcess, startOf, type ProcessId } from '../process-table.js';
import { runApplier } from '../run-applier.js';
import { decodeJournal } from '../state/journal-text.js';
import { holderOf, StateError } from '../state/lock.js';
import { isMissing } from '../state/whole-file.js';
import { writeHang } from '../state/hang-file.js';
import { dueOf } from './guard.js';
import { readChange, type GuardedApplier, type GuardedChange } from './guarded-change.js';
import { readWatch, type Watch } from './watch-file.js';

/** In seconds: never again. */
const NEVER = 0;
/** A file was being written. */
const SOON = 1;
/** Somebody else is at work. */
const LATER = 5;
/** A process that does not die waits for a disk, or is the first one of a container. */
const MUCH_LATER = 60;
/** When the time of a change is over, an applier that was started again has its turn first. */
const TURN_MS = 1_000;
const DYING_MS = 10_000;
const POLL_MS = 100;
/** A rollback that does not succeed is left to the next start of the applier. */
const LONGEST_MS = 600_000;
/** An applier that waits for the state folder gets it after that; it gives up after two minutes. */
const WAITED_MS = 60_000;

/**
 * Looks once at an applier process that has said nothing in time, and acts in its place: kills it if it hangs, and
 * rolls back what it was killed in. If it is gone, it has until the end of its time to come back. Returns in how many
 * seconds to look again; 0: there is nothing left to do.
 */
export async function runGuard(id: string, file: string, log: Log = SILENT): Promise<number> {
  const watch = whole(() => readWatch(file));
  if (watch === 'torn') return SOON;
  if (watch === undefined || watch.id !== id || watch.dueMs === 0) return NEVER;
  const read = watch.stateDirs.map((stateDir) => whole(() => readChange(stateDir)));
  if (read.includes('torn')) return SOON;
  const changes = read.filter((change) => change !== undefined && change !== 'torn');
  const hung = changes.filter((change) => isHung(change, watch.beatMs));
  for (const [pid, together] of Map.groupBy(hung, ({ pid }) => pid)) {
    const holder = holderIn(together);
    if (holder?.pid !== pid) continue;
    for (const change of together) await mark(change, changes, watch, log);
    log.warn({ pid, nodes: together.map(({ node }) => node) }, 'the applier hangs; killing it');
    if (!(await kill(holder))) {
      log.error({ pid }, 'the applier cannot be killed: it waits for a disk, or is the first process of a container');
      return MUCH_LATER;
    }
  }
  const next = await Promise.all(changes.map((change) => after(change, hung.includes(change), log)));
  const waits = next.filter((seconds) => seconds !== NEVER);
  return waits.length === 0 ? NEVER : Math.min(...waits);
}

const isHung = (change: GuardedChange, beatMs: number): boolean => bootClock() >= dueOf(change, beatMs);

/** Undefined where there is no such file; torn while it is being written. */
function whole<T>(read: () => T): T | 'torn' | undefined {
  try {
    return read();
  } catch (error) {
    return isMissing(error) ? undefined : 'torn';
  }
}

/** The process that has these state folders, by its lock: a pid alone may be another's by now. */
function holderIn(changes: readonly GuardedChange[]): ProcessId | undefined {
  for (const { stateDir, pid } of changes) {
    const holder = holderOf(stateDir);
    if (holder?.pid === pid) return holder;
  }
  return undefined;
}

/**
 * Leaves a note for the process that has the journal next, before anything else. Otherwise the next applier would hang
 * in the same place. A config is to blame if all that its applier did was to run probes.
 */
async function mark(change: GuardedChange, all: readonly GuardedChange[], watch: Watch, log: Log): Promise<void> {
  const silentMs = bootClock() - watch.beatMs;
  const how =
    silentMs >= change.hungMs
      ? `the applier did not respond for ${Math.round(silentMs / 1_000)} s`
      : 'the applier did not get any further';
  const hang: Hang = {
    lease: change.lease,
    fault: all.every(({ step }) => step === 'run-probes') ? 'content' : 'node',
    reason: `${how} in the step ${change.step}, so its guard killed it`,
  };
  await writeHang(change.stateDir, hang).catch((error: Error) =>
    log.warn({ node: change.node, error: error.message }, 'the reason cannot be kept'),
  );
}

/** With all that it has started: a command that goes on would change what is rolled back. */
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

/** What is left of one change, and when to look at it again. */
async function after(change: GuardedChange, wasHung: boolean, log: Log): Promise<number> {
  const { stateDir, lease } = change;
  const holder = holderOf(stateDir);
  if (holder?.pid === change.pid) return LATER;
  const work = (await journalOf(stateDir))?.work;
  if (work === undefined || work.lease !== lease) return NEVER;
  if (holder !== undefined) return LATER;
  const leftMs = work.rollBackAtMs + TURN_MS - bootClock();
  if (leftMs > 0 && !wasHung && work.phase !== 'rolling-back') return Math.ceil(leftMs / 1_000);
  return (await rollBack(change, lease, log)) ? NEVER : LATER;
}

/** False when somebody else was faster. */
async function rollBack(
  { node, root, stateDir, network, host }: GuardedApplier,
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

/** A rollback that does not succeed is tried again here, unless an applier waits that can do the same. */
async function isOver(stateDir: string, sinceMs: number): Promise<boolean> {
  if (sinceMs >= LONGEST_MS) return true;
  const journal = await journalOf(stateDir);
  if (journal?.work === undefined && journal?.sound === true) return true;
  if (journal?.work !== undefined && sinceMs < WAITED_MS) return false;
  return (await readdir(stateDir)).some((name) => name.startsWith('lock.'));
}

/** The previous journal has unfinished work, too. */
async function journalOf(stateDir: string): Promise<Journal | undefined> {
  for (const name of ['journal.json', 'journal.prev.json']) {
    const journal = decodeJournal(await readFile(join(stateDir, name), 'utf8').catch(() => ''));
    if (typeof journal !== 'string') return journal;
  }
  return undefined;
}
