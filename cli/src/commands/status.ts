import type { FleetClient } from '#libs/client';
import type { RolloutView } from '#libs/contracts';
import { changeIdOf } from '../input/arguments.js';
import { changeNotFound } from '../change/change-not-found.js';
import { progressLine, showProgress } from '../change/wait-for-change.js';
import { EXIT, exitCodeOf, type ExitCode } from '../output/exit.js';
import type { ChangeProgress } from '../change/follow-change.js';
import { pause } from '../pause.js';
import { live } from '../output/live.js';
import { fleetCounts, overview, shownChanges, shownPools, type OverviewInput } from '../output/overview.js';
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
  if (change === undefined) throw changeNotFound(id, await fleet.unreadChanges());
  if (session.isJson)
    io.out(JSON.stringify(changeJson(id, { change, rollout, status: changeStatus(change, rollout) })));
  else {
    const upToDate = await upToDateIn(fleet, rollout);
    io.out(rolloutTree({ id, change, rollout, pools, now: io.now(), upToDate }, io.colours));
  }
  return EXIT.done;
}

/**
 * The nodes of an ended rollout that have their desired config now: what kept them from it is over. Of a node that has
 * not answered its lease, nobody knows that.
 */
async function upToDateIn(fleet: FleetClient, rollout: RolloutView | undefined): Promise<ReadonlySet<string>> {
  const names = rollout === undefined || rollout.endedAt === '' ? [] : rollout.worst.map(({ node }) => node);
  const isUpToDate = async (name: string): Promise<boolean> => {
    const [status, lease] = await Promise.all([fleet.get('status', name), fleet.get('leases', name)]);
    const isAnswered = lease === undefined || lease.phase === 'released';
    return (
      isAnswered &&
      status?.restored === true &&
      status.unsure !== true &&
      status.hash !== '' &&
      status.hash === status.desired
    );
  };
  const upToDate = await Promise.all(names.map(isUpToDate));
  return new Set(names.filter((_, i) => upToDate[i]));
}

async function watchChange(session: Session, id: string): Promise<ExitCode> {
  const fleet = await session.fleet();
  // A published change gets a view as soon as the merger reads it. For anything else, the watch would never end.
  if ((await fleet.get('changes', id)) === undefined && !(await fleet.unreadChanges()).includes(id))
    throw changeNotFound(id, []);
  const end = await showProgress(session, id, 'out', { endsWhenPaused: false }, (progress) =>
    session.isJson ? JSON.stringify(changeJson(id, progress)) : progressLine(id, progress, session),
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

/**
 * Reads every second and prints differences, because an overview has no single stream to watch. Once it has shown
 * something, it says that nobody answers, and goes on.
 */
async function watchOverview(session: Session): Promise<ExitCode> {
  const { io } = session;
  const screen = session.isJson ? undefined : live(io, 'out');
  let last = '';
  let isAnswered = true;
  try {
    while (!io.interrupted.aborted) {
      const input = await gather(session).catch((error: unknown) => {
        if (last === '' || exitCodeOf(error) !== EXIT.noConnection) throw error;
        return error as Error;
      });
      if (input instanceof Error) {
        const warning = `warning: ${input.message}. What is shown is from before; trying again`;
        if (screen !== undefined) screen.draw(`${last}\n\n${warning}`);
        else if (isAnswered) io.say(warning);
        isAnswered = false;
      } else {
        const text = session.isJson ? JSON.stringify(overviewJson(input)) : overview(input, io.colours);
        if (screen !== undefined) screen.draw(text);
        else if (text !== last) io.out(text);
        last = text;
        isAnswered = true;
      }
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
    pools: shownPools(input),
    changes: [...open, ...ended].map((change) => {
      const rollout = input.rollouts.get(change.change);
      return changeJson(change.change, { change, rollout, status: changeStatus(change, rollout) });
    }),
  };
}
