import type { NewFact, NewFactOf, RolloutState } from '#libs/contracts';
import type { Draft } from '#libs/engine';
import type { Input, SchedulerNeed } from './inputs.js';
import { appliedIn, EMPTY_TALLY, type State } from './state.js';

/** The draft of a scheduler decision. */
export type SchedulerDraft = Draft<State, Input, SchedulerNeed>;

/** Emits a fact about a rollout, with the counts before that fact. */
export function emitRollout(
  draft: SchedulerDraft,
  state: RolloutState,
  change: string,
  extra: Partial<NewFactOf<'rollout.started'>> = {},
): void {
  const rollout = draft.state.rollouts.get(change);
  const tally = rollout?.frozen?.tally ?? draft.state.tallies.get(change) ?? EMPTY_TALLY;
  const counts = {
    applied: appliedIn(rollout?.phase ?? 'rolling', tally),
    failed: rollout?.failed ?? 0,
    unknown: rollout?.unknown ?? 0,
    deferred: tally.deferred,
    pending: tally.pending + tally.active,
  };
  const { maxFailures = 0, maxUnavailable = 0 } = rollout ?? {};
  const rest = { reason: '', attempt: 0, replaces: [], maxFailures, maxUnavailable, by: '', nodes: [] };
  draft.emit({ change, ...counts, ...rest, ...extra, type: `rollout.${state}` } as NewFact);
}
