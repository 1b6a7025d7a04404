import { userInfo } from 'node:os';
import type { FleetClient } from '#libs/client';
import type { ConnectFlags } from '#libs/process';
import type { Io } from '../output/io.js';

export interface GlobalFlags extends ConnectFlags {
  readonly output?: 'json' | 'yaml';
}

/** What every command gets: its streams, the common flags, and a client of the fleet. */
export interface Session {
  readonly io: Io;
  readonly flags: GlobalFlags;
  readonly isJson: boolean;
  /**
   * Connects at the first call. Throws NoConnectionError if no server answers, and AccessError if credentials,
   * certificates or TLS settings are wrong.
   */
  fleet(): Promise<FleetClient>;
  close(): Promise<void>;
}

/** Without an answer in this time, the command ends with exit code 6. */
const CONNECT_MS = 4_000;

/** Opens a session that connects only when it has to. */
export function openSession(io: Io, flags: GlobalFlags): Session {
  let fleet: Promise<FleetClient> | undefined;
  const connect = async (): Promise<FleetClient> => {
    const [{ connectFleet, NoConnectionError }, { AccessError, connectTarget }] = await Promise.all([
      import('#libs/client'),
      import('#libs/nats/lean'),
    ]);
    const target = connectTarget(flags, io.env);
    try {
      return await connectFleet({ ...target, timeoutMs: CONNECT_MS });
    } catch (error) {
      if (error instanceof AccessError)
        throw new AccessError(`${error.message} (address from ${target.from})`, { cause: error });
      if ((error as Error).name !== 'NoConnectionError') throw error;
      throw new NoConnectionError(
        `${(error as Error).message} (address from ${target.from})\n` +
          'Is it running? Start a local fleet with sluice up, or choose another server with --server or --context.',
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

/** The source of the changes that the CLI publishes. */
export const SOURCE = 'cli';

/** Who asks, as the ledger will show it. */
export const askedBy = (io: Io): string => io.env['USER'] || io.env['LOGNAME'] || userInfo().username;
