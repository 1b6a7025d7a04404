import type { PoolView } from '#libs/contracts';
import { EXIT, type ExitCode } from './exit.js';
import { followChange, type FollowEnd, type Followed } from './follow.js';
import { reasonLines } from './reasons.js';
import { live } from './screens/live.js';
import { counts, rolloutTree } from './screens/rollout-tree.js';
import type { Session } from './session.js';
import { span } from './duration.js';

/** Follows a change to its end, showing a tree on a terminal and lines elsewhere; the exit code says how it ended. */
export async function waitForChange(
  session: Session,
  id: string,
  timeoutMs: number,
): Promise<{ readonly end: FollowEnd; readonly exit: ExitCode }> {
  const { io } = session;
  const fleet = await session.fleet();
  const screen = session.isJson ? undefined : live(io, 'err');
  let pools: ReadonlyMap<string, PoolView> = new Map();
  let latest: Followed | undefined;
  let lastLine = '';
  const draw = (): void => {
    if (latest !== undefined) screen?.draw(rolloutTree({ id, ...latest, pools, now: io.now() }, io.colours));
  };
  const refresh = setInterval(() => {
    void fleet
      .list('pools')
      .then((listed) => (pools = listed))
      .catch(() => undefined);
    draw();
  }, 1_000);
  let end: FollowEnd;
  try {
    end = await followChange(fleet, id, {
      timeoutMs,
      signal: io.interrupted,
      endsWhenPaused: true,
      onUpdate: (seen) => {
        latest = seen;
        if (io.isErrTerminal) return draw();
        const line = progressLine(id, seen, session);
        if (line !== lastLine && !session.isJson) io.say(line);
        lastLine = line;
      },
    });
    draw();
  } finally {
    clearInterval(refresh);
    screen?.end();
  }
  if (!session.isJson) for (const line of closingWords(id, end, timeoutMs, session)) io.say(line);
  return { end, exit: end.exit };
}

/** One line for logs: where the change stands, and its counts. */
export function progressLine(id: string, { standing, rollout }: Followed, { io }: Session): string {
  return [id, standing.word, rollout === undefined ? '' : counts(rollout, io.colours), standing.detail]
    .filter((part) => part !== '')
    .join('  ');
}

function closingWords(id: string, end: FollowEnd, timeoutMs: number, { io }: Session): string[] {
  switch (end.because) {
    case 'timeout':
      return [
        `${id} is ${end.standing.word} after ${span(timeoutMs)}: it goes on without this command; sluice status ${id} -w follows it, sluice why ${id} says what it waits for`,
      ];
    case 'paused':
      return [`${id} is paused: sluice resume ${id} lets it go on`];
    case 'interrupted':
      return [`${id} goes on without this command; sluice abort ${id} takes it back`];
    case 'ended':
      if (end.exit === EXIT.done || io.isErrTerminal) return [];
      return [
        ...reasonLines(end.change?.reasons ?? [], io.colours),
        ...(end.rollout?.worst ?? [])
          .filter(({ state }) => ['invalid', 'failed', 'unknown'].includes(state))
          .map(({ node, state, reason }) => `  ${io.colours.red('✖')} ${node} ${state}: ${reason}`),
      ];
  }
}

/** What programs get of a change that was followed. */
export function endJson(id: string, end: FollowEnd): object {
  return {
    change: id,
    outcome: end.standing.word,
    because: end.because,
    reason: end.standing.detail,
    reasons: end.change?.reasons ?? [],
    warnings: end.change?.warnings ?? [],
    rollout: end.rollout ?? null,
  };
}
