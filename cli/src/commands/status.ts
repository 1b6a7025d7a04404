import { changeIdOf } from '../input/arguments.js';
import { progressLine, showProgress } from '../change/wait-for-change.js';
import { EXIT, type ExitCode } from '../output/exit.js';
import type { ChangeProgress } from '../change/follow-change.js';
import { pause } from '../pause.js';
import { live } from '../output/live.js';
import { fleetCounts, overview, shownChanges, type OverviewInput } from '../output/overview.js';
import { rolloutTree } from '../output/rollout-tree.js';
import type { Session } from '../connection/session.js';
import { warningOfMissing } from '../connection/missing-services.js';
import { changeStatus } from '../change/change-status.js';

/** `sluice status [CHANGE] [-w]`: the fleet and its changes, or one change; once or continuously. */
export async function status(
  session: Session,
  id: string | undefined,
  flags: { readonly watch?: boolean },
): Promise<ExitCode> {
  if (flags.watch === true) return id === undefined ? watchOverview(session) : watchChange(session, changeIdOf(id));
  return warningOfMissing(session, () =>
    id === undefined ? showOverview(session) : showChange(session, changeIdOf(id)),
  );
}

async function showChange(session: Session, id: string): Promise<ExitCode> {
  const { io } = session;
  const fleet = await session.fleet();
  const [change, rollout, pools] = await Promise.all([
    fleet.get('changes', id),
    fleet.get('rollouts', id),
    fleet.list('pools'),
  ]);
  if (change === undefined) throw notShown(id, await fleet.isUnread(id));
  if (session.isJson)
    io.out(JSON.stringify(changeJson(id, { change, rollout, status: changeStatus(change, rollout) })));
  else io.out(rolloutTree({ id, change, rollout, pools, now: io.now() }, io.colours));
  return EXIT.done;
}

/** Why there is nothing to show of a change. */
function notShown(id: string, isUnread: boolean): Error {
  return new Error(
    isUnread
      ? `change ${id} was published, but no service has read it yet: check that the merger runs (sluice doctor), or wait with sluice status ${id} -w`
      : `change ${id} not found: list changes with sluice get changes`,
  );
}

async function watchChange(session: Session, id: string): Promise<ExitCode> {
  const fleet = await session.fleet();
  // What was published gets a view as soon as the merger reads it; for anything else the watch would never end.
  if ((await fleet.get('changes', id)) === undefined && !(await fleet.isUnread(id))) throw notShown(id, false);
  const end = await showProgress(session, id, 'out', { endsWhenPaused: false }, (seen) =>
    session.isJson ? JSON.stringify(changeJson(id, seen)) : progressLine(id, seen, session),
  );
  return end.exit;
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

/** Read every second and printed when it differs: there is no single stream to watch for an overview. */
async function watchOverview(session: Session): Promise<ExitCode> {
  const { io } = session;
  const screen = session.isJson ? undefined : live(io, 'out');
  let last = '';
  try {
    while (!io.interrupted.aborted) {
      const input = await gather(session);
      const text = session.isJson ? JSON.stringify(overviewJson(input)) : overview(input, io.colours);
      if (screen !== undefined) screen.draw(text);
      else if (text !== last) io.out(text);
      last = text;
      await pause(1_000, io.interrupted);
    }
  } finally {
    screen?.end();
  }
  return EXIT.done;
}

const changeJson = (id: string, { change, rollout, status: at }: ChangeProgress): object => ({
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
      return changeJson(change.change, { change, rollout, status: changeStatus(change, rollout) });
    }),
  };
}
