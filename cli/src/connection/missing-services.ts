import type { FleetClient } from '#libs/client';
import { unreadText } from '../change/change-not-found.js';
import type { Session } from './session.js';

/**
 * Runs a command, and names the services that do not answer on stderr as soon as that is known, with the changes that
 * wait for them: the command may show old data, and what it publishes waits.
 */
export async function warningOfMissing<T>(session: Session, command: () => Promise<T>): Promise<T> {
  // An error here also affects the command itself, which reports it.
  const warning = session
    .fleet()
    .then((fleet) => warn(session, fleet))
    .catch(() => undefined);
  try {
    return await command();
  } finally {
    // A command that fails closes the connection, and services that had not answered by then would look missing.
    await warning;
  }
}

async function warn({ io }: Session, fleet: FleetClient): Promise<void> {
  const missing = await fleet.missingServices();
  if (missing.length === 0) return;
  // While the merger runs, a change that it has not read is one that was published just now.
  const unread = missing.includes('merger') ? await fleet.unreadChanges() : [];
  const waiting = unread.length === 0 ? '' : `; ${unreadText(unread)}`;
  io.say(
    missing.length === 1
      ? `warning: the service ${missing[0]} does not answer, so its work waits until it runs${waiting}: see sluice doctor`
      : `warning: the services ${missing.join(', ')} do not answer, so their work waits until they run${waiting}: see sluice doctor`,
  );
}
