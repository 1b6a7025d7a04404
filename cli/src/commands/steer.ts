import { parseDuration } from '../duration.js';
import { UsageError, type ExitCode } from '../exit.js';
import { askedBy, type Session } from '../session.js';
import { ask, changeIdOf, nodeNameOf } from '../steering.js';
import { report } from './apply.js';

export interface SteerFlags {
  readonly reason?: string;
  readonly wait?: string;
}

/** `sluice pause|resume|abort CHANGE`. */
export function steerRollout(
  session: Session,
  verb: 'pause' | 'resume' | 'abort',
  id: string,
  { reason }: SteerFlags,
): Promise<ExitCode> {
  const change = changeIdOf(id);
  const words = {
    pause: `${change} is paused: nodes under way finish; sluice resume ${change} lets it go on`,
    resume: `${change} goes on`,
    abort: `${change} is aborted: what it changed goes back; sluice status ${change} -w shows it`,
  };
  return ask<{ readonly phase: string }>(
    session,
    `ops.rollout.${verb}`,
    { change, ...optional({ reason }) },
    ({ phase }) =>
      verb !== 'abort'
        ? words[verb]
        : phase === 'ended'
          ? `${change} is aborted: it had not started, and changed nothing`
          : phase === 'reverted'
            ? `${change} was aborted, and has gone back`
            : words.abort,
  );
}

/** `sluice retry CHANGE`: publishes its content again, as a new change. */
export async function retry(session: Session, id: string, { wait }: SteerFlags): Promise<ExitCode> {
  const timeoutMs = wait === undefined ? undefined : parseDuration(wait, '--wait');
  const fleet = await session.fleet();
  const answer = await fleet.request<{ readonly change: string }>('ops.config.retry', {
    change: changeIdOf(id),
    by: askedBy(session.io),
  });
  return report(session, answer.change, timeoutMs);
}

/** `sluice skip NODE`: its open rollout goes on without it. */
export function skip(session: Session, name: string, { reason }: SteerFlags): Promise<ExitCode> {
  const node = nodeNameOf(name);
  return ask(
    session,
    'ops.node.skip',
    { node, ...optional({ reason }) },
    () => `${node} is skipped: its rollout goes on without it`,
  );
}

/** `sluice take NODE --owner NAME`: another tool, or a person, has it out of service. */
export function take(
  session: Session,
  name: string,
  { owner, reason, for: duration }: SteerFlags & { readonly owner: string; readonly for?: string },
): Promise<ExitCode> {
  const node = nodeNameOf(name);
  const forMs = duration === undefined ? undefined : parseDuration(duration, '--for');
  return ask<{ readonly pool: string }>(
    session,
    'ops.pool.take',
    { node, owner, ...optional({ reason }), ...(forMs === undefined ? {} : { forMs }) },
    ({ pool }) =>
      `${node} is ${owner}'s${duration === undefined ? '' : ` for ${duration}`}, and takes a unit of pool ${pool}; sluice give ${node} --owner ${owner} puts it back into service${duration === undefined ? '' : ' before'}`,
  );
}

/** `sluice give NODE --owner NAME`: it is in service again. */
export function give(session: Session, name: string, { owner }: { readonly owner: string }): Promise<ExitCode> {
  const node = nodeNameOf(name);
  return ask(session, 'ops.pool.give', { node, owner }, () => `${node} is in service again`);
}

/** `sluice remove NODE`: it has left for good. */
export function removeNode(session: Session, name: string, { reason }: SteerFlags): Promise<ExitCode> {
  const node = nodeNameOf(name);
  return ask(
    session,
    'ops.node.remove',
    { node, ...optional({ reason }) },
    () => `${node} is removed: it counts no longer, until its applier announces itself again (at its next start)`,
  );
}

/** `sluice forgive HASH`: a config that was condemned may be rolled out again. */
export function forgive(session: Session, hash: string, { reason }: SteerFlags): Promise<ExitCode> {
  if (!/^[0-9a-f]{7,64}$/.test(hash))
    throw new UsageError(
      `${JSON.stringify(hash)} is not a hash, nor the first 7 or more of its hex digits: sluice get known-bad lists them`,
    );
  return ask<{ readonly hash: string; readonly recipe: string }>(
    session,
    'ops.known-bad.forgive',
    { hash, reason: reason ?? '' },
    (done) => `forgiven: config ${done.hash}${done.recipe ? ` and recipe ${done.recipe}` : ''}`,
  );
}

const optional = (fields: { readonly reason: string | undefined }): object =>
  fields.reason === undefined ? {} : fields;
