import { randomUUID } from 'node:crypto';
import { requestPlan, type ChangeContent } from '../change/change-plan.js';
import { firstReview } from '../change/first-review.js';
import { lookFirst } from '../change/look-first.js';
import { endJson, waitForChange } from '../change/wait-for-change.js';
import { waitForRemoval } from '../change/wait-for-removal.js';
import { strategyOf, type StrategyFlags } from '../change/strategy.js';
import { durationOf } from '../input/times.js';
import { warningOfMissing } from '../connection/missing-services.js';
import { EXIT, RejectedError, type ExitCode } from '../output/exit.js';
import { checkSize, readManifestInput } from '../input/manifest-input.js';
import { reasonLines } from '../output/reasons.js';
import { isNotUploadedBy } from './plan.js';
import { uploadFile } from './upload.js';
import { askedBy, SOURCE, type Session } from '../connection/session.js';

export interface PublishFlags extends StrategyFlags {
  readonly filename?: readonly string[];
  readonly message?: string;
  /** The change may touch fragments that belong to other sources. */
  readonly takeOver?: boolean;
  /** A duration; undefined when nobody waits. */
  readonly wait?: string;
}

/** `sluice apply -f PATH`: publishes manifests as one change, and waits for its end if asked to. */
export async function apply(session: Session, flags: PublishFlags): Promise<ExitCode> {
  const { documents, fragments, files } = await readManifestInput(flags.filename ?? [], session.io);
  const { found, unknown } = await lookFirst(session, fragments);
  const content = { apply: documents, delete: [] };
  if (flags.strict === true && found.length > 0) {
    const { rejected } = await requestPlan(session, content, flags);
    throw new RejectedError([...rejected.filter(isNotUploadedBy(files)), ...found]);
  }
  if (found.length + unknown.length > 0)
    session.io.say(reasonLines([...found, ...unknown], session.io.colours, '!').join('\n'));
  for (const file of files) await uploadFile(session, file);
  return publish(session, content, flags);
}

/** Publishes one change, prints its id, and waits for its end if asked to. */
export async function publish(session: Session, content: ChangeContent, flags: PublishFlags): Promise<ExitCode> {
  const { io } = session;
  const timeoutMs = durationOf(flags.wait, '--wait');
  const body = JSON.stringify({
    ...content,
    message: flags.message ?? '',
    author: askedBy(io),
    ...strategyOf(flags),
    ...(flags.takeOver === true ? { takeOver: true } : {}),
  });
  checkSize(body);
  if (flags.strict === true) {
    // The review rejects it, too. But who does not wait for the end would not learn that.
    const { rejected } = await requestPlan(session, content, flags);
    if (rejected.length > 0) throw new RejectedError(rejected);
  }
  const fleet = await session.fleet();
  const change = await fleet.publishChange(SOURCE, body, randomUUID());
  const startedMs = performance.now();
  const exit = await report(session, change, timeoutMs);
  if (exit !== EXIT.done || timeoutMs === undefined || content.delete.length === 0) return exit;
  return waitForRemoval(session, content.delete, timeoutMs - (performance.now() - startedMs));
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
    const { lines, isRejected } = await firstReview(session, change);
    if (!isJson) for (const line of lines) io.say(line);
    return isRejected ? EXIT.rejected : EXIT.done;
  }
  const end = await waitForChange(session, change, timeoutMs);
  if (isJson) io.out(JSON.stringify(endJson(change, end)));
  else if ((end.change?.warnings ?? []).length > 0)
    io.say(reasonLines(end.change?.warnings ?? [], io.colours, '!').join('\n'));
  return end.exit;
}
