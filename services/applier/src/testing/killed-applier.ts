import { readFileSync } from 'node:fs';
import type { Action, Config } from '#libs/contracts';
import { runApplier, type HostSettings } from '../shell/index.js';
import type { NetworkSettings } from '../shell/backends/network/tools.js';
import { Performer } from '../shell/performer.js';
import { MemoryNodeBus } from './memory-node-bus.js';

/**
 * A process that dies, for specs: it applies a config with a lease, and kills itself before its nth step or during it.
 */
interface Plan {
  readonly root: string;
  readonly state: string;
  readonly first: Config;
  readonly second: Config;
  readonly actions?: readonly Action[];
  readonly host?: HostSettings;
  readonly dieAt: number;
  /** Milliseconds after the start of that step. */
  readonly dieAfterMs: number;
  readonly applyMs?: number;
  readonly network?: NetworkSettings;
  readonly allowExec?: boolean;
  /** Leases have numbers above this one, because the state folder may know earlier ones. */
  readonly lastLease?: number;
}

async function main(plan: Plan): Promise<void> {
  const bus = new MemoryNodeBus('n', plan.lastLease);
  let counting = false;
  let steps = 0;
  const perform = Performer.prototype.perform;
  Performer.prototype.perform = function counted(step) {
    if (counting && ++steps === plan.dieAt) {
      if (plan.dieAfterMs === 0) process.kill(process.pid, 'SIGKILL');
      else setTimeout(() => process.kill(process.pid, 'SIGKILL'), plan.dieAfterMs);
    }
    return perform.call(this, step);
  };
  const applier = await runApplier({
    node: 'n',
    labels: {},
    root: plan.root,
    stateDir: plan.state,
    bus,
    reach: false,
    network: plan.network ?? false,
    allowExec: plan.allowExec ?? false,
    ...(plan.host === undefined ? {} : { host: plan.host }),
  });
  await bus.reported(({ kind }) => kind === 'announced');
  const actions = plan.actions === undefined ? {} : { actions: plan.actions };
  await bus.roll(plan.first, actions);
  counting = true;
  await bus.roll(plan.second, { ...actions, ...(plan.applyMs === undefined ? {} : { applyMs: plan.applyMs }) });
  await applier.stop();
  process.stdout.write(`survived ${steps} steps\n`);
}

/** The plan, or `@` and the path of its file, because an argument may have at most 128 KiB. */
const [, , , given = ''] = process.argv;
void main(JSON.parse(given.startsWith('@') ? readFileSync(given.slice(1), 'utf8') : given) as Plan);
