import { nodeOfToken, nodeToken, type DrainView, type FactType } from '#libs/contracts';
import { decided, takeTouched, viewKey, type Answer, type Core, type Decision, type Draft, type Entry, type Now, type ViewBody, type ViewKey } from '#libs/kernel';
import { State, type Drain, type Strategy } from './state.js';

/** What people and tools say to it under `ops.node`. */
export type Request = { readonly op: 'drained'; readonly node: string; readonly lease: string; readonly evicted: number; readonly by: string };
export type Input = { readonly type: 'request'; readonly request: Request };
type DrainDraft = Draft<State, Input, never>;

const READS: readonly FactType[] = ['node.lease.granted', 'node.lease.settled', 'node.lease.uncordoning', 'node.lease.released', 'node.drained', 'node.uncordoned'];

/**
 * The drain service: gives a node free before it changes, and back afterwards. What always holds after each of its batches:
 * 1. it works only for a lease in its phase `draining` or `uncordoning`, and names that lease in all it says;
 * 2. each lease is drained once and uncordoned once; only what it cordoned is uncordoned (I5).
 */
export function drainCore(strategy: Strategy): Core<State, Input> {
  const withStrategy = (state: State): State => Object.assign(state, { strategy });
  return {
    name: 'drain',
    version: 1,
    reads: READS,
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

function evolve(state: State, { fact, readMs }: Entry): void {
  switch (fact.type) {
    case 'node.lease.granted': {
      if (fact.phase !== 'draining') return;
      const { node, pool, change, lease, at: since } = fact;
      return put(state, { node, pool, change, lease, phase: 'draining', sinceMs: readMs, since });
    }
    case 'node.drained':
      return move(state, fact, 'drained', readMs);
    case 'node.lease.settled': {
      // Ended before it was drained: what comes next is uncordoning.
      const drain = state.drains.get(fact.node);
      if (drain?.lease === fact.lease && drain.phase === 'draining') move(state, fact, 'drained', readMs);
      return;
    }
    case 'node.lease.uncordoning':
      return move(state, fact, 'uncordoning', readMs);
    case 'node.uncordoned':
    case 'node.lease.released':
      return move(state, fact, 'uncordoned', readMs);
    default:
      return;
  }
}

function move(state: State, fact: { readonly node: string; readonly lease: string; readonly at: string }, phase: Drain['phase'], sinceMs: number): void {
  const drain = state.drains.get(fact.node);
  if (drain?.lease === fact.lease && drain.phase !== phase) put(state, { ...drain, phase, sinceMs, since: fact.at });
}

function put(state: State, drain: Drain): void {
  state.drains.set(drain.node, drain);
  if (drain.phase === 'draining' || drain.phase === 'uncordoning') state.open.add(drain.node);
  else state.open.delete(drain.node);
  state.touched.add(viewKey('drains', nodeToken(drain.node)));
}

function decide(state: State, inputs: readonly Input[], _gathered: ReadonlyMap<string, never>, now: Now): Decision<Input, never> {
  return decided<State, Input, never>(state, now, evolve, (draft) => {
    for (const input of inputs) {
      if (draft.full) draft.held.add(input);
      else draft.answers.set(input, answer(draft, input.request));
    }
    for (const node of [...state.open]) {
      const drain = state.drains.get(node);
      if (drain !== undefined && !draft.full) advance(draft, drain);
    }
  });
}

function advance(draft: DrainDraft, drain: Drain): void {
  if (drain.phase === 'draining' && draft.state.strategy === 'none') return drained(draft, drain, 'none', 0);
  const { node, pool, change, lease } = drain;
  // Without Kubernetes nothing was cordoned by Sluice; an external drainer hears `uncordoning` and undoes its own.
  if (drain.phase === 'uncordoning') draft.emit({ type: 'node.uncordoned', node, pool, change, lease });
}

function drained(draft: DrainDraft, { node, pool, change, lease, sinceMs }: Drain, by: string, evicted: number): void {
  draft.emit({ type: 'node.drained', node, pool, change, lease, durationMs: Math.max(0, Math.round(draft.now.monotonicMs - sinceMs)), evicted, by });
}

function answer(draft: DrainDraft, { node, lease, evicted, by }: Request): Answer {
  const drain = draft.state.drains.get(node);
  if (drain === undefined) return { ok: false, code: 'not-found', message: `no lease of ${node} asks for a drain` };
  if (lease !== '' && lease !== drain.lease) return { ok: false, code: 'conflict', message: `the lease of ${node} that asks for a drain is ${drain.lease}, not ${lease}` };
  if (drain.phase === 'draining') drained(draft, drain, by, evicted);
  else if (drain.phase !== 'drained') return { ok: false, code: 'conflict', message: `${drain.lease} of ${node} no longer waits for a drain: it is ${drain.phase}` };
  return { ok: true, body: { node, lease: drain.lease } };
}

function view(state: State, { key }: ViewKey): ViewBody | undefined {
  const drain = state.drains.get(nodeOfToken(key));
  if (drain === undefined) return undefined;
  const { node, pool, lease, since } = drain;
  const shown: Omit<DrainView, 'ledger'> = {
    node, pool, lease, since, strategy: state.strategy, reason: '',
    state: drain.phase === 'draining' ? 'draining' : drain.phase === 'uncordoned' ? 'uncordoned' : 'drained',
  };
  return shown;
}

function loaded(drains: readonly Drain[], readMs: number): State {
  const state = new State();
  for (const drain of drains) put(state, { ...drain, sinceMs: readMs });
  state.touched.clear();
  return state;
}
