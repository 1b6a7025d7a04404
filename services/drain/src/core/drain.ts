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
import { State, type Drain, type Strategy } from './state.js';
import { view } from './views.js';

/** What people and tools say to it under `ops.node`. */
export type Request = {
  readonly op: 'drained';
  readonly node: string;
  readonly lease: string;
  readonly evicted: number;
  readonly by: string;
};

interface OfLease {
  readonly node: string;
  readonly lease: string;
}

/**
 * What was seen, or done, of a node in the name of a lease. It says nothing new if that lease is no longer where it
 * was; nor is a drain over by what its pool said before: what it says now is looked at first.
 */
export type Sight = OfLease &
  (
    | { readonly what: 'cordoned'; readonly pods: number }
    | { readonly what: 'uncordoned' }
    | { readonly what: 'drained'; readonly evicted: number; readonly amended: number }
    | {
        readonly what: 'blocked';
        readonly reason: string;
        readonly budget: string;
        readonly allowed: number;
        readonly pods: readonly string[];
        readonly since: string;
      }
    | { readonly what: 'stopped'; readonly outcome: DrainOutcome; readonly reason: string; readonly amended: number }
  );

export type Input =
  | { readonly type: 'request'; readonly request: Request }
  | { readonly type: 'sight'; readonly sight: Sight };
type DrainDraft = Draft<State, Input, never>;

/**
 * The drain service: gives a node free before it changes, and back afterwards. What always holds after each of its
 * batches: 1. it works only for a lease in its phase `draining` or `uncordoning`, and names that lease in all it says;
 * 2. each lease is drained once and uncordoned once; only what it cordoned is uncordoned (I5); 3. a lease whose drain
 * was given up is never drained after all.
 */
export function drainCore(strategy: Strategy): Core<State, Input> {
  const withStrategy = (state: State): State => Object.assign(state, { strategy });
  return {
    name: 'drain',
    version: 4,
    migrations: { 2: fromBefore, 3: fromBefore },
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

/** What each fact changes in the drain service's fold. */
const FACTS: FactTable<State> = {
  'node.lease.granted': (state, fact, { readMs }) => {
    if (fact.phase !== 'draining') return;
    const { node, pool, change, lease, drainMs, drain: how = {}, at: since } = fact;
    const reboots = fact.actions.some(({ kind }) => kind === 'reboot');
    const granted = { node, pool, change, lease, drainMs, how, reboots, since, sinceMs: readMs, termsMs: readMs };
    put(state, {
      ...granted,
      phase: 'draining',
      amended: 0,
      cordoned: false,
      pods: 0,
      blockedBy: '',
      blockedSince: '',
    });
  },
  // Its pool says now how it is to be drained: what is under way goes on by that.
  'node.lease.amended': (state, fact, { readMs: termsMs }) => {
    const { drainMs, drain: how = {} } = fact;
    const drain = drainOf(state, fact);
    if (drain?.phase === 'draining') put(state, { ...drain, drainMs, how, termsMs, amended: drain.amended + 1 });
  },
  'node.cordoned': (state, fact) => patch(state, fact, { cordoned: true, pods: fact.pods }),
  'node.drain.blocked': (state, fact) => patch(state, fact, { blockedBy: blockOf(fact), blockedSince: fact.since }),
  'node.drained': (state, fact, { readMs }) => move(state, fact, 'drained', readMs),
  'node.drain.stopped': (state, fact, { readMs }) => move(state, fact, 'stopped', readMs),
  // Ended before it was drained: what comes next is uncordoning.
  'node.lease.settled': (state, fact, { readMs }) => {
    if (drainOf(state, fact)?.phase === 'draining') move(state, fact, 'stopped', readMs);
  },
  'node.lease.uncordoning': (state, fact, { readMs }) => move(state, fact, 'uncordoning', readMs),
  'node.uncordoned': (state, fact, { readMs }) => move(state, fact, 'uncordoned', readMs),
  'node.lease.released': (state, fact, { readMs }) => move(state, fact, 'uncordoned', readMs),
};

const { reads, evolve } = folding(FACTS);

function drainOf(state: State, { node, lease }: OfLease): Drain | undefined {
  const drain = state.drains.get(node);
  return drain?.lease === lease ? drain : undefined;
}

function patch(state: State, fact: OfLease, change: Partial<Drain>): void {
  const drain = drainOf(state, fact);
  if (drain !== undefined) put(state, { ...drain, ...change });
}

function move(state: State, fact: OfLease & { readonly at: string }, phase: Drain['phase'], sinceMs: number): void {
  const drain = drainOf(state, fact);
  if (drain !== undefined && drain.phase !== phase) put(state, { ...drain, phase, sinceMs, since: fact.at });
}

function put(state: State, drain: Drain): void {
  state.drains.set(drain.node, drain);
  if (drain.phase === 'stopped' || drain.phase === 'uncordoned') state.open.delete(drain.node);
  else state.open.add(drain.node);
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
      if (draft.full) draft.held.add(input);
      else if (input.type === 'request') draft.answers.set(input, answer(draft, input.request));
      else take(draft, input.sight);
    }
    for (const node of [...state.open]) {
      const drain = state.drains.get(node);
      if (drain !== undefined && !draft.full) advance(draft, drain);
    }
  });
}

/** What follows by itself, where nothing has to be seen of a Node. */
function advance(draft: DrainDraft, drain: Drain): void {
  const { strategy } = draft.state;
  if (strategy === 'kubernetes') return;
  if (drain.phase === 'draining' && strategy === 'none') return drained(draft, drain, 'none', 0);
  // Nothing was cordoned by Sluice; an external drainer hears `uncordoning` and undoes its own.
  if (drain.phase === 'uncordoning') uncordoned(draft, drain);
}

function take(draft: DrainDraft, sight: Sight): void {
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
      const { reason, budget, allowed, pods, since } = sight;
      const block = { reason, budget, allowed, pods: [...pods], since };
      // The same once more is in the view, and no news.
      if (blockOf(sight) !== drain.blockedBy) draft.emit({ type: 'node.drain.blocked', ...about(drain), ...block });
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

/** What every fact about a drain says. */
const about = ({ node, pool, change, lease }: Drain) => ({ node, pool, change, lease });

/** Which block it is: a budget is the same one whichever of its pods are refused. */
export const blockOf = ({ budget, reason }: { readonly budget: string; readonly reason: string }): string =>
  budget === '' ? reason : `budget ${budget}`;

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

/** Version 2 knew of no amendments, and not since when a drain was blocked; version 3 not how many pods there were. */
const fromBefore = (dumped: unknown): unknown =>
  (dumped as readonly Omit<Drain, 'amended' | 'blockedSince' | 'pods'>[]).map((drain) => ({
    amended: 0,
    blockedSince: '',
    pods: 0,
    ...drain,
  }));

function loaded(drains: readonly Drain[], readMs: number): State {
  const state = new State();
  for (const drain of drains) put(state, { ...drain, sinceMs: readMs, termsMs: readMs });
  state.touched.clear();
  return state;
}
