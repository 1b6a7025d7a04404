import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { EDGE_SERVICES, SERVICES } from '#libs/contracts';
import { UsageError } from '../exit.js';
import { connectTarget } from '../nats-context.js';
import { packageRoot } from '../package-root.js';
import type { Session } from '../session.js';

/** `sluice service NAME...`: these services in this process; returns when they were ended, which is up to them. */
export async function service(session: Session, names: readonly string[]): Promise<undefined> {
  const known: readonly string[] = [...SERVICES, ...EDGE_SERVICES];
  for (const name of names)
    if (!known.includes(name))
      throw new UsageError(`there is no service ${JSON.stringify(name)}; there are ${known.join(', ')}`);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    throw new UsageError(`${twice} is named twice: a second copy of a service is another process`);
  const host = join(packageRoot(), 'dist', 'services', 'host.js');
  if (!existsSync(host)) throw new Error(`${host} is missing: run npm run build`);
  exportTarget(session);
  const { hostServices } = (await import(host)) as { hostServices: (names: readonly string[]) => Promise<void> };
  await hostServices(names);
  return undefined;
}

/** Services read their place from the environment. */
export function exportTarget({ flags, io }: Session): void {
  const target = connectTarget(flags, io.env);
  if (target.user !== undefined)
    throw new UsageError(
      `${target.from} has a user and password, and services take a credentials file or a token: name one with --creds`,
    );
  const values = { NATS_URL: target.servers, SLUICE_CREDS: target.creds, SLUICE_TOKEN: target.token };
  for (const [name, value] of Object.entries(values)) if (value !== undefined) process.env[name] = value;
}
