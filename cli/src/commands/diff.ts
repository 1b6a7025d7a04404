import type { FleetClient } from '#libs/bus';
import { isHash, type Config } from '#libs/contracts';
import { EXIT, UsageError, type ExitCode } from '../exit.js';
import { configDiff } from '../screens/config-diff.js';
import type { Session } from '../session.js';
import { nodeNameOf } from '../steering.js';

export interface DiffFlags {
  readonly from?: string;
  readonly to?: string;
}
interface DiffAnswer {
  readonly node: string;
  readonly from: string;
  readonly to: string;
  readonly fromConfig: Config | null;
  readonly toConfig: Config | null;
}

/** As git does: as many digits as make it one. */
const LEAST_DIGITS = 7;
const PREFIX = /^[0-9a-f]{7,64}$/;

async function wholeHash(fleet: FleetClient, node: string, flag: string, hash: string): Promise<string> {
  if (isHash(hash)) return hash;
  const found = (await fleet.configHashes(node)).filter((one) => one.startsWith(hash));
  if (found.length === 1) return found[0] as string;
  throw new Error(
    found.length === 0
      ? `--${flag}: no config of ${node} begins with ${hash}`
      : `--${flag}: ${hash} is not unique: ${found.map((one) => one.slice(0, 16)).join(', ')}`,
  );
}

/** `sluice diff NODE`: from what the node has to what it shall have, or between two configs by hash. */
export async function diff(session: Session, name: string, flags: DiffFlags): Promise<ExitCode> {
  const node = nodeNameOf(name);
  for (const [flag, hash] of Object.entries({ from: flags.from, to: flags.to })) {
    if (hash !== undefined && !PREFIX.test(hash))
      throw new UsageError(
        `--${flag}: ${JSON.stringify(hash)} is not a hash, nor the first ${LEAST_DIGITS} or more of its hex digits: sluice get leases shows those of a node`,
      );
  }
  const fleet = await session.fleet();
  const hashes: Record<string, string> = {};
  for (const [flag, hash] of Object.entries({ from: flags.from, to: flags.to }))
    if (hash !== undefined) hashes[flag] = await wholeHash(fleet, node, flag, hash);
  const answer = await fleet.request<DiffAnswer>('ops.config.diff', { node, ...hashes });
  const { io } = session;
  if (session.isJson) io.out(JSON.stringify(answer));
  else if (answer.from === answer.to) io.say(`${node} has what it shall have (${answer.to.slice(0, 12)})`);
  else io.out(configDiff(answer.fromConfig, answer.toConfig, io.colours));
  return EXIT.done;
}
