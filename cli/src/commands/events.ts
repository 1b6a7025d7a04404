import { parseSince } from '../duration.js';
import { EXIT, type ExitCode } from '../exit.js';
import { eventLine } from '../screens/events.js';
import type { Session } from '../session.js';

export interface EventFlags {
  readonly since?: string;
  readonly subject?: string;
  /** False: end at what is the last message now. */
  readonly follow: boolean;
}

/** `sluice events`: the messages of all three streams as they come, or from a time on. */
export async function events(session: Session, flags: EventFlags): Promise<ExitCode> {
  const { io } = session;
  const since = flags.since === undefined ? undefined : parseSince(flags.since, io.now());
  const fleet = await session.fleet();
  const messages = fleet.events({
    follow: flags.follow,
    signal: io.interrupted,
    ...(since === undefined ? {} : { since }),
    ...(flags.subject === undefined ? {} : { subject: flags.subject }),
  });
  for await (const event of messages) io.out(session.isJson ? JSON.stringify(event) : eventLine(event, io.colours));
  return EXIT.done;
}
