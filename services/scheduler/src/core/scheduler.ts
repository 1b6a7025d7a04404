import { nodeOfToken, type NewFact } from '#libs/contracts';
import { decided, folding, refused, takeTouched, type Core, type Decision, type Now } from '#libs/engine';
import type { SchedulerDraft } from './draft.js';
import { dump, load, MIGRATIONS } from './dump.js';
import { CHANGE_FACTS } from './fold/changes.js';
import { LEASE_FACTS } from './fold/leases.js';
import { NODE_FACTS } from './fold/nodes.js';
import { ROLLOUT_FACTS } from './fold/rollouts.js';
import { gather } from './gather.js';
import { grantLeases } from './grants.js';
import type { GatherResult, Input, Plan, Reading, SchedulerNeed } from './inputs.js';
import { advanceLeases } from './leases.js';
import { readingOf, rememberReading } from './reading.js';
import { takeReport } from './reports.js';
import { answerRequest } from './requests.js';
import { endRollouts, deferBlocked, reportStalls, startRollouts } from './rollouts.js';
import { outcomeOf } from './lease.js';
import { skipSilent } from './skips.js';
import { State } from './state.js';
import { giveExpired } from './units.js';
import { view, viewKeys } from './views.js';

const { reads, evolve } = folding<State>({ ...CHANGE_FACTS, ...NODE_FACTS, ...LEASE_FACTS, ...ROLLOUT_FACTS });

/**
 * The scheduler decides which node may change when. Invariants after each of its batches:
 * 1. at each grant that takes a unit, the unavailable nodes of the pool do not exceed its budget, except that one may
 *    roll back beyond it while silent or unknown nodes hold units (I1);
 * 2. a node has at most one lease that is not released, and no lease is still applying after its deadline (I2);
 * 3. no forward lease leads to a known-bad hash or recipe (I3), and none is granted in a paused rollout (I6);
 * 4. every open rollout can continue, or ends in the same batch, or is recorded as stalled (I8).
 */
export const schedulerCore: Core<State, Input, SchedulerNeed, GatherResult> = {
  name: 'scheduler',
  version: 30,
  migrations: MIGRATIONS,
  reads,
  wantsTargets: true,
  gather,
  gathersFirst: true,
  // Do not cache a failure: a config that is missing now may be found the next time.
  keeps: (gathered) => 'ok' in gathered && gathered.ok && gathered.only === undefined,
  initial: () => new State(),
  evolve,
  decide,
  remember: (state, reading) => rememberReading(state, reading as Reading),
  separable,
  cursor: (state) => state.cursor.get(),
  takeTouched,
  viewKeys,
  view,
  forgets: ['rollouts'],
  onViewWritten: (state, key, atMs) => {
    const lease = key.bucket === 'leases' ? state.nodes.get(nodeOfToken(key.key))?.lease : undefined;
    const because = outcomeOf(lease);
    if (lease !== undefined && (because === 'skipped' || because === 'left') && !state.shownMs.has(lease.id))
      state.shownMs.set(lease.id, atMs);
  },
  dump,
  load,
};

/**
 * Whether a batch holds only what most turns of a rollout produce: leases that were applied, and new grants. Each of
 * these facts only frees or takes a unit, so they may be appended one by one.
 */
function separable(facts: readonly NewFact[]): boolean {
  return facts.every(
    (fact) =>
      fact.type === 'node.lease.granted' ||
      (fact.type === 'node.lease.settled' && fact.because === 'applied' && fact.released),
  );
}

/** The order of all steps of a decision. The line that grants a lease is `emitGrant` in grants.ts. */
function decide(
  state: State,
  inputs: readonly Input[],
  gathered: ReadonlyMap<string, GatherResult>,
  now: Now,
): Decision<Input, SchedulerNeed> {
  let reading = state.reading;
  const plans = new Map([...gathered].filter((one): one is [string, Plan] => 'ok' in one[1]));
  const decision = decided<State, Input, SchedulerNeed>(state, now, evolve, (draft) => {
    takeInputs(draft, inputs);
    reading = readingOf(draft, inputs, gathered);
    giveExpired(draft);
    skipSilent(draft);
    advanceLeases(draft, reading);
    startRollouts(draft);
    deferBlocked(draft);
    grantLeases(draft, plans);
    deferBlocked(draft);
    endRollouts(draft);
    reportStalls(draft);
  });
  return { ...decision, memory: reading };
}

function takeInputs(draft: SchedulerDraft, inputs: readonly Input[]): void {
  for (const input of inputs) {
    if (draft.full) draft.waiting.add(input);
    else if (input.type === 'report') {
      const refusal = takeReport(draft, input.sequence, input.report);
      if (refusal !== undefined) draft.answers.set(input, refused('bad-incarnation', refusal));
    } else draft.answers.set(input, answerRequest(draft, input.request));
  }
}
