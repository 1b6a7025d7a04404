import { userInfo } from 'node:os';
import type { ConnectFlags, FleetClient } from '#libs/client';
import type { Io } from '../output/io.js';

export interface GlobalFlags extends ConnectFlags {
  readonly output?: 'json' | 'yaml';
}

/** What every command gets: its streams, the common flags, and a client of the fleet. */
export interface Session {
  readonly io: Io;
  readonly flags: GlobalFlags;
  readonly isJson: boolean;
  /** Connects at the first call; throws NoConnectionError when no server answers. */
  fleet(): Promise<FleetClient>;
  close(): Promise<void>;
}

/** Without an answer by then the command ends with exit code 6. */
const CONNECT_MS = 4_000;

/** Opens a session that connects only when it has to. */
export function openSession(io: Io, flags: GlobalFlags): Session {
  let fleet: Promise<FleetClient> | undefined;
  const connect = async (): Promise<FleetClient> => {
    const { connectFleet, connectTarget, NoConnectionError } = await import('#libs/client');
    const target = connectTarget(flags, io.env);
    try {
      return await connectFleet({ ...target, servers: target.servers.split(','), timeoutMs: CONNECT_MS });
    } catch (error) {
      if ((error as Error).name !== 'NoConnectionError') throw error;
      throw new NoConnectionError(
        `${(error as Error).message} (address from ${target.from})\n` +
          'Is it running? Start a local fleet with sluice up, or choose another server with --server, --context or NATS_URL.',
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
