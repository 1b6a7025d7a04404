import type { FailingProbe } from '#libs/contracts';
import { dueProbes, failingProbes } from './health.js';
import { actStep } from './actions.js';
import { degradedUntil, failingActions, lastingFailures, pendingOf, stillFailing } from './failing-actions.js';
import { leaseDemand } from './leases.js';
import { leavingItems } from './leaving.js';
import { nameOf } from './journal.js';
import { itemStep, type Step } from './ports.js';
import { entriesWithObject, forgottenOf, stillManaged, planTo } from './plan.js';
import { undone } from './preparation.js';
import {
  announce,
  boundedProbes,
  drifted,
  isTooHigh,
  isUntold,
  lost,
  repaired,
  probed,
  reborn,
  remade,
} from './reports.js';
import { hasForgotten, inHand, isShown, type State } from './state.js';
import { restoreStep, needsReboot, whatIsWrong } from './rollback.js';

const LONGEST_WAIT_MS = 60_000;
const REMAKE_STEP_MS = 30_000;
/** What is not downloaded by then is continued by the next pass. */
const REPAIR_FETCH_MS = 60_000;
/** A lease has to wait for an action that is tried again, for half of this time. */
const ACT_AGAIN_MS = 40_000;
/** Drift checks and the like have to wait so long. */
const PREFETCH_MS = 60_000;

/**
 * The next step of an applier without work: first what needs no connection, then what it reads and sends on NATS, and
 * last what nothing depends on.
 */
export function idleStep(state: State, nowMs: number): Step {
  return (
    repairStep(state, nowMs) ??
    remakeStep(state, nowMs) ??
    driftStep(state, nowMs) ??
    actAgainStep(state, nowMs) ??
    healthStep(state, nowMs) ??
    busStep(state, nowMs) ??
    prefetchStep(state, nowMs) ??
    tidyStep(state, nowMs) ??
    wait(state, nowMs)
  );
}

/** A failed rollback is retried until it succeeds. */
function repairStep(state: State, nowMs: number): Step | undefined {
  const { journal, memory } = state;
  const { kinds } = state.settings;
  if (journal.sound || nowMs < memory.repair.dueMs) return undefined;
  const config = inHand(state, journal.inForce);
  if (config === undefined) return loadStep(state, nowMs);
  const withObject = entriesWithObject(config)[memory.progress.fetched];
  if (withObject !== undefined && nowMs >= memory.bus.retryAtMs)
    return { do: 'fetch-object', entry: withObject, untilMs: nowMs + REPAIR_FETCH_MS };
  const pass = restoreStep(state, config, nowMs);
  if (pass !== undefined) return pass;
  const failing = lastingFailures(state, nowMs);
  const isWrong = whatIsWrong(state).length > 0 && failing.length === 0;
  if (isWrong || needsReboot(journal.outstanding, memory.bootId)) return undefined;
  const outstanding = failing.length === 0 ? undefined : pendingOf(failing, memory.bootId);
  return {
    do: 'write-journal',
    journal: repaired(state, stillManaged(journal.originals, config, kinds), outstanding),
  };
}

/** Tries actions again that keep failing. */
function actAgainStep(state: State, nowMs: number): Step | undefined {
  const { journal, memory, settings } = state;
  const { outstanding } = journal;
  if (!journal.sound || outstanding?.failing === undefined || nowMs < memory.repair.dueMs) return undefined;
  const config = inHand(state, journal.inForce);
  if (config === undefined) return loadStep(state, nowMs);
  const action = outstanding.actions[memory.progress.acted];
  if (action !== undefined)
    return actStep(action, planTo(config, journal.originals, settings.kinds), nowMs, nowMs + ACT_AGAIN_MS);
  const still = stillFailing(journal, outstanding.actions, memory.progress.failing);
  return { do: 'write-journal', journal: { ...journal, outstanding: still } };
}

/** The first thing after a reboot: recreate the links and routes of the config in force. */
function remakeStep(state: State, nowMs: number): Step | undefined {
  const { journal } = state;
  const { progress, settled } = state.memory;
  const { kinds } = state.settings;
  if (!hasForgotten(state)) return undefined;
  const config = inHand(state, journal.inForce);
  if (config === undefined) return loadStep(state, nowMs);
  const actions = kinds.actionsAfterLoss?.(config) ?? [];
  // From now on it is repaired like after a failed rollback, also if the applier is killed in between.
  if (actions.length > 0) return { do: 'write-journal', journal: lost(state, actions, degradedUntil(state, nowMs)) };
  const items = forgottenOf(planTo(config, journal.originals, kinds), kinds);
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
  const { isRunning, dueMs, round } = memory.drift;
  if (!journal.sound || isRunning || nowMs < dueMs) return undefined;
  const config = inHand(state, journal.inForce);
  if (config === undefined) return loadStep(state, nowMs);
  const { originals } = journal;
  const checks = { config, from: config, originals };
  const items = planTo(config, originals, kinds);
  return { do: 'start-drift-check', items, checks, leaving: leavingItems(journal), round };
}

/** Runs the probes of the config in force at their intervals. A degraded node does not fully have that config. */
function healthStep(state: State, nowMs: number): Step | undefined {
  const { health } = state.memory;
  if (!state.journal.sound) return undefined;
  if (health.probes === undefined) return loadStep(state, nowMs);
  const probes = dueProbes(health, nowMs);
  return probes.length === 0 ? undefined : { do: 'start-probes', probes, round: health.round };
}

/** Loads the config in force from disk, or downloads it if the disk has lost it. */
function loadStep(state: State, nowMs: number): Step | undefined {
  const { journal, memory } = state;
  if (!memory.absent.has(journal.inForce)) return { do: 'load-config', hash: journal.inForce };
  return nowMs < memory.bus.retryAtMs ? undefined : { do: 'fetch-config', hash: journal.inForce, mustKeep: false };
}

/**
 * Downloads what a lease needs while the node is drained for it. Otherwise the download would use up the time to apply,
 * and the node would stay drained for longer.
 */
function prefetchStep({ journal, memory, settings }: State, nowMs: number): Step | undefined {
  const { lease, prefetch, bus } = memory;
  if (lease?.phase !== 'draining' || lease.from !== journal.inForce || !journal.sound) return undefined;
  if (lease.hash === settings.emptyHash) return undefined;
  const dueMs = prefetch?.lease === lease.lease ? prefetch.dueMs : nowMs;
  return nowMs < Math.max(dueMs, bus.retryAtMs)
    ? undefined
    : { do: 'prefetch', lease: lease.lease, hash: lease.hash, untilMs: nowMs + PREFETCH_MS };
}

/** Not during a drain: it would delete what was downloaded for the lease. */
function tidyStep({ journal, memory }: State, nowMs: number): Step | undefined {
  return (memory.untidy || nowMs >= memory.tidyDueMs) && memory.lease?.phase !== 'draining'
    ? { do: 'tidy', configs: [journal.inForce], journal }
    : undefined;
}

function busStep(state: State, nowMs: number): Step | undefined {
  const { journal, memory } = state;
  if (nowMs < memory.bus.retryAtMs) return undefined;
  if (memory.statusReadMs === undefined || nowMs >= memory.statusDueMs) return { do: 'read-status' };
  if (isOutdated(state) && nowMs >= memory.reborn.dueMs) return { do: 'write-journal', journal: reborn(state) };
  const pending = journal.report !== undefined && !isShown(state) ? journal.report : undefined;
  const hasNews = memory.announce || isUntold(state);
  if (pending !== undefined && memory.reportRetry.count === 0 && !(hasNews && pending.kind === 'announced'))
    return { do: 'report', report: pending };
  if (hasNews) return { do: 'write-journal', journal: announce(state) };
  const news = newDrift(state);
  if (news !== undefined) return { do: 'write-journal', journal: drifted(state, news) };
  const failing = isShown(state) ? newlyFailing(state, nowMs) : undefined;
  if (failing !== undefined) return { do: 'write-journal', journal: probed(state, failing) };
  if (nowMs >= memory.leaseDueMs) return { do: 'read-lease' };
  const answer = leaseStep(state, nowMs);
  if (answer !== undefined) return answer;
  if (pending === undefined || nowMs < memory.reportRetry.dueMs) return undefined;
  return memory.statusReadMs < memory.reportRetry.dueMs ? { do: 'read-status' } : { do: 'report', report: pending };
}

/** The answer to a lease that cannot be started. A lease that can be started already was, when it was read. */
function leaseStep(state: State, nowMs: number): Step | undefined {
  const { journal, memory } = state;
  const { lease } = memory;
  if (lease === undefined) return undefined;
  const report = { ...nameOf(lease), verdict: 'refused' } as const;
  switch (leaseDemand(state, lease)) {
    case 'stale':
      return {
        do: 'write-journal',
        journal: undone(state, {
          ...report,
          reason: `planned from ${lease.from}, but the node has ${journal.inForce}`,
        }),
      };
    case 'early':
      return {
        do: 'write-journal',
        journal: undone(state, {
          ...report,
          reason: 'nothing was started: it was granted before the machine restarted',
        }),
      };
    case 'ended':
      return {
        do: 'write-journal',
        journal: undone(state, { ...report, reason: `ended as ${lease.because} before it was started` }),
      };
    case 'again':
      return isShown(state) && memory.viewRetry !== undefined && nowMs >= memory.viewRetry.dueMs
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
  return drift.latest === undefined || sameTexts(drift.latest, last) ? undefined : drift.latest;
}

/**
 * How long the same probes fail until other reasons are reported. Each report is stored, and many reasons contain a
 * number that differs each time, such as a duration. But a number can also be what matters, such as an HTTP status.
 */
const OTHER_WORDS_MS = 60_000;
const OTHER_NUMBERS_MS = 3_600_000;

/** The failing probes, if others are shown, or the same ones with other reasons. */
function newlyFailing(
  { journal, memory: { health, status } }: State,
  nowMs: number,
): readonly FailingProbe[] | undefined {
  const probes = health.isNew ? failingProbes(health) : undefined;
  if (probes === undefined) return undefined;
  const [failing, shown] = [boundedProbes([...failingActions(journal), ...probes]), status?.failingProbes ?? []];
  const isOther = (part: (one: FailingProbe) => string): boolean => !sameTexts(failing.map(part), shown.map(part));
  if (isOther(({ probe }) => probe)) return failing;
  const waitMs = isOther(({ reason }) => reason.replace(/\d+/g, '')) ? OTHER_WORDS_MS : OTHER_NUMBERS_MS;
  const isDue = nowMs >= (health.reportedMs ?? -Infinity) + waitMs;
  return isDue && isOther(({ reason }) => reason) ? failing : undefined;
}

function wait(state: State, nowMs: number): Step {
  const { journal, memory } = state;
  const dues = [
    nowMs + LONGEST_WAIT_MS,
    ...(journal.sound ? [memory.drift.dueMs, ...memory.health.dueMs.values()] : [memory.repair.dueMs]),
    ...(failingActions(journal).length > 0 ? [memory.repair.dueMs] : []),
  ];
  if (nowMs < memory.bus.retryAtMs)
    return { do: 'wait', untilMs: Math.min(...dues.filter((due) => due > nowMs), memory.bus.retryAtMs) };
  dues.push(memory.statusDueMs, memory.leaseDueMs);
  if (memory.prefetch !== undefined && memory.prefetch.lease === memory.lease?.lease) dues.push(memory.prefetch.dueMs);
  if (journal.report !== undefined && !isShown(state)) dues.push(memory.reportRetry.dueMs);
  if (isOutdated(state)) dues.push(memory.reborn.dueMs);
  return { do: 'wait', untilMs: Math.min(...dues.filter((due) => due > nowMs)) };
}

const sameTexts = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((text, i) => text === b[i]);
