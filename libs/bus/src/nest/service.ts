import type { ProcessOptions, RunningProcess, RunningService, ServiceSpec } from './running-service.js';

// Nest is loaded only by who runs a service: tools and appliers, which use this library too, start without it.

/** Connects, waiting for a server that is away, makes the topology, and runs the services until they are closed. They share one connection, and one reading of the ledger. */
export async function startServices(specs: readonly ServiceSpec[], options?: ProcessOptions): Promise<RunningProcess> {
  return (await import('./bootstrap.js')).startServices(specs, options);
}

/** The whole of a process that runs these services: until a signal, and ends with a clear word and code. */
export async function bootstrapServices(specs: readonly ServiceSpec[]): Promise<void> {
  return (await import('./bootstrap.js')).bootstrapServices(specs);
}

/** One service with a connection of its own, which is closed with it. */
export async function startService(spec: ServiceSpec, options?: ProcessOptions): Promise<RunningService> {
  const { services, close } = await startServices([spec], options);
  return { ...(services[0] as RunningService), close };
}
