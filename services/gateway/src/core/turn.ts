import { changeId } from '#libs/contracts';
import { asker, type Answers, type Effects, type Program } from '#libs/engine';
import { contentsOf } from './changes.js';
import { decide, type Batch, type GatewayDecision, type GatewayAction, type Timing } from './gateway.js';
import type { State } from './state.js';

/** What the gateway needs from its environment in one turn. */
interface GatewayPort {
  now(): Timing;
  /** The texts of these changes as they were published, in order. */
  'read-changes'(args: { readonly changes: readonly string[] }): readonly string[];
  /** The sequence of the newest change in the stream. */
  'last-change'(): number;
  /**
   * Publishes only if nothing was published after this sequence. Returns the change; undefined if another publisher was
   * faster, or if it is unknown.
   */
  publish(args: { readonly batch: Batch; readonly after: number }): string | undefined;
  /** Continues without waiting: the result of each action is recorded in the state. */
  begin(args: { readonly actions: readonly GatewayAction[] }): void;
}
export type GatewayEffect = Effects<GatewayPort>;
export type GatewayAnswers = Answers<GatewayPort>;

type Turn<T> = Program<GatewayEffect, T>;
const ask = asker<GatewayPort>();

/** Reads, decides, publishes and writes. Returns when to take the next turn. */
export function* turn(state: State): Turn<number> {
  const decided = yield* look(state);
  const [batch] = decided.publish;
  if (batch !== undefined || decided.actions.some((action) => action.do === 'release')) {
    const after = yield* ask({ do: 'last-change' });
    if (yield* readUpTo(state, after)) return 0;
    if (batch !== undefined) {
      const change = yield* ask({ do: 'publish', batch, after });
      if (change !== undefined) state.index.read(change, contentsOf(batch.text, state.digest));
      return 0;
    }
  }
  yield* ask({ do: 'begin', actions: decided.actions });
  return decided.wakeAtMs;
}

/** A decision after everything that it needs was read. */
export function* look(state: State): Turn<GatewayDecision> {
  for (;;) {
    const timing = yield* ask({ do: 'now' });
    state.lookAtDrains(timing.nowMs);
    const decided = decide(state, timing);
    state.remember(decided.memory);
    if (decided.unread.length === 0) return decided;
    yield* read(state, decided.unread);
  }
}

/** Reads what no view shows yet. Returns whether there was anything. */
function* readUpTo(state: State, last: number): Turn<boolean> {
  const unseen: string[] = [];
  for (let sequence = state.readTo + 1; sequence <= last; sequence += 1)
    if (state.index.get(changeId(sequence)) === undefined) unseen.push(changeId(sequence));
  if (unseen.length > 0) yield* read(state, unseen);
  state.readTo = last;
  return unseen.length > 0;
}

function* read(state: State, changes: readonly string[]): Turn<void> {
  const texts = yield* ask({ do: 'read-changes', changes });
  for (const [i, change] of changes.entries()) state.index.read(change, contentsOf(texts[i] ?? '', state.digest));
}
