import type { PoolView } from '#libs/contracts';
import { EXIT } from '../output/exit.js';
import { followChange, type ChangeProgress, type FollowOptions, type FollowResult } from './follow-change.js';
import { reasonLines } from '../output/reasons.js';
import { live } from '../output/live.js';
import { counts, isInCounts, isInLines, rolloutTree } from '../output/rollout-tree.js';
import { oneLine } from '../output/table.js';
import type { Session } from '../connection/session.js';
import { roughDuration } from '#libs/manifests/lean';

/** Follows a change to its end, for `--wait`; the exit code says how it ended. */
export async function waitForChange(session: Session, id: string, timeoutMs: number): Promise<FollowResult> {
  const { io, isJson } = session;
  const end = await showProgress(session, id, 'err', { timeoutMs, endsWhenPaused: true }, (progress) =>
    isJson ? '' : progressLine(id, progress, session, true),
  );
  if (!isJson) for (const line of closingWords(id, end, timeoutMs, session)) io.say(line);
  return end;
}

/** Follows a change. Redraws its tree on a terminal, and otherwise prints a line for every difference. */
export async function showProgress(
  session: Session,
  id: string,
  stream: 'out' | 'err',
  options: Pick<FollowOptions, 'timeoutMs' | 'endsWhenPaused'>,
  lineOf: (progress: ChangeProgress) => string,
): Promise<FollowResult> {
  const { io } = session;
  const fleet = await session.fleet();
  const screen = session.isJson ? undefined : live(io, stream);
  let pools: ReadonlyMap<string, PoolView> = new Map();
  let latest: ChangeProgress | undefined;
  let lastLine = '';
  const draw = (): void => {
    if (latest !== undefined) screen?.draw(rolloutTree({ id, ...latest, pools, now: io.now() }, io.colours));
  };
  const refresh = async (): Promise<void> => {
    pools = await fleet.list('pools').catch(() => pools);
    draw();
  };
  await refresh();
  const timer = setInterval(() => void refresh(), 1_000);
  try {
    return await followChange(fleet, id, {
      ...options,
      signal: io.interrupted,
      onUpdate: (progress) => {
        latest = progress;
        if (screen !== undefined) return draw();
        const line = lineOf(progress);
        if (line !== lastLine) (stream === 'out' ? io.out : io.say)(line);
        lastLine = line;
      },
    });
  } finally {
    clearInterval(timer);
    draw();
    screen?.end();
  }
}

/** One line for logs: the status of the change, its counts, and the detail unless later lines have it. */
export function progressLine(
  id: string,
  { status, change, rollout }: ChangeProgress,
  { io }: Session,
  hasLinesAfter = false,
): string {
  const isShown =
    isInCounts(status.detail, rollout) ||
    (hasLinesAfter && status.exit !== undefined && isInLines(status.detail, change, rollout));
  const detail = isShown ? '' : status.detail;
  return [id, status.word, rollout === undefined ? '' : counts(rollout, io.colours), detail]
    .filter((part) => part !== '')
    .map(oneLine)
    .join('  ');
}

function closingWords(id: string, end: FollowResult, timeoutMs: number, { io }: Session): string[] {
  switch (end.because) {
    case 'timeout':
      return [
        `${id} is still ${end.status.word} after ${roughDuration(timeoutMs)} and continues in the background: follow it with sluice status ${id} -w, or see what it waits for with sluice why ${id}`,
      ];
    case 'paused':
      return [`${id} is paused: continue with sluice resume ${id}`];
    case 'interrupted':
      return [`${id} continues in the background; stop it and roll it back with sluice abort ${id}`];
    case 'ended':
      if (end.exit === EXIT.done || io.isErrTerminal) return [];
      return [
        ...reasonLines(end.change?.reasons ?? [], io.colours),
        ...(end.rollout?.worst ?? [])
          .filter(({ state }) => ['invalid', 'failed', 'unknown'].includes(state))
          .map(({ node, state, reason }) => `  ${io.colours.red('✖')} ${node} ${state}: ${oneLine(reason)}`),
      ];
  }
}

/** The final status of a change as JSON. */
export function endJson(id: string, end: FollowResult): object {
  return {
    change: id,
    outcome: end.status.word,
    because: end.because,
    reason: end.status.detail,
    reasons: end.change?.reasons ?? [],
    warnings: end.change?.warnings ?? [],
    rollout: end.rollout ?? null,
  };
}
