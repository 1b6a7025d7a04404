import { EMPTY_CONFIG, type Config, type ConfigEntry, type LeaseView } from '#libs/contracts';
import { mayRestart } from './actions.js';
import { commandsToUndo } from './commands.js';
import { driftToReport, replacedItems } from './drift.js';
import {
  failureOf,
  forward,
  nameOf,
  rollBackAt,
  verdictOf,
  type LeaseResult,
  type Failure,
  type Journal,
} from './journal.js';
import { namedOriginals } from './leaving.js';
import { checkBefore, probesBefore } from './probing.js';
import { claimedTwice, entriesWithObject, inOrder, notAmong, planTo } from './plan.js';
import { guardStep, type Item, type Step } from './ports.js';
import { journalAfterLease } from './reports.js';
import { isAside, isTouched, scopeOf } from './scope.js';
import { hangIn, inHand, lateFailure, type Preparation, type State } from './state.js';

/** The share of the lease after which nothing new starts. The probes before a change end sooner. */
const BEGIN_SHARE = 1 / 2;

/** The next step before anything changes: gather what the change needs, then journal the intent. */
export function preparingStep(state: State, preparation: Preparation, nowMs: number): Step {
  const { lease, readMs } = preparation;
  const { journal, memory } = state;
  const { kinds } = state.settings;
  const failure = preparation.failure ?? hangIn(state, lease.lease);
  if (failure !== undefined) return giveUp(state, preparation, failure);
  const lastMs = readMs + lease.applyMs * BEGIN_SHARE;
  if (nowMs >= lastMs) {
    // What kept the change waiting is the cause: more time would not put an object into the object store.
    const { trouble } = preparation;
    const late = `nothing was started: ${lease.applyMs} ms is not enough time to apply and to roll back`;
    const cause = { fault: 'node', reason: `nothing was started: ${trouble}` } as const;
    return giveUp(state, preparation, trouble === '' ? lateFailure(state, late) : failureOf(cause));
  }
  for (const hash of [lease.hash, journal.inForce]) {
    if (inHand(state, hash) !== undefined) continue;
    if (!memory.absent.has(hash)) return { do: 'load-config', hash };
    return nowMs < memory.bus.retryAtMs
      ? { do: 'wait', untilMs: Math.min(lastMs, memory.bus.retryAtMs) }
      : { do: 'fetch-config', hash, mustKeep: true };
  }
  const config = inHand(state, lease.hash);
  if (config === undefined) throw new Error('unreachable: both configs are loaded');
  const mayCutOff = kinds.mayCutOff(inHand(state, journal.inForce) ?? config, config);
  const twice = claimedTwice(config, kinds);
  if (twice !== undefined) return giveUp(state, preparation, { fault: 'content', reason: twice, probe: '' });
  if (memory.guarded !== lease.lease) return guardStep(lease, rollBackAt(readMs, lease.applyMs));
  const { scope } = preparation;
  if (scope === undefined) return checkStep(state, lease, config, lastMs);
  const isLeft = (entry: ConfigEntry): boolean => isAside(scope, entry, kinds);
  const withObject = entriesWithObject(config).filter((entry) => !isLeft(entry))[preparation.fetched];
  if (withObject !== undefined)
    return nowMs < memory.bus.retryAtMs
      ? { do: 'wait', untilMs: Math.min(lastMs, memory.bus.retryAtMs) }
      : { do: 'fetch-object', entry: withObject, untilMs: lastMs };
  const check = checkBefore(state, preparation, config, mayCutOff, nowMs);
  if (check !== undefined) return check;
  const had = journal.had === undefined ? EMPTY_CONFIG : (inHand(state, journal.had) ?? preparation.had);
  if (preparation.originals === undefined && had === undefined && journal.had !== undefined)
    return nowMs < memory.bus.retryAtMs
      ? { do: 'wait', untilMs: Math.min(lastMs, memory.bus.retryAtMs) }
      : { do: 'fetch-config', hash: journal.had, mustKeep: false, isOptional: true };
  if (preparation.originals === undefined)
    return {
      do: 'read-before',
      had: kinds.entries(had ?? EMPTY_CONFIG).filter(({ kind }) => kinds.snapshots.includes(kind)),
      entries: inOrder(config, kinds).filter((entry) => !isLeft(entry)),
      originals: journal.originals,
      untilMs: lastMs,
    };
  const originals = { ...preparation.originals, ...journal.originals };
  if (preparation.changed === undefined) {
    // A repair fails if nothing else has drifted.
    const isCompared = (item: Item): boolean =>
      item.do === 'restore' ? !(item.key in scope.aside) : lease.kind === 'repair' || !isLeft(item.entry);
    return {
      do: 'compare',
      items: planTo(config, originals, kinds).filter(isCompared),
      untilMs: lastMs,
      sinceMs: readMs,
    };
  }
  const replaced = preparation.overwritten === undefined ? replacedItems(state, lease, config) : [];
  if (replaced.length > 0) return { do: 'compare', items: replaced, untilMs: lastMs, sinceMs: readMs };
  const drift = driftToReport(state, preparation);
  if (drift !== undefined) return planAgain(state, preparation, drift);
  // A degraded node still has content of a failed change: a rollback must not put that back, but the config in force.
  const isWanted = preparation.snapshot === undefined && journal.sound;
  const entries = isWanted ? replacedEntries(state, preparation, config) : [];
  if (entries.length > 0) return { do: 'snapshot', entries, untilMs: lastMs };
  const escalation = journal.lastDealt?.escalated;
  const escalated =
    escalation?.to === lease.hash && mayRestart(lease)
      ? { escalated: { action: escalation.action, reason: escalation.reason } }
      : {};
  const work = forward(lease, readMs, memory.bootId, {
    probes: probesBefore(state, preparation, config, mayCutOff),
    toUndo:
      lease.kind === 'rollback' || lease.undo === true
        ? commandsToUndo(journal, inHand(state, journal.inForce), config)
        : [],
    changed: preparation.changed,
    scope,
    ...(preparation.idleUnits.length === 0 ? {} : { idleUnits: preparation.idleUnits }),
    ...(preparation.snapshot === undefined ? {} : { before: preparation.snapshot }),
    ...escalated,
  });
  const configs = [inHand(state, journal.inForce) ?? EMPTY_CONFIG, config];
  return {
    do: 'write-journal',
    journal: { ...journal, originals: namedOriginals(originals, configs, kinds), work },
  };
}

function checkStep(state: State, lease: LeaseView, config: Config, untilMs: number): Step {
  const { journal, settings } = state;
  const { kinds } = settings;
  const scope = scopeOf(state, lease, config);
  // Of two paths that lead to one place, the one that the change touches is at fault.
  const isLast = (entry: ConfigEntry): boolean => isTouched(scope, entry, kinds);
  const entries = kinds.entries(config);
  return {
    do: 'check',
    config,
    from: inHand(state, journal.inForce) ?? EMPTY_CONFIG,
    entries: [...entries.filter((entry) => !isLast(entry)), ...entries.filter(isLast)],
    actions: lease.actions,
    originals: journal.originals,
    scope,
    untilMs,
  };
}

/** The entries of the config in force that the change touches: they differ in the new one, or have drifted. */
function replacedEntries(state: State, { drift }: Preparation, to: Config): readonly ConfigEntry[] {
  const { kinds } = state.settings;
  const from = inHand(state, state.journal.inForce);
  const isReplaced = notAmong(kinds.entries(to));
  const isSound = notAmong(drift.flatMap(({ entry }) => entry ?? []));
  return (from === undefined ? [] : kinds.entries(from)).filter(
    (entry) => kinds.snapshots.includes(entry.kind) && (isReplaced(entry) || !isSound(entry)),
  );
}

/** Ends a lease before anything changed: the config in force stays the same. */
function giveUp(state: State, preparation: Preparation, failure: Failure): Step {
  const { lease } = preparation;
  return {
    do: 'write-journal',
    journal: undone(state, { ...nameOf(lease), verdict: verdictOf(failure), reason: failure.reason }),
  };
}

/** Nothing was changed. One report lists the drift and gives the lease back, so that the next one is planned for it. */
function planAgain(state: State, { lease }: Preparation, drift: readonly string[]): Step {
  const dealt = { ...nameOf(lease), verdict: 'refused' } as const;
  const reason =
    drift.length === 0
      ? 'nothing was started: the node has no drift any more'
      : `nothing was started: ${lease.drift?.overwrite === true ? 'the actions of the lease were not planned for this drift' : 'the lease would overwrite drift'}: ${drift.slice(0, 5).join('; ')}`;
  return { do: 'write-journal', journal: undone(state, { ...dealt, reason }, drift) };
}

/** The journal after a lease that changed nothing. */
export function undone(state: State, dealt: LeaseResult, drift?: readonly string[]): Journal {
  const { inForce, sound, originals, outstanding } = state.journal;
  return journalAfterLease(state, {
    ...dealt,
    untouched: true,
    inForce,
    sound,
    originals,
    extra: drift === undefined ? {} : { differences: drift },
    kind: drift === undefined ? undefined : 'drifted',
    outstanding,
  });
}
