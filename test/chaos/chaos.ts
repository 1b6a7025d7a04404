import { setMaxListeners } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startFleetOn, type Fleet } from '../e2e/fleet.js';
import { health, manifest, selecting } from '../e2e/manifests.js';
import { NatsCli } from '../e2e/nats-cli.js';
import type { Files } from '../e2e/node-folders.js';
import { ROOT } from '../e2e/processes.js';
import { gatherEvidence, memoryOf, type Evidence } from './evidence.js';
import { FAULTS, startAgain } from './faults/index.js';
import { FrontedServer } from './fronted-server.js';
import { judge } from './oracles/index.js';
import { People } from './people.js';
import { workInProgress } from './quiet.js';
import type { Round, TimedEvent } from './schedule.js';
import { DRAINED, DRAINER, LEASE_SECONDS, type Shape } from './shape.js';
import type { Stage } from './stage.js';

/** The result of a round. */
export interface Outcome {
  readonly wrong: readonly string[];
  /** What was done and found, and how many times. */
  readonly notes: ReadonlyMap<string, number>;
  readonly evidence: Evidence | undefined;
  readonly quietMs: number;
}

/**
 * Far longer than needed, because machines are slow at times. It covers rollbacks, leases and the time until a node
 * counts as silent.
 */
const QUIET_MS = 180_000;
/** Below the root in both the sources and the build: the first is not TypeScript, and the second must be built. */
const SYSTEMCTL = join(ROOT, 'test/chaos/host/systemctl.sh');
const DRAINER_PROGRAM = join(ROOT, 'dist/test/chaos/host/drainer.js');
/** Every change of files on such a node needs a drain and a restart of its unit. */
const DRAINS = manifest('DisruptionPolicy', 'drains', {
  nodeSelector: selecting(DRAINED),
  default: [{ kind: 'drain' }, { kind: 'restart', unit: 'app.service' }],
});

/** A fleet of real processes. Each round applies faults and changes to it. */
export class Chaos {
  readonly stage: Stage;
  private readonly people: People;
  private readonly memory: ReadonlyMap<string, number>[] = [];
  private notes = new Map<string, number>();
  private over = new AbortController();

  private constructor(
    readonly fleet: Fleet<FrontedServer>,
    shape: Shape,
    nats: NatsCli,
  ) {
    this.stage = {
      fleet,
      shape,
      groupOf: (node) => `appliers-${(fleet.nodes.indexOf(node) % shape.groups.length) + 1}`,
      startDrainer: () => fleet.processes.start(DRAINER, [fleet.server.url, fleet.data], { program: DRAINER_PROGRAM }),
      pause: (ms) => sleep(ms, undefined, { signal: this.over.signal }).catch(() => undefined),
      note: (what) => void this.notes.set(what, (this.notes.get(what) ?? 0) + 1),
    };
    this.people = new People(this.stage, nats);
    fleet.gate.isUnhealthy = this.people.isUnhealthy;
    fleet.gate.slownessMs = slownessMs;
  }

  static async start(shape: Shape): Promise<Chaos> {
    const fleet = await startFleetOn((folder) => FrontedServer.start(folder), {
      copies: 2,
      groups: shape.groups.length,
      applyTimeout: `${LEASE_SECONDS}s`,
      systemctl: SYSTEMCTL,
      env: { SLUICE_DRAIN: 'external' },
    });
    try {
      const chaos = new Chaos(fleet, shape, await NatsCli.of(fleet));
      chaos.stage.startDrainer();
      await fleet.ended(await fleet.apply(health(fleet.gate.url, '3s'), DRAINS));
      return chaos;
    } catch (error) {
      await fleet.close();
      throw error;
    }
  }

  /**
   * Runs faults and people for the time of the round. Then repairs everything, waits until nothing is in progress, and
   * runs the oracles.
   */
  async round({ faults, acts }: Round): Promise<Outcome> {
    const { stage, people } = this;
    this.notes = new Map();
    this.over = new AbortController();
    setMaxListeners(0, this.over.signal); // everything that happens later waits for it
    this.fleet.gate.requests.length = 0;
    const timer = setTimeout(() => this.over.abort(), stage.shape.roundMs);
    const work = [
      ...faults.map((fault) =>
        this.at(fault, async (what) => FAULTS.find(({ name }) => name === what.fault)?.run(stage, what)),
      ),
      ...acts.map((act) => this.at(act, (what) => people.act(what))),
    ];
    const failures = (await Promise.allSettled(work)).flatMap((end) =>
      end.status === 'rejected' ? [`the driver: ${(end.reason as Error).stack ?? String(end.reason)}`] : [],
    );
    clearTimeout(timer);
    this.over.abort();
    await this.restoreAll();
    return this.settle(failures);
  }

  /** Ends every process. The data is kept if something was wrong. */
  async close(keepsData: boolean): Promise<void> {
    this.fleet.keepsData ||= keepsData;
    await this.fleet.close();
  }

  private async at<T>({ atMs, what }: TimedEvent<T>, act: (what: T) => Promise<void>): Promise<void> {
    await this.stage.pause(atMs);
    await act(what);
  }

  private async restoreAll(): Promise<void> {
    const { fleet, shape } = this.stage;
    await fleet.server.restore();
    for (const name of [...shape.services, ...shape.groups, DRAINER]) {
      if (fleet.processes.isRunning(name)) fleet.processes.thaw(name);
      else startAgain(this.stage, name);
    }
  }

  private async settle(failures: readonly string[]): Promise<Outcome> {
    const fromMs = performance.now();
    const restlessness = await this.untilQuiet(fromMs + QUIET_MS);
    const quietMs = Math.round(performance.now() - fromMs);
    if (restlessness !== '')
      return {
        wrong: [...failures, `not quiet after ${QUIET_MS / 1_000} s: ${restlessness}`],
        notes: this.notes,
        evidence: undefined,
        quietMs,
      };
    this.memory.push(memoryOf(new Map([...this.fleet.processes.pids, ['nats-server', this.fleet.server.server.pid]])));
    const evidence = await gatherEvidence(this.fleet, this.people.acknowledged, this.memory);
    return { wrong: [...failures, ...judge(evidence)], notes: this.notes, evidence, quietMs };
  }

  private async untilQuiet(giveUpMs: number): Promise<string> {
    for (;;) {
      const restlessness = await this.people
        .resumeAll()
        .then(() => workInProgress(this.fleet))
        .catch((error: unknown) => `the driver: ${(error as Error).message}`);
      if (restlessness === '' || performance.now() > giveUpMs) return restlessness;
      await sleep(250);
    }
  }
}

/**
 * A change takes a third of a second per node on average, so that much happens in the middle of it. The node and its
 * files determine how long.
 */
function slownessMs(node: string, files: Files): number {
  const text = node + Object.values(files).join('');
  let sum = 0;
  for (let i = 0; i < text.length; i += 1) sum = (sum * 31 + text.charCodeAt(i)) >>> 0;
  return 50 + (sum % 550);
}
