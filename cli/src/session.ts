import { userInfo } from 'node:os';
import type { FleetClient } from '#libs/bus';
import type { Io } from './io.js';
import { connectTarget, type ConnectFlags } from './nats-context.js';

export interface GlobalFlags extends ConnectFlags {
  readonly output?: 'json' | 'yaml';
}

/** What every command gets: its streams, the common flags, and the way to the fleet. */
export interface Session {
  readonly io: Io;
  readonly flags: GlobalFlags;
  readonly isJson: boolean;
  /** Connects at the first call; throws NoConnectionError when no server answers. */
  fleet(): Promise<FleetClient>;
  close(): Promise<void>;
}

/** Without an answer by then the command ends with exit code 6. */
export const CONNECT_MS = 4_000;

/** Opens a session that connects only when it has to. */
export function openSession(io: Io, flags: GlobalFlags): Session {
  let fleet: Promise<FleetClient> | undefined;
  const connect = async (): Promise<FleetClient> => {
    const target = connectTarget(flags, io.env);
    const { connectFleet, NoConnectionError } = await import('#libs/bus');
    try {
      return await connectFleet({ ...target, servers: target.servers.split(','), timeoutMs: CONNECT_MS });
    } catch (error) {
      if ((error as Error).name !== 'NoConnectionError') throw error;
      throw new NoConnectionError(
        `${(error as Error).message} (the address is from ${target.from})\n` +
          'Is it running? Start everything here with sluice up, or name another server with --server, --context or NATS_URL.',
      );
    }
  };
  return {
    io,
    flags,
    isJson: flags.output === 'json',
    fleet: () => (fleet ??= connect()),
    close: async () => void (await fleet?.then((client) => client.close()).catch(() => undefined)),
  };
}

/** Who asks, as the ledger will show it. */
export const askedBy = (io: Io): string => io.env['USER'] || io.env['LOGNAME'] || userInfo().username;
