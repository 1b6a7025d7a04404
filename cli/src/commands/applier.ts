import '../../../libs/runtime/src/lean-start.js';
import { join } from 'node:path';
import { connectNodeBus } from '#libs/bus';
import { createLogger } from '#libs/runtime';
import { commandWords, heartbeatMs, runApplier, type HostSettings } from '../../../services/applier/src/shell/index.js';
import { EXIT, type ExitCode } from '../exit.js';
import { parseLabels } from '../labels.js';
import { connectTarget } from '../nats-context.js';
import { packageVersion } from '../package-root.js';
import { aborted } from '../pause.js';
import type { Session } from '../session.js';
import { nodeNameOf } from '../steering.js';

export interface ApplierFlags {
  readonly node: string;
  readonly label: readonly string[];
  readonly root: string;
  readonly state?: string;
  readonly fresh: boolean;
  readonly allowExec: boolean;
  readonly systemctl?: string;
  readonly systemdAnalyze?: string;
  readonly rebootCommand?: string;
  readonly netns?: string;
  readonly reach: readonly string[];
  readonly proc?: string;
  readonly updateGrub?: string;
}

/** `sluice applier --node NAME`: the applier of one node, until it is told to end. It waits for a server that is away. */
export async function applier(session: Session, flags: ApplierFlags): Promise<ExitCode> {
  const { io } = session;
  const node = nodeNameOf(flags.node);
  const labels = parseLabels(flags.label);
  const { from: _, ...target } = connectTarget(session.flags, io.env);
  const log = createLogger('applier');
  const running = await runApplier({
    node,
    labels,
    root: flags.root,
    stateDir: flags.state ?? join('/var/lib/sluice', node),
    fresh: flags.fresh,
    allowExec: flags.allowExec,
    host: hostOf(flags),
    servers: target.servers.split(','),
    reach: flags.reach,
    ...(flags.netns === undefined ? {} : { network: { netns: flags.netns } }),
    bus: () => connectNodeBus({ node, ...target, servers: target.servers.split(','), logger: log }),
    log,
    heartbeatMs: heartbeatMs(io.env),
    version: packageVersion(),
  });
  await aborted(io.interrupted);
  await running.stop();
  return EXIT.done;
}

const hostOf = ({ systemctl, systemdAnalyze, rebootCommand, proc, updateGrub }: ApplierFlags): HostSettings => ({
  systemctl,
  systemdAnalyze,
  rebootCommand: commandWords(rebootCommand),
  proc,
  updateGrub: commandWords(updateGrub),
});
