import type { FleetClient } from '#libs/bus';
import type { ChangeView, RolloutView, ViewBucket, ViewValues } from '#libs/contracts';
import { EXIT, type ExitCode } from './exit.js';
import { standing, type Standing } from './standing.js';

export interface Followed {
  readonly change: ChangeView | undefined;
  readonly rollout: RolloutView | undefined;
  readonly standing: Standing;
}
export interface FollowOptions {
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
  /** Called with every change of either view. */
  readonly onUpdate: (now: Followed) => void;
  /** A paused rollout ends the following; false: it goes on until the change has ended. */
  readonly endsWhenPaused: boolean;
}
export interface FollowEnd extends Followed {
  readonly exit: ExitCode;
  readonly because: 'ended' | 'paused' | 'timeout' | 'interrupted';
}

/** The views have different writers: how long the later one may take to say the same. */
const LAG_MS = 2_000;
const ROLLOUT_ENDS = ['succeeded', 'reverted', 'superseded'];

/** Watches a change until it has ended, is paused, or time is up. */
export async function followChange(fleet: FleetClient, id: string, options: FollowOptions): Promise<FollowEnd> {
  const stop = new AbortController();
  let because: FollowEnd['because'] = 'ended';
  let seen: Followed = { change: undefined, rollout: undefined, standing: standing(undefined, undefined) };
  let lag: NodeJS.Timeout | undefined;
  const finish = (why: FollowEnd['because']): void => {
    if (stop.signal.aborted) return;
    because = why;
    stop.abort();
  };
  const update = (part: Partial<Followed>): void => {
    const next = { ...seen, ...part };
    seen = { ...next, standing: standing(next.change, next.rollout) };
    const rolloutEnded = seen.rollout === undefined || ROLLOUT_ENDS.includes(seen.rollout.phase);
    // A committed change beside a rollout that still rolls is a state that never was: the other view is about to say the same.
    if (!seen.standing.isEnded || rolloutEnded || lag !== undefined) options.onUpdate(seen);
    if (seen.standing.isEnded && rolloutEnded) finish('ended');
    else if (seen.standing.word === 'paused' && options.endsWhenPaused) finish('paused');
    else if (seen.standing.exit !== undefined && seen.standing.word !== 'paused')
      lag ??= setTimeout(() => {
        options.onUpdate(seen);
        finish('ended');
      }, LAG_MS);
  };
  const onInterrupt = (): void => finish('interrupted');
  options.signal.addEventListener('abort', onInterrupt, { once: true });
  if (options.signal.aborted) onInterrupt();
  const timer = options.timeoutMs === undefined ? undefined : setTimeout(() => finish('timeout'), options.timeoutMs);
  try {
    // Once there is a rollout, the first word about a change must not rest on that alone.
    const [change, rollout] = await Promise.all([fleet.get('changes', id), fleet.get('rollouts', id)]);
    if (change !== undefined && rollout !== undefined && !stop.signal.aborted) update({ change, rollout });
    await Promise.all([
      each(fleet, 'changes', id, stop.signal, (change) => update({ change })),
      each(fleet, 'rollouts', id, stop.signal, (rollout) => update({ rollout })),
    ]);
  } finally {
    stop.abort();
    clearTimeout(timer);
    clearTimeout(lag);
    options.signal.removeEventListener('abort', onInterrupt);
  }
  // The end of the change may have come before the first word about its rollout.
  if (because === 'ended' && seen.rollout === undefined) {
    const rollout = await fleet.get('rollouts', id);
    if (rollout !== undefined) seen = { ...seen, rollout, standing: standing(seen.change, rollout) };
  }
  const exit = because === 'ended' ? (seen.standing.exit ?? EXIT.unexpected) : EXIT.unfinished;
  return { ...seen, because, exit };
}

async function each<B extends ViewBucket>(
  fleet: FleetClient,
  bucket: B,
  key: string,
  signal: AbortSignal,
  take: (value: ViewValues[B]) => void,
): Promise<void> {
  if (signal.aborted) return;
  for await (const { value } of fleet.watch(bucket, key, signal)) {
    if (signal.aborted) return;
    take(value);
  }
}
