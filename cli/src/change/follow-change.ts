import type { FleetClient } from '#libs/client';
import type { ChangeView, RolloutView, ViewBucket, ViewValues } from '#libs/contracts';
import { EXIT, type ExitCode } from '../output/exit.js';
import { changeStatus, type ChangeStatus } from './change-status.js';

export interface ChangeProgress {
  readonly change: ChangeView | undefined;
  readonly rollout: RolloutView | undefined;
  readonly status: ChangeStatus;
}
export interface FollowOptions {
  readonly timeoutMs?: number;
  readonly signal: AbortSignal;
  /** Called with every change of either view. */
  readonly onUpdate: (now: ChangeProgress) => void;
  /** A paused rollout ends the following; false: it goes on until the change has ended. */
  readonly endsWhenPaused: boolean;
}
export interface FollowResult extends ChangeProgress {
  readonly exit: ExitCode;
  readonly because: 'ended' | 'paused' | 'timeout' | 'interrupted';
}

/** The views have different writers: how long the later one may take to say the same. */
const LAG_MS = 2_000;
const ROLLOUT_ENDS = ['succeeded', 'reverted', 'superseded'];

/** Watches a change until it has ended, is paused, or time is up. */
export async function followChange(fleet: FleetClient, id: string, options: FollowOptions): Promise<FollowResult> {
  const stop = new AbortController();
  let because: FollowResult['because'] = 'ended';
  let seen: ChangeProgress = { change: undefined, rollout: undefined, status: changeStatus(undefined, undefined) };
  let lag: NodeJS.Timeout | undefined;
  const finish = (why: FollowResult['because']): void => {
    if (stop.signal.aborted) return;
    because = why;
    stop.abort();
  };
  const update = (part: Partial<ChangeProgress>): void => {
    const next = { ...seen, ...part };
    seen = { ...next, status: changeStatus(next.change, next.rollout) };
    const rolloutEnded = seen.rollout === undefined || ROLLOUT_ENDS.includes(seen.rollout.phase);
    // A committed change next to a rollout that still rolls is a state that never was: the other view is about to say
    // the same.
    const isComplete = seen.rollout !== undefined || !seen.status.isEnded;
    if (isComplete && (!seen.status.isEnded || rolloutEnded || lag !== undefined)) options.onUpdate(seen);
    if (seen.status.isEnded && rolloutEnded) finish('ended');
    else if (seen.status.word === 'paused' && options.endsWhenPaused) finish('paused');
    else if (seen.status.exit !== undefined && seen.status.word !== 'paused')
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
    if (rollout !== undefined) seen = { ...seen, rollout, status: changeStatus(seen.change, rollout) };
    options.onUpdate(seen);
  }
  const exit = because === 'ended' ? (seen.status.exit ?? EXIT.unexpected) : EXIT.unfinished;
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
