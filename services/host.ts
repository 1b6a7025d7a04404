import '../libs/runtime/src/lean-start.js';
import { join } from 'node:path';
import { bootstrapServices, type ServiceSpec } from '#libs/bus';

/** Runs these services in this process until it is ended. Each is found by its name, for no service is known to another. */
export async function hostServices(names: readonly string[]): Promise<void> {
  const loaded = names.map(
    async (name) => ((await import(join(__dirname, name, 'src', 'service.js'))) as { service: ServiceSpec }).service,
  );
  await bootstrapServices(await Promise.all(loaded));
}
