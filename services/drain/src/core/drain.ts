import { nodeToken, type DrainOutcome } from '#libs/contracts';
import {
  answered,
  assertNever,
  decided,
  folding,
  refused,
  takeTouched,
  viewKey,
  type Answer,
  type Core,
  type Decision,
  type Draft,
  type FactTable,
  type Now,
} from '#libs/engine';
import { parseDrain, type RequestOf } from '#libs/manifests';
import { withPauses } from './pauses.js';
import { blockerOf, State, type Block, type Drain, type Strategy } from './state.js';
import { view, writtenBlock } from './views.js';

/** What other tools may tell the drain service. */
export const REQUESTS = { drained: 'ops.node.drained' } as const;
type Request = RequestOf<typeof REQUESTS>;

interface LeaseRef {
  readonly node: string;
  readonly lease: string;
}

/**
 * What a reconcile saw or did on a node, for a lease. It is ignored if that lease has since moved to another phase. It
 * cannot end a drain if the drain settings of the pool have changed meanwhile: the new settings are applied first.
 */
export type DrainObservation = LeaseRef &
  (
    | { readonly what: 'cordoned'; readonly pods: number }
    | { readonly what: 'uncordoned' }
    | { readonly what: 'drained'; readonly evicted: number; readonly amended: number }
    | { readonly what: 'blocked'; readonly block: Block }
    | { readonly what: 'stopped'; readonly outcome: DrainOutcome; readonly reason: string; readonly amended: number }
  );

export type Input =
  | { readonly type: 'request'; readonly request: Request }
  | { readonly type: 'sight'; readonly sight: DrainObservation };
type DrainDraft = Draft<State, Input, never>;

/**
 * The drain service drains a node before it changes, and gives it back afterwards. Invariants after each of its
 * batches:
 * 1. it works only for leases in the phase `draining` or `uncordoning`, and names the lease in all its facts;
 * 2. it drains and uncordons each lease once, and uncordons only what it cordoned (I5);
 * 3. a lease whose drain was stopped is never drained later.
 */
export function drainCore(strategy: Strategy): Core<State, Input> {
  const withStrategy = (state: State): State => Object.assign(state, { strategy });
  return {
    name: 'drain',
    version: 6,
    migrations: { 2: fromBefore, 3: fromBefore, 4: fromBefore, 5: fromBefore },
    reads,
    wantsTargets: false,
    initial: () => withStrategy(new State()),
    evolve,
    decide,
    takeTouched,
    viewKeys: (state) => [...state.drains.keys()].map((node) => viewKey('drains', nodeToken(node))),
    view,
    dump: (state) => [...state.drains.values()],
    load: (dumped, readMs) => withStrategy(loaded(dumped as readonly Drain[], readMs)),
  };
}

/** How each fact changes the fold of the drain service. */
const FACTS: FactTable<State> = {
  'node.lease.granted': (state, fact, { readMs }) => {
    if (fact.phase !== 'draining') return;
    const { node, pool, change, lease, drainMs, drain: how = {}, at: since } = fact;
    const reboots = fact.actions.some(({ kind }) => kind === 'reboot');
    const { pause: pauses } = parseDrain(how);
    const granted = {
      node,
      pool,
      change,
      lease,
      drainMs,
      how,
      pauses,
      reboots,
      since,
      sinceMs: readMs,
      termsMs: readMs,
    };
    put(state, { ...granted, phase: 'draining', amended: 0, cordoned: false, pods: 0, blocked: undefined });
  },
  // The drain settings of the pool have changed: the drain in progress continues with the new ones.
  'node.lease.amended': (state, fact, { readMs: termsMs }) => {
    const { drainMs, drain: how = {} } = fact;
    const drain = drainOf(state, fact);
    if (drain?.phase !== 'draining') return;
    const pauses = withPauses(drain.pauses, parseDrain(how).pause);
    put(state, { ...drain, drainMs, how, pauses, termsMs, amended: drain.amended + 1 });
  },
  'node.cordoned': (state, fact) => patch(state, fact, { cordoned: true, pods: fact.pods }),
  'node.drain.blocked': (state, fact) =>
    patch(state, fact, { blocked: { by: blockerOf(fact.reason, fact.budget), since: fact.since } }),
  'node.drained': (state, fact, { readMs }) => move(state, fact, 'drained', readMs),
  'node.drain.stopped': (state, fact, { readMs }) => move(state, fact, 'stopped', readMs),
  // The lease ended before its node was drained: uncordoning comes next.
  'node.lease.settled': (state, fact, { readMs }) => {
    if (drainOf(state, fact)?.phase === 'draining') move(state, fact, 'stopped', readMs);
  },
  'node.lease.uncordoning': (state, fact, { readMs }) => move(state, fact, 'uncordoning', readMs),
  'node.uncordoned': (state, fact, { readMs }) => move(state, fact, 'uncordoned', readMs),
  'node.lease.released': (state, fact, { readMs }) => move(state, fact, 'uncordoned', readMs),
};

const { reads, evolve } = folding(FACTS);

function drainOf(state: State, { node, lease }: LeaseRef): Drain | undefined {
  const drain = state.drains.get(node);
  return drain?.lease === lease ? drain : undefined;
}

function patch(state: State, fact: LeaseRef, change: Partial<Drain>): void {
  const drain = drainOf(state, fact);
  if (drain !== undefined) put(state, { ...drain, ...change });
}

function move(state: State, fact: LeaseRef & { readonly at: string }, phase: Drain['phase'], sinceMs: number): void {
  const drain = drainOf(state, fact);
  if (drain !== undefined && drain.phase !== phase) put(state, { ...drain, phase, sinceMs, since: fact.at });
}

function put(state: State, drain: Drain): void {
  state.drains.set(drain.node, drain);
  state.open.toggle(drain.node, drain.phase !== 'stopped' && drain.phase !== 'uncordoned');
  state.touched.add(viewKey('drains', nodeToken(drain.node)));
}

function decide(
  state: State,
  inputs: readonly Input[],
  _gathered: ReadonlyMap<string, never>,
  now: Now,
): Decision<Input, never> {
  return decided<State, Input, never>(state, now, evolve, (draft) => {
    for (const input of inputs) {
      if (draft.full) draft.waiting.add(input);
      else if (input.type === 'request') draft.answers.set(input, answer(draft, input.request));
      else take(draft, input.sight);
    }
    for (const node of [...state.open]) {
      const drain = state.drains.get(node);
      if (drain !== undefined && !draft.full) advance(draft, drain);
    }
  });
}

/** Facts that follow without looking at a Node. */
function advance(draft: DrainDraft, drain: Drain): void {
  const { strategy } = draft.state;
  if (strategy === 'kubernetes') return;
  if (drain.phase === 'draining' && strategy === 'none') return drained(draft, drain, 'none', 0);
  // Sluice has cordoned nothing here. An external drainer sees `uncordoning` and undoes its own cordon.
  if (drain.phase === 'uncordoning') uncordoned(draft, drain);
}

function take(draft: DrainDraft, sight: DrainObservation): void {
  const drain = drainOf(draft.state, sight);
  if (drain === undefined) return;
  if (drain.phase !== (sight.what === 'uncordoned' ? 'uncordoning' : 'draining')) return;
  switch (sight.what) {
    case 'uncordoned':
      return uncordoned(draft, drain);
    case 'cordoned':
      if (!drain.cordoned) draft.emit({ type: 'node.cordoned', ...about(drain), pods: sight.pods });
      return;
    case 'drained':
      if (sight.amended === drain.amended) drained(draft, drain, draft.state.strategy, sight.evicted);
      return;
    case 'blocked': {
      const block = writtenBlock(sight.block);
      // The same block is already in the view.
      if (blockerOf(block.reason, block.budget) !== drain.blocked?.by)
        draft.emit({ type: 'node.drain.blocked', ...about(drain), ...block });
      return;
    }
    case 'stopped': {
      const { outcome, reason } = sight;
      if (sight.amended === drain.amended) draft.emit({ type: 'node.drain.stopped', ...about(drain), outcome, reason });
      return;
    }
    default:
      return assertNever(sight);
  }
}

/** The fields that every fact about a drain has. */
const about = ({ node, pool, change, lease }: Drain) => ({ node, pool, change, lease });

const uncordoned = (draft: DrainDraft, drain: Drain): void => draft.emit({ type: 'node.uncordoned', ...about(drain) });

function drained(draft: DrainDraft, drain: Drain, by: string, evicted: number): void {
  const durationMs = Math.max(0, Math.round(draft.now.monotonicMs - drain.sinceMs));
  draft.emit({ type: 'node.drained', ...about(drain), durationMs, evicted, by });
}

function answer(draft: DrainDraft, { node, lease, evicted, by }: Request): Answer {
  const drain = draft.state.drains.get(node);
  if (drain === undefined) return refused('not-found', `node ${node} has no lease that needs a drain`);
  if (lease !== '' && lease !== drain.lease)
    return refused('conflict', `node ${node} is drained for the lease ${drain.lease}, not for ${lease}`);
  if (drain.phase === 'draining') drained(draft, drain, by, evicted);
  else if (drain.phase !== 'drained')
    return refused('conflict', `the lease ${drain.lease} no longer waits for a drain: the drain is ${drain.phase}`);
  return answered({ node, lease: drain.lease });
}

interface EarlierDrain extends Omit<Drain, 'amended' | 'pods' | 'blocked' | 'pauses'> {
  readonly blockedBy?: string;
  readonly blockedSince?: string;
}

/**
 * Version 2 had no amendments and no time of a block. Version 3 had no number of pods. Version 4 wrote '' for no
 * block. Version 5 paused nothing.
 */
const fromBefore = (dumped: unknown): unknown =>
  (dumped as readonly EarlierDrain[]).map(({ blockedBy: by, blockedSince: since, ...drain }) => ({
    amended: 0,
    pods: 0,
    pauses: [],
    ...drain,
    ...(by && since ? { blocked: { by, since } } : {}),
  }));

function loaded(drains: readonly Drain[], readMs: number): State {
  const state = new State();
  for (const drain of drains) put(state, { ...drain, sinceMs: readMs, termsMs: readMs });
  state.touched.clear();
  return state;
}
