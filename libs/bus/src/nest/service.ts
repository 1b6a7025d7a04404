import type { Type } from '@nestjs/common';
import type { RunningService, ServiceOptions } from './running-service.js';

// Nest is loaded only by who runs a service: tools and appliers, which use this library too, start without it.

/** Connects, waiting for a server that is away, makes the topology, and runs the module until it is closed. */
export async function startService(module: Type, options: ServiceOptions): Promise<RunningService> {
  return (await import('./bootstrap.js')).startService(module, options);
}

/** The whole of a service's `main`: runs it until a signal, and ends the process with a clear word and code. */
export async function bootstrapService(module: Type, options: ServiceOptions): Promise<void> {
  return (await import('./bootstrap.js')).bootstrapService(module, options);
}
