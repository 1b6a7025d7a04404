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
  /** Stop when the rollout is paused; false: continue until the change has ended. */
  readonly endsWhenPaused: boolean;
}
export interface FollowResult extends ChangeProgress {
  readonly exit: ExitCode;
  readonly because: 'ended' | 'paused' | 'timeout' | 'interrupted';
}

/** The views have different writers: how long to wait until the later one agrees. */
const LAG_MS = 2_000;
const ROLLOUT_ENDS = ['succeeded', 'reverted', 'superseded'];

/** Watches a change until it has ended, is paused, or time is up. Of a duplicate, the change that it repeats. */
export async function followChange(fleet: FleetClient, id: string, options: FollowOptions): Promise<FollowResult> {
  const stop = new AbortController();
  let because: FollowResult['because'] = 'ended';
  let progress: ChangeProgress = { change: undefined, rollout: undefined, status: changeStatus(undefined, undefined) };
  let lag: NodeJS.Timeout | undefined;
  const finish = (why: FollowResult['because']): void => {
    if (stop.signal.aborted) return;
    because = why;
    stop.abort();
  };
  const update = (part: Partial<ChangeProgress>): void => {
    const next = { ...progress, ...part };
    progress = { ...next, status: changeStatus(next.change, next.rollout) };
    // A committed change without a rollout, or with one in progress, never existed: the other view is late.
    const rolloutEnded =
      progress.rollout === undefined
        ? progress.status.word !== 'committed'
        : ROLLOUT_ENDS.includes(progress.rollout.phase);
    const isComplete = progress.rollout !== undefined || !progress.status.isEnded;
    if (isComplete && (!progress.status.isEnded || rolloutEnded || lag !== undefined)) options.onUpdate(progress);
    if (progress.status.isEnded && rolloutEnded) finish('ended');
    else if (progress.status.word === 'paused' && options.endsWhenPaused) finish('paused');
    else if (progress.status.exit !== undefined && progress.status.word !== 'paused')
      lag ??= setTimeout(() => {
        options.onUpdate(progress);
        finish('ended');
      }, LAG_MS);
  };
  const onInterrupt = (): void => finish('interrupted');
  options.signal.addEventListener('abort', onInterrupt, { once: true });
  if (options.signal.aborted) onInterrupt();
  const timer = options.timeoutMs === undefined ? undefined : setTimeout(() => finish('timeout'), options.timeoutMs);
  try {
    // Once there is a rollout, the first status of a change must not rely on that alone.
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
  // The end of the change may have arrived before the first view of its rollout.
  if (because === 'ended' && progress.rollout === undefined) {
    const rollout = await fleet.get('rollouts', id);
    if (rollout !== undefined) progress = { ...progress, rollout, status: changeStatus(progress.change, rollout) };
    options.onUpdate(progress);
  }
  const first = progress.change?.duplicateOf;
  if (because === 'ended' && first !== undefined) return followChange(fleet, first, options);
  const exit = because === 'ended' ? (progress.status.exit ?? EXIT.unexpected) : EXIT.unfinished;
  return { ...progress, because, exit };
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
