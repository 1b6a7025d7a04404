import { correctedDrift, isDriftKept, isOverwritten, type FailingProbe } from '#libs/contracts';
import { DEFAULT_POOL, durationText, parseRolloutPolicy, selects } from '#libs/manifests';
import { policiesOf } from '#libs/rules';
import { isOpen, outcomeOf } from './lease.js';
import {
  isKnownToHave,
  poolPolicy,
  rolloutOf,
  targetOf,
  type NodeState,
  type Rollout,
  type State,
  type TargetClass,
  type TakenUnit,
  type TargetState,
  type Want,
} from './state.js';

/** Who has taken a node out of service, as text for people. */
export const takenText = ({ owner, reason, forMs, at }: TakenUnit): string =>
  `taken by ${owner}${forMs === 0 ? '' : ` for ${durationText(forMs)} from ${at}`}${reason === '' ? '' : `: ${reason}`}`;

/** Who has skipped a node, as text for people. */
export const skippedText = (by: string): string => `skipped by ${by}`;

/** Which probes fail, and why, as text for people. */
export const failingText = (probes: readonly FailingProbe[]): string =>
  probes.map(({ probe, reason }) => `${probe}: ${reason}`).join('; ');

/**
 * Why a change does not reach an unhealthy node, and what to do: a RolloutPolicy that selects it says so. A policy does
 * not keep a node on what a failed change left behind, because that may be why its probes fail.
 */
export function unhealthyBecause(state: State, node: NodeState, change: string): string | undefined {
  if (node.failingProbes.length === 0 || hasFailedContent(node)) return undefined;
  const own = state.changes.get(change);
  const carried = own && { apply: own.policies, delete: own.policyDeletes };
  const strict = policiesOf('RolloutPolicy', state.policies.values(), carried)
    .map(parseRolloutPolicy)
    .find(({ health, selector }) => health === 'strict' && selects(selector, node.labels));
  return (
    strict &&
    `it is unhealthy (${failingText(node.failingProbes)}), and RolloutPolicy/${strict.name} has health: strict: repair the node until its probes pass, or set health: tolerant in RolloutPolicy/${strict.name}`
  );
}

/** The node has a config that was never committed for it: of a change that failed, or was replaced. */
export const hasFailedContent = ({ report, lastDesired }: NodeState): boolean => report?.hash !== lastDesired;

/** Why the applier of a target cannot use it now, as text for people; undefined if it can. */
export const unavailableText = ({ report }: NodeState): string | undefined =>
  report?.unavailable === undefined ? undefined : `unavailable: ${report.unavailable}`;

/** What the scheduler skips on its own is silent, for a reason that its applier may know. */
export const isSkippedByPerson = ({ skippedBy }: NodeState): boolean =>
  skippedBy !== undefined && skippedBy !== 'scheduler';

/** The node is online and may be given a lease. */
const reachable = (node: NodeState): boolean =>
  !node.silent && node.report?.unavailable === undefined && node.taken === undefined && node.skippedBy === undefined;

/** The node has an open lease, so its config may change at any moment. */
const underWay = ({ lease }: NodeState): boolean => lease !== undefined && isOpen(lease);

/** The config that a target must reach now: `to`, or `from` while the rollout is reverting. */
export const wantedHash = (rollout: Pick<Rollout, 'phase'>, target: Pick<TargetState, 'from' | 'to'>): string =>
  rollsBack(rollout.phase) ? target.from : target.to;

/** Whether the rollout brings its nodes back, or has done so. */
export const rollsBack = (phase: Rollout['phase'] | undefined): boolean =>
  phase === 'reverting' || phase === 'reverted';

/** The class that a target counts in, according to the active config of the node. */
export function classOf(rollout: Rollout, target: TargetState, node: NodeState): TargetClass {
  const active = underWay(node);
  if (target.left || !node.joined) return active && node.lease?.change === rollout.change ? 'active' : 'left';
  if (active) return 'active';
  if (rollout.phase === 'reverting' && isUntouched(target, node)) return 'settled';
  if (isKnownToHave(node, wantedHash(rollout, target))) return 'settled';
  return target.deferred === undefined ? 'pending' : 'deferred';
}

/**
 * The rollout has not changed the node, which only lags behind an earlier change: there is nothing to roll back. It
 * gets the committed config later, like any node that lags behind. A node that has something else was changed by a
 * rollout that this one has replaced.
 */
const isUntouched = ({ startedBy }: TargetState, node: NodeState): boolean =>
  startedBy === undefined && isKnownToHave(node, node.lastDesired);

/** Why no lease can be granted for a pending target. It must be deferred, or the rollout would wait forever. */
export function blockedBecause(
  state: State,
  rollout: Rollout,
  target: TargetState,
  node: NodeState,
): string | undefined {
  if (classOf(rollout, target, node) !== 'pending') return undefined;
  if (node.skippedBy !== undefined)
    return (isSkippedByPerson(node) ? undefined : unavailableText(node)) ?? skippedText(node.skippedBy);
  if (outcomeOf(node.lease) === 'unknown')
    return 'unknown: it did not report in time and keeps its lease until it does';
  if (node.lease !== undefined) return undefined;
  if (node.report === undefined) return 'it has never reported its config';
  // One that is only unavailable may answer again in a moment. It sends no heartbeat, so it will be silent otherwise.
  if (node.silent) return unavailableText(node) ?? 'silent';
  if (node.taken !== undefined) return takenText(node.taken);
  if (state.changes.get(rollout.change)?.validated?.incompatible.includes(node.node) === true)
    return 'it is incompatible with this change, and with the committed config too';
  if (rollout.phase !== 'rolling') return undefined;
  if (isKnownBad(state, target)) return 'its config is known-bad';
  return driftInTheWay(state, node) ?? unhealthyBecause(state, node, rollout.change);
}

/** Whether the pool of the node only reports drift: then no change may overwrite it. */
export const keepsDrift = (state: State, { pool }: NodeState): boolean => poolPolicy(state, pool).drift === 'report';

/** Why a config that is not a rollback cannot be applied: it would overwrite drift. */
export function driftInTheWay(state: State, node: NodeState): string | undefined {
  const { drift, pool, report } = node;
  const drifted = { differences: drift?.differences ?? [], restored: report?.restored !== false };
  if (!isDriftKept(poolPolicy(state, pool).drift, drifted)) return undefined;
  const differences = drifted.differences.filter(isOverwritten);
  const more = differences.length > SHOWN_DRIFT ? `; and ${differences.length - SHOWN_DRIFT} more` : '';
  const text = `${differences.slice(0, SHOWN_DRIFT).join('; ')}${more}`;
  if (correctedDrift(differences).length === 0) return `it has drift (${text}): undo it on the node`;
  const wayOut =
    node.pool === DEFAULT_POOL.name
      ? 'select it with a Pool that has drift: overwrite'
      : `set drift: overwrite in Pool/${node.pool}`;
  return `it has drift that would be overwritten (${text}): undo it on the node, or ${wayOut}`;
}
const SHOWN_DRIFT = 3;

export const isKnownBad = (state: State, target: { readonly to: string; readonly recipe: string }): boolean =>
  state.knownBad.has(target.to) || state.knownBad.has(target.recipe);

/** What a node should get next, budgets aside; undefined if it needs nothing or must wait. */
export function wantOf(state: State, node: NodeState): Want | undefined {
  if (!node.joined || node.lease !== undefined || !reachable(node)) return undefined;
  const rollout = rolloutOf(state, node);
  const target = targetOf(state, node);
  if (rollout === undefined || target === undefined || target.left) return wantOutside(state, node);
  if (classOf(rollout, target, node) !== 'pending') return undefined;
  if (blockedBecause(state, rollout, target, node) !== undefined) return undefined;
  switch (rollout.phase) {
    case 'rolling':
      if (rollout.paused) return undefined;
      return { kind: 'forward', change: rollout.change, to: target.to, recipe: target.recipe };
    case 'reverting':
      return { kind: 'rollback', change: rollout.change, to: target.from, recipe: '' };
    case 'complete':
    case 'succeeded':
    case 'reverted':
    case 'superseded':
      return undefined;
  }
}

/** Outside a rollout, a node gets the committed config, or its drift is repaired. */
function wantOutside(state: State, node: NodeState): Want | undefined {
  const { desired, report } = node;
  if (desired === undefined || report === undefined) return undefined;
  if (driftInTheWay(state, node) !== undefined) return undefined;
  const want = { change: '', to: desired.hash, recipe: desired.recipe } as const;
  if (!isKnownToHave(node, desired.hash)) {
    if (unhealthyBecause(state, node, '') !== undefined) return undefined;
    return { kind: desired.joining ? 'join' : 'corrective', ...want };
  }
  const repairs = poolPolicy(state, node.pool).drift === 'repair';
  return repairs && driftToCorrect(node).length > 0 ? { kind: 'repair', ...want } : undefined;
}

/** The drift that a lease of the node corrects. What the node refuses stays until somebody undoes it there. */
export const driftToCorrect = ({ drift }: NodeState): readonly string[] => correctedDrift(drift?.differences ?? []);

/** What must change before a node tries `hash` again after it reported it as invalid, or after reboots did not help. */
export const circumstancesOf = (node: NodeState, hash: string): string =>
  JSON.stringify([
    hash,
    node.report?.incarnation,
    node.report?.nonce,
    node.report?.bootId,
    Object.entries(node.labels).sort(),
  ]);
