import { openSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Config, LeaseView } from '#libs/contracts';
import type { Journal, Step } from '../core/index.js';
import { runApplier, type HostSettings } from '../shell/index.js';
import { Performer } from '../shell/performer.js';
import { MemoryNodeBus } from './memory-node-bus.js';

/** For specs: a process with a guard that hangs in one step of its second lease, which begins when stdin ends. */
export interface HungPlan {
  readonly root: string;
  readonly state: string;
  readonly first: Config;
  readonly second: Config;
  readonly lease?: Partial<LeaseView>;
  readonly host?: HostSettings;
  /** The phase of the journal in which it hangs; undefined: before anything was changed. */
  readonly phase?: 'forward' | 'rolling-back' | undefined;
  readonly step: Step['do'];
  /** Undefined: it does not hang. */
  readonly how?: keyof typeof HOW | undefined;
}

const HOW = {
  /** Code that does not end. */
  spins: () => {
    for (;;);
  },
  /** A file system that does not answer: the other end of the pipe is never opened. */
  opens: (plan: HungPlan) => openSync(join(plan.root, 'fifo'), 'r'),
  /** SIGSTOP. */
  stops: () => process.kill(process.pid, 'SIGSTOP'),
  /** The event loop runs, but this step does not end. */
  waits: () => new Promise(() => setInterval(() => undefined, 1_000)),
};

/** A spec ends it before that. */
const LONGEST_MS = 600_000;

async function main(plan: HungPlan): Promise<void> {
  const bus = new MemoryNodeBus('n');
  let counting = false;
  const perform = Performer.prototype.perform;
  Performer.prototype.perform = async function hanging(step) {
    const outcome = await perform.call(this, step);
    if (counting && step.do === plan.step && journal()?.work?.phase === plan.phase && plan.how !== undefined)
      await HOW[plan.how](plan);
    return outcome;
  };
  const { run } = Performer.prototype;
  let journal = (): Journal | undefined => undefined;
  Performer.prototype.run = function running(applier) {
    journal = () => applier.journal;
    return run.call(this, applier);
  };
  const applier = await runApplier({
    node: 'n',
    labels: {},
    root: plan.root,
    stateDir: plan.state,
    bus,
    reach: false,
    network: false,
    allowExec: true,
    guardCommand: [process.execPath, join(__dirname, 'run-ts.cjs'), join(__dirname, 'guard.ts')],
    ...(plan.host === undefined ? {} : { host: plan.host }),
  });
  await bus.reported(({ kind }) => kind === 'announced');
  await bus.roll(plan.first);
  // The spec looks at the first config before the second lease may change anything.
  await text(process.stdin);
  counting = true;
  const lease = bus.grant(plan.second, plan.lease);
  await bus.reported((report) => report.lease === lease, LONGEST_MS);
  await applier.stop();
  process.stdout.write('ended\n');
}

void main(JSON.parse(process.argv[3] ?? '') as HungPlan);
