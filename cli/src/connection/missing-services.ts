import type { FleetClient } from '#libs/client';
import type { Session } from './session.js';

/**
 * Runs a command, and names the services that do not answer on stderr as soon as that is known: what the command shows
 * may be old, and what it publishes waits.
 */
export async function warningOfMissing<T>(session: Session, command: () => Promise<T>): Promise<T> {
  const asked = session.fleet().then((fleet) => warn(session, fleet));
  // What keeps this from being known keeps the command from its answer too, and is an error there.
  asked.catch(() => undefined);
  const result = await command();
  await asked.catch(() => undefined);
  return result;
}

async function warn({ io }: Session, fleet: FleetClient): Promise<void> {
  const missing = await fleet.missingServices();
  if (missing.length === 0) return;
  io.say(
    missing.length === 1
      ? `warning: the service ${missing[0]} does not answer, and nothing it does happens until it runs: see sluice doctor`
      : `warning: the services ${missing.join(', ')} do not answer, and nothing they do happens until they run: see sluice doctor`,
  );
}
