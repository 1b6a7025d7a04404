import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bootClock } from '../boot.js';
import { SILENT, type Journal, type Log } from '../../core/index.js';
import { runApplier } from '../run-applier.js';
import { decodeJournal } from '../state/journal-text.js';
import { holderOf, StateError } from '../state/lock.js';
import type { GuardOrder } from './guard.js';

const POLL_MS = 200;
/** Of the lease: an applier that lives and has not rolled back by then will not. */
const HUNG_SHARE = 1 / 6;
const SHORTEST_HUNG_MS = 3_000;
/** A rollback that does not succeed is left to the next start of the applier. */
const LONGEST_MS = 600_000;

/**
 * Rolls back in place of an applier that was killed, or hangs, when the time of its change is over: by the journal in
 * its state folder, with the applier's own code, and without any bus. Says what it did.
 */
export async function runGuard(order: GuardOrder, log: Log = SILENT): Promise<'nothing to do' | 'rolled back'> {
  const endMs = bootClock() + LONGEST_MS;
  while (bootClock() < order.atMs) await pause(Math.min(order.atMs - bootClock(), 1_000));
  while (bootClock() < endMs) {
    const work = (await journalOf(order.stateDir))?.work;
    if (work === undefined || work.lease !== order.lease) return 'nothing to do';
    const holder = holderOf(order.stateDir);
    if (holder === undefined) {
      if (await rollBack(order, endMs, log)) return 'rolled back';
    } else if (
      work.phase !== 'rolling-back' &&
      bootClock() >= order.atMs + Math.max(SHORTEST_HUNG_MS, work.applyMs * HUNG_SHARE)
    ) {
      log.warn({ pid: holder, lease: order.lease }, 'the applier hangs; killing it');
      process.kill(holder, 'SIGKILL');
    }
    await pause(POLL_MS);
  }
  return 'nothing to do';
}

/** False when somebody else was faster. */
async function rollBack(
  { node, root, stateDir, network, host, lease }: GuardOrder,
  endMs: number,
  log: Log,
): Promise<boolean> {
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
      for (
        let journal = await journalOf(stateDir);
        journal?.work !== undefined || journal?.sound === false;
        journal = await journalOf(stateDir)
      ) {
        if (bootClock() >= endMs) return true;
        await pause(POLL_MS);
      }
    } finally {
      await applier.stop();
    }
    return true;
  } catch (error) {
    if (error instanceof StateError) return false;
    throw error;
  }
}

/** The previous journal has unfinished work, too. */
async function journalOf(stateDir: string): Promise<Journal | undefined> {
  for (const name of ['journal.json', 'journal.prev.json']) {
    const journal = decodeJournal(await readFile(join(stateDir, name), 'utf8').catch(() => ''));
    if (typeof journal !== 'string') return journal;
  }
  return undefined;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.max(1, ms)));
