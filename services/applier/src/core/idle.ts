import { leaseDemand } from './leases.js';
import { nameOf } from './journal.js';
import { itemStep, type Step } from './ports.js';
import { forgottenOf, stillManaged, wayTo } from './plan.js';
import { undone } from './preparation.js';
import { announce, drifted, isTooHigh, mended, reborn, remade } from './reports.js';
import { hasForgotten, inHand, isShown, type State } from './state.js';
import { mendingStep, needsReboot, whatIsWrong } from './rollback.js';

const LONGEST_WAIT_MS = 60_000;
const REMAKE_STEP_MS = 30_000;

/**
 * The next step of an applier without work: first what needs no connection, then what it reads and sends on NATS, and
 * last what nothing depends on.
 */
export function idleStep(state: State, nowMs: number): Step {
  return (
    mendStep(state, nowMs) ??
    remakeStep(state, nowMs) ??
    driftStep(state, nowMs) ??
    busStep(state, nowMs) ??
    tidyStep(state) ??
    wait(state, nowMs)
  );
}

/** A failed rollback is retried until it succeeds. */
function mendStep(state: State, nowMs: number): Step | undefined {
  const { journal, memory } = state;
  const { kinds } = state.settings;
  if (journal.sound || nowMs < memory.mend.dueMs) return undefined;
  const config = inHand(state, journal.inForce);
  if (config === undefined) return loadStep(state, nowMs);
  const pass = mendingStep(state, config, nowMs);
  if (pass !== undefined) return pass;
  const isWrong = whatIsWrong(state).length > 0 || needsReboot(journal.outstanding, memory.bootId);
  return isWrong
    ? undefined
    : { do: 'write-journal', journal: mended(state, stillManaged(journal.originals, config, kinds)) };
}

/** The first thing after a reboot: recreate the links and routes of the config in force. */
function remakeStep(state: State, nowMs: number): Step | undefined {
  const { journal } = state;
  const { progress, settled } = state.memory;
  const { kinds } = state.settings;
  if (!hasForgotten(state)) return undefined;
  const config = inHand(state, journal.inForce);
  if (config === undefined) return loadStep(state, nowMs);
  const items = forgottenOf(wayTo(config, journal.originals, kinds), kinds);
  const item = items[progress.done];
  if (item !== undefined) return itemStep(item, nowMs + REMAKE_STEP_MS);
  if (progress.differences === undefined) return { do: 'compare', items };
  const isWrong = whatIsWrong(state).length > 0;
  if (isWrong && !settled) return { do: 'settle', untilMs: nowMs + REMAKE_STEP_MS };
  return { do: 'write-journal', journal: remade(state, isWrong) };
}

function driftStep(state: State, nowMs: number): Step | undefined {
  const { journal, memory } = state;
  const { kinds } = state.settings;
  if (!journal.sound || nowMs < memory.drift.dueMs) return undefined;
  const config = inHand(state, journal.inForce);
  if (config === undefined) return loadStep(state, nowMs);
  return { do: 'compare', items: wayTo(config, journal.originals, kinds) };
}

/** Loads the config in force from disk, or downloads it if the disk has lost it. */
function loadStep(state: State, nowMs: number): Step | undefined {
  const { journal, memory } = state;
  if (!memory.absent.has(journal.inForce)) return { do: 'load-config', hash: journal.inForce };
  return nowMs < memory.bus.retryAtMs ? undefined : { do: 'fetch-config', hash: journal.inForce, mustKeep: false };
}

function tidyStep({ journal, memory }: State): Step | undefined {
  return memory.untidy ? { do: 'tidy', configs: [journal.inForce], journal } : undefined;
}

function busStep(state: State, nowMs: number): Step | undefined {
  const { journal, memory } = state;
  if (nowMs < memory.bus.retryAtMs) return undefined;
  if (memory.statusReadMs === undefined || nowMs >= memory.statusDueMs) return { do: 'read-status' };
  if (isOutdated(state) && nowMs >= memory.reborn.dueMs) return { do: 'write-journal', journal: reborn(state) };
  const pending = journal.report !== undefined && !isShown(state) ? journal.report : undefined;
  if (pending !== undefined && memory.sent.count === 0 && !(memory.announce && pending.kind === 'announced'))
    return { do: 'report', report: pending };
  if (memory.announce) return { do: 'write-journal', journal: announce(state) };
  const news = newDrift(state);
  if (news !== undefined) return { do: 'write-journal', journal: drifted(state, news) };
  if (nowMs >= memory.leaseDueMs) return { do: 'read-lease' };
  const answer = leaseStep(state, nowMs);
  if (answer !== undefined) return answer;
  if (pending === undefined || nowMs < memory.sent.dueMs) return undefined;
  return memory.statusReadMs < memory.sent.dueMs ? { do: 'read-status' } : { do: 'report', report: pending };
}

/** The answer to a lease that cannot be started. A lease that can be started already was, when it was read. */
function leaseStep(state: State, nowMs: number): Step | undefined {
  const { journal, memory } = state;
  const { lease } = memory;
  if (lease === undefined) return undefined;
  const named = { ...nameOf(lease), verdict: 'refused' } as const;
  switch (leaseDemand(state, lease)) {
    case 'stale':
      return {
        do: 'write-journal',
        journal: undone(state, { ...named, reason: `planned from ${lease.from}, but the node has ${journal.inForce}` }),
      };
    case 'early':
      return {
        do: 'write-journal',
        journal: undone(state, {
          ...named,
          reason: 'nothing was started: it was granted before the machine restarted',
        }),
      };
    case 'ended':
      return {
        do: 'write-journal',
        journal: undone(state, { ...named, reason: `ended as ${lease.because} before it was started` }),
      };
    case 'again':
      return isShown(state) && memory.lost !== undefined && nowMs >= memory.lost.dueMs
        ? { do: 'write-journal', journal: announce(state) }
        : undefined;
    case 'begin':
    case 'nothing':
      return undefined;
  }
}

/** Whether the status shows another incarnation of this node, or reports that this journal does not have. */
function isOutdated(state: State): boolean {
  const {
    journal,
    memory: { status },
  } = state;
  if (journal.incarnation === 0 || isTooHigh(state)) return true;
  if (status === undefined || status.incarnation < journal.incarnation) return false;
  return status.incarnation > journal.incarnation || status.nonce !== journal.nonce || status.seq > journal.seq;
}

/** The drift that was found, if it differs from the last report. */
function newDrift({ memory: { drift, status } }: State): readonly string[] | undefined {
  const last = drift.reported ?? status?.drifted ?? [];
  return drift.found === undefined || sameTexts(drift.found, last) ? undefined : drift.found;
}

function wait(state: State, nowMs: number): Step {
  const { journal, memory } = state;
  const dues = [nowMs + LONGEST_WAIT_MS, journal.sound ? memory.drift.dueMs : memory.mend.dueMs];
  if (nowMs < memory.bus.retryAtMs)
    return { do: 'wait', untilMs: Math.min(...dues.filter((due) => due > nowMs), memory.bus.retryAtMs) };
  dues.push(memory.statusDueMs, memory.leaseDueMs);
  if (journal.report !== undefined && !isShown(state)) dues.push(memory.sent.dueMs);
  if (isOutdated(state)) dues.push(memory.reborn.dueMs);
  return { do: 'wait', untilMs: Math.min(...dues.filter((due) => due > nowMs)) };
}

const sameTexts = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((text, i) => text === b[i]);
