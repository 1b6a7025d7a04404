import '../../../libs/process/src/lean-start.js';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { EDGE_SERVICES, SERVICES } from '#libs/contracts';
import { connectTarget } from '#libs/nats';
import type { ServiceSpec } from '#libs/nest';
import { UsageError } from '../output/exit.js';
import { packageRoot } from '../package-root.js';
import type { Session } from '../connection/session.js';

/** `sluice service NAME...`: runs these services in this process, which ends when they do. */
export async function service(session: Session, names: readonly string[]): Promise<undefined> {
  const all: readonly string[] = [...SERVICES, ...EDGE_SERVICES];
  for (const name of names)
    if (!all.includes(name))
      throw new UsageError(`unknown service ${JSON.stringify(name)}; known services: ${all.join(', ')}`);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new UsageError(`${twice} is named twice: run a second copy in another process`);
  const services = join(packageRoot(), 'dist', 'services');
  if (!existsSync(services)) throw new Error(`${services} is missing: run npm run build`);
  const connection = connectTarget(session.flags, session.io.env);
  const { bootstrapServices } = await import('#libs/nest');
  // Loaded by name, because the CLI must not depend on services.
  const load = async (name: string): Promise<ServiceSpec> =>
    ((await import(join(services, name, 'src', 'service.js'))) as { service: ServiceSpec }).service;
  await bootstrapServices(await Promise.all(names.map(load)), connection);
  return undefined;
}
