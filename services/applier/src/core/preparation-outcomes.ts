import type { ConfigEntry } from '#libs/contracts';
import { driftAmong, driftText, isLate, overwrittenAmong } from './drift.js';
import { failureOf, type Failure, type Scope } from './journal.js';
import type { CheckRefusal, CheckResult, Difference, Kinds, ProbeResult, Refusal, StepOf } from './ports.js';
import { isAside, isTouched, withAside, withDrift } from './scope.js';
import { lateFailure, type Preparation, withPreparation, type State } from './state.js';

/** After the check of a config. */
export function checkedConfig(state: State, { scope }: StepOf<'check'>, result: CheckResult): State {
  const { refusals, shared, idleUnits = [] } = result;
  const { kinds } = state.settings;
  const left = refusals.flatMap((refusal) => (isLeft(scope, refusal, kinds) ? [refusal] : []));
  const failing = refusals.filter((refusal) => !isLeft(scope, refusal, kinds));
  const { touched, aside } = withAside(scope, left, kinds);
  return withPreparation(state, {
    scope: { touched, aside: { ...aside, ...shared } },
    idleUnits,
    failure: worst(failing),
  });
}

const isLeft = (
  scope: Scope,
  refusal: CheckRefusal,
  kinds: Kinds,
): refusal is CheckRefusal & { readonly entry: ConfigEntry } =>
  refusal.entry !== undefined && refusal.fault === 'node' && !isTouched(scope, refusal.entry, kinds);

/** If the config and the node are both at fault, the config counts: another node would reject it too. */
function worst(refusals: readonly Refusal[]): Failure | undefined {
  const first =
    refusals.find(({ fault }) => fault === 'content') ??
    refusals.find(({ fault }) => fault === 'unreachable') ??
    refusals[0];
  return first === undefined ? undefined : failureOf(first);
}

/** After probes before the change. Without an answer of the target, the change does not begin. */
export function checkedProbes(state: State, results: readonly ProbeResult[]): State {
  const gone = results.find(({ unreachable }) => unreachable === true);
  if (gone !== undefined) return withPreparation(state, { failure: unreachableFault(gone.reason) });
  return withPreparation(state, { before: [...(state.memory.preparation?.before ?? []), ...results] });
}

/** After a comparison before the change: first with the new config, then of what the lease may overwrite. */
export function comparedBefore(state: State, preparation: Preparation, differences: readonly Difference[]): State {
  const gone = differences.find(({ unreachable }) => unreachable === true);
  if (gone !== undefined) return withPreparation(state, { failure: unreachableFault(driftText(gone)) });
  const late = differences.find(isLate);
  if (late !== undefined)
    return withPreparation(state, { failure: lateFailure(state, `nothing was started: ${driftText(late)}`) });
  // No config manages it any more, and it cannot be restored: nothing has been changed yet.
  const lost = differences.find(({ entry, unreadable }) => entry === undefined && unreadable === true);
  if (lost !== undefined) return withPreparation(state, { failure: nodeFault([driftText(lost)]) });
  const { scope, changed, lease } = preparation;
  if (scope === undefined || changed !== undefined)
    return withPreparation(state, { overwritten: overwrittenAmong(state, preparation, differences) });
  const { kinds } = state.settings;
  const left = differences.flatMap((one) => leftIn(scope, one, kinds));
  const rest = differences.filter((one) => leftIn(scope, one, kinds).length === 0);
  const drift = driftAmong(state, rest);
  const unread = left.flatMap(({ isUnread, ...one }) => (isUnread ? [one] : []));
  const whole = withAside(scope, unread, kinds);
  if (lease.kind === 'repair' && rest.length === 0 && left.length > 0)
    return withPreparation(state, { scope: whole, failure: nodeFault(Object.values(whole.aside)) });
  return withPreparation(state, {
    scope: withDrift(
      whole,
      drift.flatMap(({ entry }) => entry ?? []),
      kinds,
    ),
    changed: [...new Set(rest.map(({ what }) => what))],
    drift,
  });
}

interface Left {
  readonly entry: ConfigEntry;
  readonly reason: string;
  readonly isUnread: boolean;
}

/** A difference that the lease leaves, because this node cannot apply or read what is there. */
function leftIn(scope: Scope, difference: Difference, kinds: Kinds): readonly Left[] {
  const { entry, unreadable } = difference;
  if (entry === undefined || isTouched(scope, entry, kinds)) return [];
  const isUnread = unreadable === true;
  return isUnread || isAside(scope, entry, kinds) ? [{ entry, reason: driftText(difference), isUnread }] : [];
}

const unreachableFault = (reason: string): Failure => failureOf({ fault: 'unreachable', reason });

const nodeFault = (reasons: readonly string[]): Failure =>
  failureOf({ fault: 'node', reason: [...new Set(reasons)].slice(0, 5).join('; ') });
