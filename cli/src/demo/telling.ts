import { randomUUID } from 'node:crypto';
import type { FleetClient } from '#libs/client';
import { followChange, type FollowResult } from '../change/follow-change.js';
import type { Colours } from '../output/io.js';
import { rolloutTree } from '../output/rollout-tree.js';

export interface Stage {
  readonly fleet: FleetClient;
  readonly data: string;
  readonly tell: (text: string) => void;
  readonly colours: Colours;
  readonly signal: AbortSignal;
}

/** One expectation of the demo, and whether it was met. */
export interface Step {
  readonly expected: string;
  readonly actual: string;
  readonly ok: boolean;
}

export interface PublishedChange {
  readonly id: string;
  readonly end: FollowResult;
}

const STEP_MS = 20_000;
const WAIT_MS = 30_000;
const LOOK_MS = 100;

export const titleOf =
  ({ tell, colours }: Stage) =>
  (n: number, text: string): void =>
    tell(`\n${colours.bold(`${n}. ${text}`)}`);

/** Publishes a change, and waits until it has ended. Throws if the demo is interrupted. */
export async function publish(
  { fleet, signal, tell }: Stage,
  change: object,
  timeoutMs = STEP_MS,
): Promise<PublishedChange> {
  const id = await fleet.publishChange('demo', JSON.stringify(change), randomUUID());
  tell(`  $ sluice apply -f change.yaml --wait      # ${id}`);
  const end = await followChange(fleet, id, { timeoutMs, signal, endsWhenPaused: true, onUpdate: () => undefined });
  signal.throwIfAborted();
  return { id, end };
}

export function showTree({ tell, colours }: Stage, { id, end }: PublishedChange): void {
  const tree = rolloutTree(
    { id, change: end.change, rollout: end.rollout, pools: new Map(), now: new Date() },
    colours,
  );
  tell(
    tree
      .split('\n')
      .map((line) => `  ${line}`)
      .join('\n'),
  );
}

/** Whether a change ended as expected. */
export function ends({ id, end }: PublishedChange, exit: number, expected: string): Step {
  return {
    expected,
    actual: `${id} ${end.status.word}${end.because === 'ended' ? '' : ` (${end.because})`} ${end.status.detail}`.trim(),
    ok: end.because === 'ended' && end.exit === exit,
  };
}

/** What is found, compared with what is expected. */
export const isSame = (found: unknown, wanted: unknown, expected: string): Step => {
  const [actual, text] = [found, wanted].map((value) => JSON.stringify(value)) as [string, string];
  return { expected, actual: actual === text ? 'as expected' : actual, ok: actual === text };
};

/** Waits until something holds, but not for long. */
export async function eventually(
  { signal }: Stage,
  expected: string,
  holds: () => boolean | Promise<boolean>,
): Promise<Step> {
  const untilMs = performance.now() + WAIT_MS;
  for (;;) {
    if (await holds()) return { expected, actual: 'as expected', ok: true };
    signal.throwIfAborted();
    if (performance.now() > untilMs) return { expected, actual: `not within ${WAIT_MS / 1_000} s`, ok: false };
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
