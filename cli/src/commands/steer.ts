import { askedBy, type Session } from '../connection/session.js';
import { changeIdOf, hashPrefixOf, labelChangesOf, nodeNameOf } from '../input/arguments.js';
import { labelText } from '../output/fleet-tables.js';
import { durationOf } from '../input/times.js';
import { EXIT, type ExitCode } from '../output/exit.js';
import { report } from './apply.js';

export interface SteerFlags {
  readonly reason?: string;
  readonly wait?: string;
}

/** Sends a request to a service and prints the answer: JSON, or a sentence for people. */
async function ask<T>(
  session: Session,
  subject: string,
  body: object,
  sentence: (answer: T) => string,
): Promise<ExitCode> {
  const fleet = await session.fleet();
  const answer = await fleet.request<T>(subject, { ...body, by: askedBy(session.io) });
  if (session.isJson) session.io.out(JSON.stringify(answer));
  else session.io.say(sentence(answer));
  return EXIT.done;
}

/** `sluice pause|resume|abort CHANGE`. */
const steer =
  (verb: 'pause' | 'resume' | 'abort', sentence: (change: string, phase: string) => string) =>
  (session: Session, id: string, { reason }: SteerFlags): Promise<ExitCode> => {
    const change = changeIdOf(id);
    return ask<{ readonly phase: string }>(
      session,
      `ops.rollout.${verb}`,
      { change, ...optional({ reason }) },
      ({ phase }) => `${change} ${sentence(change, phase)}`,
    );
  };

export const pause = steer('pause', (change, phase) =>
  phase === 'waiting'
    ? `paused before it started: it grants no leases until sluice resume ${change}`
    : `paused: nodes that have a lease will finish; continue with sluice resume ${change}`,
);
export const resume = steer('resume', () => 'resumed');
export const abort = steer('abort', (change, phase) => {
  if (phase === 'ended') return 'aborted before it started: no node was changed';
  if (phase === 'reverted') return 'aborted and rolled back';
  return `aborted: rolling back; follow it with sluice status ${change} -w`;
});

/** Asks for a new change that follows from another one, and waits for its end if asked to. */
const publishFrom =
  (subject: string) =>
  async (session: Session, id: string, { wait }: SteerFlags): Promise<ExitCode> => {
    const timeoutMs = durationOf(wait, '--wait');
    const fleet = await session.fleet();
    const request = { change: changeIdOf(id), by: askedBy(session.io) };
    const { change } = await fleet.request<{ readonly change: string }>(subject, request);
    return report(session, change, timeoutMs);
  };

/** `sluice retry CHANGE`: publishes its content again, as a new change. */
export const retry = publishFrom('ops.config.retry');
/** `sluice rollback CHANGE`: publishes the state before it, as a new change. */
export const rollback = publishFrom('ops.config.rollback');

/** `sluice skip NODE`: its open rollout continues without it. */
export function skip(session: Session, name: string, { reason }: SteerFlags): Promise<ExitCode> {
  const node = nodeNameOf(name);
  return ask(
    session,
    'ops.node.skip',
    { node, ...optional({ reason }) },
    () => `${node} skipped: the rollout continues without it`,
  );
}

const LEAST_FOR_MS = 1_000;

/** `sluice take NODE --owner NAME`: another tool, or a person, takes it out of service. */
export function take(
  session: Session,
  name: string,
  { owner, reason, for: duration }: SteerFlags & { readonly owner: string; readonly for?: string },
): Promise<ExitCode> {
  const node = nodeNameOf(name);
  const forMs = durationOf(duration, '--for', LEAST_FOR_MS);
  const [until, sooner] = duration === undefined ? ['', ''] : [` for ${duration}`, ' earlier'];
  return ask<{ readonly pool: string }>(
    session,
    'ops.pool.take',
    { node, owner, ...optional({ reason }), ...(forMs === undefined ? {} : { forMs }) },
    ({ pool }) =>
      `${node} taken out of service by ${owner}${until}; it counts as unavailable in pool ${pool}. Give it back${sooner} with sluice give ${node} --owner ${owner}`,
  );
}

/** `sluice give NODE --owner NAME`: returns it to service. */
export function give(session: Session, name: string, { owner }: { readonly owner: string }): Promise<ExitCode> {
  const node = nodeNameOf(name);
  return ask<{ readonly returned: boolean }>(session, 'ops.pool.give', { node, owner }, ({ returned }) =>
    returned ? `${node} is back in service` : `${node} was not taken: there is nothing to give back`,
  );
}

/** `sluice remove NODE [--force]`: it has left for good. A node that still reports needs `--force`. */
export function removeNode(
  session: Session,
  name: string,
  { reason, force = false }: SteerFlags & { readonly force?: boolean },
): Promise<ExitCode> {
  const node = nodeNameOf(name);
  return ask(
    session,
    'ops.node.remove',
    { node, force, ...optional({ reason }) },
    () => `${node} removed; if its applier starts again, it rejoins the fleet`,
  );
}

/** `sluice label NODE KEY=VALUE KEY-`: sets labels of a node, or removes labels that a person set. */
export function label(session: Session, name: string, changes: readonly string[]): Promise<ExitCode> {
  const node = nodeNameOf(name);
  return ask<{ readonly labels: Readonly<Record<string, string>> }>(
    session,
    'ops.node.label',
    { node, ...labelChangesOf(changes) },
    ({ labels }) => `labels of ${node}: ${labelText(labels) || 'none'}`,
  );
}

/** `sluice clear HASH`: allows a known-bad config to be rolled out again. */
export function clear(session: Session, hash: string, { reason }: SteerFlags): Promise<ExitCode> {
  return ask<{ readonly hash: string; readonly recipe: string }>(
    session,
    'ops.known-bad.clear',
    { hash: hashPrefixOf(hash, '', 'sluice get known-bad'), reason: reason ?? '' },
    (done) =>
      `cleared config ${done.hash}${done.recipe ? ` and recipe ${done.recipe}` : ''}: it may be rolled out again`,
  );
}

const optional = (fields: { readonly reason: string | undefined }): object =>
  fields.reason === undefined ? {} : fields;
