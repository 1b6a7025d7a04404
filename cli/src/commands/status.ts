import { changeIdOf } from '../steering.js';
import { progressLine } from '../change-wait.js';
import { EXIT, type ExitCode } from '../exit.js';
import { followChange, type Followed } from '../follow.js';
import { pause } from '../pause.js';
import { live } from '../screens/live.js';
import { fleetCounts, overview, shownChanges, type OverviewInput } from '../screens/overview.js';
import { rolloutTree } from '../screens/rollout-tree.js';
import type { Session } from '../session.js';
import { standing } from '../standing.js';

/** `sluice status [CHANGE] [-w]`: where things stand, once or as they go. */
export async function status(
  session: Session,
  id: string | undefined,
  flags: { readonly watch?: boolean },
): Promise<ExitCode> {
  if (id === undefined) return flags.watch === true ? watchOverview(session) : showOverview(session);
  return flags.watch === true ? watchChange(session, changeIdOf(id)) : showChange(session, changeIdOf(id));
}

async function showChange(session: Session, id: string): Promise<ExitCode> {
  const { io } = session;
  const fleet = await session.fleet();
  const [change, rollout, pools] = await Promise.all([
    fleet.get('changes', id),
    fleet.get('rollouts', id),
    fleet.list('pools'),
  ]);
  if (change === undefined) throw new Error(`there is no change ${id}: sluice get changes lists them`);
  if (session.isJson) io.out(JSON.stringify(changeJson(id, { change, rollout, standing: standing(change, rollout) })));
  else io.out(rolloutTree({ id, change, rollout, pools, now: io.now() }, io.colours));
  return EXIT.done;
}

async function watchChange(session: Session, id: string): Promise<ExitCode> {
  const { io } = session;
  const fleet = await session.fleet();
  const screen = session.isJson ? undefined : live(io, 'out');
  let latest: Followed | undefined;
  let pools = await fleet.list('pools');
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
  try {
    const end = await followChange(fleet, id, {
      signal: io.interrupted,
      endsWhenPaused: false,
      onUpdate: (seen) => {
        latest = seen;
        if (io.isTerminal && !session.isJson) return draw();
        const line = session.isJson ? JSON.stringify(changeJson(id, seen)) : progressLine(id, seen, session);
        if (line !== lastLine) io.out(line);
        lastLine = line;
      },
    });
    return end.exit;
  } finally {
    clearInterval(refresh);
    screen?.end();
  }
}

async function gather(session: Session): Promise<OverviewInput> {
  const fleet = await session.fleet();
  const [changes, rollouts, pools] = await Promise.all([
    fleet.list('changes'),
    fleet.list('rollouts'),
    fleet.list('pools'),
  ]);
  return { changes, rollouts, pools, now: session.io.now() };
}

async function showOverview(session: Session): Promise<ExitCode> {
  const input = await gather(session);
  session.io.out(session.isJson ? JSON.stringify(overviewJson(input)) : overview(input, session.io.colours));
  return EXIT.done;
}

/** Read again every second, and printed when something is different: a fleet's overview has no one stream to watch. */
async function watchOverview(session: Session): Promise<ExitCode> {
  const { io } = session;
  const screen = session.isJson ? undefined : live(io, 'out');
  let last = '';
  try {
    while (!io.interrupted.aborted) {
      const input = await gather(session);
      const text = session.isJson ? JSON.stringify(overviewJson(input)) : overview(input, io.colours);
      if (io.isTerminal && !session.isJson) screen?.draw(text);
      else if (text !== last) io.out(text);
      last = text;
      await pause(1_000, io.interrupted);
    }
  } finally {
    screen?.end();
  }
  return EXIT.done;
}

const changeJson = (id: string, { change, rollout, standing: at }: Followed): object => ({
  change: id,
  state: at.word,
  detail: at.detail,
  ended: at.isEnded,
  view: change ?? null,
  rollout: rollout ?? null,
});

function overviewJson(input: OverviewInput): object {
  const { open, ended } = shownChanges(input);
  return {
    nodes: fleetCounts(input),
    pools: [...input.pools.values()].filter(({ gone }) => !gone),
    changes: [...open, ...ended].map((change) => {
      const rollout = input.rollouts.get(change.change);
      return changeJson(change.change, { change, rollout, standing: standing(change, rollout) });
    }),
  };
}
