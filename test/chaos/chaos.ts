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
import { restless } from './quiet.js';
import type { Round, TimedEvent } from './schedule.js';
import { DRAINED, DRAINER, LEASE_SECONDS, type Shape } from './shape.js';
import type { Stage } from './stage.js';

/** What one round came to. */
export interface Outcome {
  readonly wrong: readonly string[];
  /** What was done and found, and how often. */
  readonly notes: ReadonlyMap<string, number>;
  readonly evidence: Evidence | undefined;
  readonly quietMs: number;
}

/**
 * Far longer than it ever takes, as machines are slow at times: way backs, leases and the silence of nodes are waited
 * for.
 */
const QUIET_MS = 180_000;
/** Below the root, wherever this runs: the one is no TypeScript, the other has to be built. */
const SYSTEMCTL = join(ROOT, 'test/chaos/host/systemctl.sh');
const DRAINER_PROGRAM = join(ROOT, 'dist/test/chaos/host/drainer.js');
/** Every change of such a node's files needs it free, and its unit restarted. */
const DRAINS = manifest('DisruptionPolicy', 'drains', {
  nodeSelector: selecting(DRAINED),
  default: [{ kind: 'drain' }, { kind: 'restart', unit: 'app.service' }],
});

/** A fleet of real processes, and what is done to it in rounds. */
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
    fleet.gate.isSick = this.people.isSick;
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
   * Faults and people for the round's time; then all is mended, and when nothing goes on any more the world is judged.
   */
  async round({ blows, acts }: Round): Promise<Outcome> {
    const { stage, people } = this;
    this.notes = new Map();
    this.over = new AbortController();
    setMaxListeners(0, this.over.signal); // everything that is to happen waits on it
    this.fleet.gate.asked.length = 0;
    const timer = setTimeout(() => this.over.abort(), stage.shape.roundMs);
    const work = [
      ...blows.map((blow) =>
        this.at(blow, async (what) => FAULTS.find(({ name }) => name === what.fault)?.strike(stage, what)),
      ),
      ...acts.map((act) => this.at(act, (what) => people.act(what))),
    ];
    const failures = (await Promise.allSettled(work)).flatMap((end) =>
      end.status === 'rejected' ? [`the driver: ${(end.reason as Error).stack ?? String(end.reason)}`] : [],
    );
    clearTimeout(timer);
    this.over.abort();
    await this.mendAll();
    return this.settle(failures);
  }

  /** Ends every process. The data stay if something was wrong. */
  async close(keepsData: boolean): Promise<void> {
    this.fleet.keepsData ||= keepsData;
    await this.fleet.close();
  }

  private async at<T>({ atMs, what }: TimedEvent<T>, act: (what: T) => Promise<void>): Promise<void> {
    await this.stage.pause(atMs);
    await act(what);
  }

  private async mendAll(): Promise<void> {
    const { fleet, shape } = this.stage;
    await fleet.server.mend();
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
        .letGo()
        .then(() => restless(this.fleet))
        .catch((error: unknown) => `the driver: ${(error as Error).message}`);
      if (restlessness === '' || performance.now() > giveUpMs) return restlessness;
      await sleep(250);
    }
  }
}

/**
 * A change takes a node a third of a second on average, so that much happens in the middle of it; how long, node and
 * files say.
 */
function slownessMs(node: string, files: Files): number {
  const text = node + Object.values(files).join('');
  let sum = 0;
  for (let i = 0; i < text.length; i += 1) sum = (sum * 31 + text.charCodeAt(i)) >>> 0;
  return 50 + (sum % 550);
}
