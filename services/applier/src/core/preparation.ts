import type { Config, ConfigEntry } from '#libs/contracts';
import { mayRestart } from './actions.js';
import { driftToReport, replacedItems } from './drift.js';
import { forward, nameOf, rollBackAt, type LeaseResult, type Failure, type Journal } from './journal.js';
import { checkedBefore, probesBefore } from './probing.js';
import { claimedTwice, inOrder, notAmong, wayTo } from './plan.js';
import { guardStep, type Step } from './ports.js';
import { deal } from './reports.js';
import { hangIn, inHand, type Preparation, type State } from './state.js';

/** The share of the lease after which nothing new starts. The probes before a change end sooner. */
const BEGIN_SHARE = 1 / 2;
const PROBES_BEFORE_SHARE = 1 / 3;

/** The next step before anything changes: gather what the change needs, then journal the intent. */
export function preparingStep(state: State, begun: Preparation, nowMs: number): Step {
  const { lease, readMs } = begun;
  const { journal, memory } = state;
  const { kinds } = state.settings;
  const failure = begun.failure ?? hangIn(state, lease.lease);
  if (failure !== undefined) return giveUp(state, begun, failure);
  const lastMs = readMs + lease.applyMs * BEGIN_SHARE;
  if (nowMs >= lastMs) {
    const reason = `nothing was started: ${lease.applyMs} ms is not enough time to apply and to roll back${begun.trouble === '' ? '' : `: ${begun.trouble}`}`;
    return giveUp(state, begun, { fault: 'node', reason, probe: '' });
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
  if (twice !== undefined) return giveUp(state, begun, { fault: 'content', reason: twice, probe: '' });
  if (memory.guarded !== lease.lease) return guardStep(lease, rollBackAt(readMs, lease.applyMs));
  if (!begun.checked)
    return {
      do: 'check',
      config,
      entries: kinds.entries(config),
      actions: lease.actions,
      taken: Object.keys(journal.originals),
    };
  if (begun.before === undefined) {
    return {
      do: 'run-probes',
      probes: checkedBefore(config, mayCutOff, kinds),
      untilMs: nowMs + lease.applyMs * PROBES_BEFORE_SHARE,
    };
  }
  if (begun.originals === undefined)
    return { do: 'read-before', entries: inOrder(config, kinds), known: journal.originals };
  const originals = { ...begun.originals, ...journal.originals };
  if (begun.changed === undefined) return { do: 'compare', items: wayTo(config, originals, kinds) };
  const replaced = begun.overwritten === undefined ? replacedItems(state, lease, config) : [];
  if (replaced.length > 0) return { do: 'compare', items: replaced };
  const drift = driftToReport(state, begun);
  if (drift !== undefined) return planAgain(state, begun, drift);
  const entries = begun.snapshot === undefined ? touched(state, begun, config) : [];
  if (entries.length > 0) return { do: 'snapshot', entries };
  const asked = journal.lastDealt?.escalated;
  const escalated =
    asked?.to === lease.hash && mayRestart(lease) ? { escalated: { action: asked.action, reason: asked.reason } } : {};
  const work = forward(lease, readMs, memory.bootId, {
    probes: probesBefore(state, begun, config, mayCutOff),
    changed: begun.changed,
    ...(begun.snapshot === undefined ? {} : { before: begun.snapshot }),
    ...escalated,
  });
  return { do: 'write-journal', journal: { ...journal, originals, work } };
}

/** The entries of the config in force that the change touches: they differ in the new one, or have drifted. */
function touched(state: State, { drift }: Preparation, to: Config): readonly ConfigEntry[] {
  const { kinds } = state.settings;
  const from = inHand(state, state.journal.inForce);
  const isReplaced = notAmong(kinds.entries(to));
  const isSound = notAmong(drift.flatMap(({ entry }) => entry ?? []));
  return (from === undefined ? [] : kinds.entries(from)).filter(
    (entry) => kinds.snapshots.includes(entry.kind) && (isReplaced(entry) || !isSound(entry)),
  );
}

/** Ends a lease before anything changed: the config in force stays the same. */
function giveUp(state: State, begun: Preparation, failure: Failure): Step {
  const { lease } = begun;
  const verdict = failure.fault === 'content' ? 'invalid' : 'failed';
  return {
    do: 'write-journal',
    journal: undone(state, { ...nameOf(lease), verdict, reason: failure.reason }),
  };
}

/** Nothing was changed. One report lists the drift and gives the lease back, so that the next is planned for it. */
function planAgain(state: State, { lease }: Preparation, drift: readonly string[]): Step {
  const dealt = { ...nameOf(lease), verdict: 'refused' } as const;
  const reason =
    drift.length === 0
      ? 'nothing was started: nothing on the node has drifted any more'
      : `nothing was started: ${lease.drift?.overwrite === true ? 'the actions of the lease were not planned for this drift' : 'the lease would overwrite drift'}: ${drift.slice(0, 5).join('; ')}`;
  return { do: 'write-journal', journal: undone(state, { ...dealt, reason }, drift) };
}

/** The journal after a lease that changed nothing. */
export function undone(state: State, dealt: LeaseResult, drift?: readonly string[]): Journal {
  const { inForce, sound, originals, outstanding } = state.journal;
  return deal(state, {
    ...dealt,
    inForce,
    sound,
    originals,
    extra: drift === undefined ? {} : { differences: drift },
    kind: drift === undefined ? undefined : 'drifted',
    ...(sound || outstanding === undefined ? {} : { outstanding }),
  });
}
