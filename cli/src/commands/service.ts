import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { EDGE_SERVICES, SERVICES } from '#libs/contracts';
import { UsageError } from '../exit.js';
import { connectTarget } from '../nats-context.js';
import { packageRoot } from '../package-root.js';
import type { Session } from '../session.js';

/** `sluice service NAME`: one service in this process; returns when it was ended, which is up to the service. */
export async function service(session: Session, name: string): Promise<undefined> {
  const known: readonly string[] = [...SERVICES, ...EDGE_SERVICES];
  if (!known.includes(name)) throw new UsageError(`there is no service ${JSON.stringify(name)}; there are ${known.join(', ')}`);
  const main = join(packageRoot(), 'dist', 'services', name, 'src', 'main.js');
  if (!existsSync(main)) throw new Error(`${main} is missing: run npm run build`);
  exportTarget(session);
  await import(main);
  return undefined;
}

/** Services read their place from the environment. */
export function exportTarget({ flags, io }: Session): void {
  const target = connectTarget(flags, io.env);
  if (target.user !== undefined) throw new UsageError(`${target.from} has a user and password, and services take a credentials file or a token: name one with --creds`);
  const values = { NATS_URL: target.servers, SLUICE_CREDS: target.creds, SLUICE_TOKEN: target.token };
  for (const [name, value] of Object.entries(values)) if (value !== undefined) process.env[name] = value;
}
