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

/** `sluice diff NODE`: from what the node has to what it shall have, or between two configs by hash. */
export async function diff(session: Session, name: string, flags: DiffFlags): Promise<ExitCode> {
  const node = nodeNameOf(name);
  for (const [flag, hash] of Object.entries({ from: flags.from, to: flags.to })) {
    if (hash !== undefined && !isHash(hash)) throw new UsageError(`--${flag}: ${JSON.stringify(hash)} is not a hash of 64 hex digits: sluice get leases -o json shows those of a node`);
  }
  const fleet = await session.fleet();
  const hashes = { ...(flags.from === undefined ? {} : { from: flags.from }), ...(flags.to === undefined ? {} : { to: flags.to }) };
  const answer = await fleet.request<DiffAnswer>('ops.config.diff', { node, ...hashes });
  const { io } = session;
  if (session.isJson) io.out(JSON.stringify(answer));
  else if (answer.from === answer.to) io.say(`${node} has what it shall have (${answer.to.slice(0, 12)})`);
  else io.out(configDiff(answer.fromConfig, answer.toConfig, io.colours));
  return EXIT.done;
}
