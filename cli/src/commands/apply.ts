import { randomUUID } from 'node:crypto';
import type { FragmentRef } from '#libs/contracts';
import { endJson, waitForChange } from '../change/wait-for-change.js';
import { durationOf } from '../input/times.js';
import { warningOfMissing } from '../connection/missing-services.js';
import { EXIT, UsageError, type ExitCode } from '../output/exit.js';
import { checkSize, readManifestInput } from '../input/manifest-input.js';
import { reasonLines } from '../output/reasons.js';
import { askedBy, type Session } from '../connection/session.js';

export interface PublishFlags {
  readonly filename?: readonly string[];
  readonly message?: string;
  /** How many nodes may fail before the change is rolled back. */
  readonly maxFailures?: string;
  /** A warning rejects the change. */
  readonly strict?: boolean;
  /** A duration; undefined when nobody waits. */
  readonly wait?: string;
}

const SOURCE = 'cli';

/** `sluice apply -f PATH`: publishes manifests as one change, and waits for its end if asked to. */
export async function apply(session: Session, flags: PublishFlags): Promise<ExitCode> {
  const { documents } = await readManifestInput(flags.filename ?? [], session.io);
  return publish(session, { apply: documents, delete: [] }, flags);
}

/** Publishes one change, prints its id, and waits for its end if asked to. */
export async function publish(
  session: Session,
  content: { readonly apply: readonly unknown[]; readonly delete: readonly FragmentRef[] },
  flags: PublishFlags,
): Promise<ExitCode> {
  const { io } = session;
  const timeoutMs = durationOf(flags.wait, '--wait');
  const body = JSON.stringify({ ...content, message: flags.message ?? '', author: askedBy(io), ...strategyOf(flags) });
  checkSize(body);
  const fleet = await session.fleet();
  const { change } = await fleet.publishChange(SOURCE, body, `${SOURCE}:${randomUUID()}`);
  return report(session, change, timeoutMs);
}

function strategyOf({ maxFailures, strict }: PublishFlags): object {
  if (maxFailures !== undefined && !/^\d{1,6}$/.test(maxFailures))
    throw new UsageError(`--max-failures: ${JSON.stringify(maxFailures)} is not a number of nodes`);
  const strategy = {
    ...(maxFailures === undefined ? {} : { maxFailures: Number(maxFailures) }),
    ...(strict === true ? { strict } : {}),
  };
  return Object.keys(strategy).length === 0 ? {} : { strategy };
}

/** Prints the ID of a published change, and how it ended if the caller waits. */
export async function report(session: Session, change: string, timeoutMs: number | undefined): Promise<ExitCode> {
  return warningOfMissing(session, () => reportEnd(session, change, timeoutMs));
}

async function reportEnd(session: Session, change: string, timeoutMs: number | undefined): Promise<ExitCode> {
  const { io, isJson } = session;
  if (!isJson) io.out(change);
  if (timeoutMs === undefined) {
    if (isJson) io.out(JSON.stringify({ change }));
    else io.say(`published; follow it with sluice status ${change} -w`);
    return EXIT.done;
  }
  const end = await waitForChange(session, change, timeoutMs);
  if (isJson) io.out(JSON.stringify(endJson(change, end)));
  else if ((end.change?.warnings ?? []).length > 0)
    io.say(reasonLines(end.change?.warnings ?? [], io.colours, '!').join('\n'));
  return end.exit;
}
