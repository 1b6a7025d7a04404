import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ControlPlane } from '../harness/control-plane.js';
import { median, sum } from '../harness/figures.js';
import { timesOf } from '../harness/fleet.js';
import { DIST, temporaryFolder } from '../harness/folders.js';
import { pool } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';
import { phase } from '../harness/phase.js';
import { cpuMs, end, isRunning, memoryMb, sleep, start, until } from '../harness/processes.js';
import type { BareDone, BareWork, StandInFigures, ToStandIns } from '../targets/protocol.js';

/** As many replicas as one process must serve. */
const REPLICAS = 2_000;
/** For what a process needs without replicas. */
const FEW = 20;
const BUDGET = 100;
const RUNS = 3;
/** Until the garbage of the joins is collected, and each replica was asked. */
const SETTLE_MS = 35_000;
const WINDOW_MS = 60_000;
const WAIT_MS = 600_000;

/** One process that serves many targets that cannot run an applier. */
export const targets: Part = {
  name: 'targets',
  what: '2,000 replicas of a network function, served by one process: memory, idle requests, and a rollout',
  run,
};

async function run(context: PartContext): Promise<readonly Result[]> {
  const count = Math.min(context.size, REPLICAS);
  const few = await phase(context, async (inner) => {
    const served = await Served.start(inner, FEW);
    await served.plane.rollOut([pool(BUDGET), policy, rule(1)]);
    await sleep(SETTLE_MS / 2);
    return served.memory.rss;
  });
  const served = await Served.start(context, count);
  await served.plane.rollOut([pool(BUDGET), policy, rule(1)]);
  await sleep(SETTLE_MS);
  const { rss } = served.memory;
  await ask(served.standIns, { do: 'look' });
  const idleFrom = served.cpuMs;
  await sleep(WINDOW_MS);
  const idleCpu = ((served.cpuMs - idleFrom) / WINDOW_MS) * 100;
  const idle = await ask(served.standIns, { do: 'look' });
  const runs = await rollOuts(context, served, count);
  const { peak } = served.memory;
  const about = { floor: median(runs.map(({ floorMs }) => floorMs)) / 1000 };
  return [
    result(
      {
        name: 'targets',
        unit: 's',
        value: median(runs.map(({ ms }) => ms)) / 1000,
        ...about,
        note: `a rollout over ${count} replicas, budget ${BUDGET}, ${runs[0]?.calls} calls each, median of ${RUNS}; from rollout.started to rollout.complete; floor: the same calls by a bare client, so many replicas at a time`,
      },
      { of: 'ratio', most: 4 },
    ),
    result(
      {
        name: 'targets/cpu',
        unit: 'ms per replica',
        value: median(runs.map((one) => one.cpuMs)) / count,
        floor: median(runs.map((one) => one.floorCpuMs)) / count,
        note: `CPU of the process that serves them in the same rollouts; services and server: ${(median(runs.map((one) => one.planeMs)) / count).toFixed(2)} ms`,
      },
      { of: 'ratio', most: 6 },
    ),
    result(
      {
        name: 'targets/rss',
        unit: 'KB per replica',
        value: ((rss - few) * 1000) / (count - FEW),
        note: `${rss.toFixed(0)} MB with ${count} idle replicas, ${few.toFixed(0)} MB with ${FEW}; at most ${peak.toFixed(0)} MB during rollouts`,
      },
      { of: 'value', most: 400 },
    ),
    result(
      {
        name: 'targets/idle',
        unit: 'requests per replica and minute',
        value: ((idle.calls + idle.logins) * 60_000) / WINDOW_MS / count,
        note: `over ${WINDOW_MS / 1000} s with the settings of a user; CPU ${idleCpu.toFixed(1)} % of a core; all joined within ${(served.joinMs / 1000).toFixed(0)} s`,
      },
      { of: 'value', most: 10 },
    ),
  ];
}

interface Run {
  readonly ms: number;
  readonly cpuMs: number;
  readonly planeMs: number;
  readonly calls: number;
  readonly floorMs: number;
  readonly floorCpuMs: number;
}

/** A shared machine may be half as fast again a minute later, so both are measured in turn. */
async function rollOuts(context: PartContext, served: Served, count: number): Promise<readonly Run[]> {
  const { plane, standIns } = served;
  const bare = start(process.execPath, [join(DIST, 'bench', 'src', 'targets', 'bare-client.js')], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  context.atEnd(() => end(bare, 1_000));
  const runs: Run[] = [];
  for (let i = 0; i <= RUNS; i += 1) {
    await plane.untilQuiet();
    await ask(standIns, { do: 'look' });
    const [from, planeFrom] = [served.cpuMs, plane.cpuMs()];
    const { at } = await plane.rollOut([rule(1_000 + i)]);
    const [cpu, planeMs] = [served.cpuMs - from, plane.cpuMs() - planeFrom];
    const { origins, first, rules } = await ask(standIns, { do: 'look' });
    const calls = ofRollout(first);
    const bareFrom = cpuMs(bare.pid as number);
    const floor = await ask<BareWork, BareDone>(bare, {
      origins,
      calls,
      atOnce: BUDGET,
      object: rules[0] as object,
    });
    const floorCpuMs = cpuMs(bare.pid as number) - bareFrom;
    const ms = at.complete - at.started;
    context.say(
      `${i === 0 ? 'to warm up' : `run ${i}`}: ${(ms / 1000).toFixed(2)} s, CPU ${(cpu / count).toFixed(2)} ms per replica, ${calls.join(', ')}; the floor ${(floor.ms / 1000).toFixed(2)} s, ${(floorCpuMs / count).toFixed(2)} ms`,
    );
    if (i > 0) runs.push({ ms, cpuMs: cpu, planeMs, calls: calls.length, floorMs: floor.ms, floorCpuMs });
  }
  return runs;
}

/** The calls of a rollout, without the questions of an idle replica before and after them. */
function ofRollout(calls: readonly string[]): readonly string[] {
  const write = calls.findIndex((call) => call.startsWith('PUT mwan3/'));
  const from = calls.lastIndexOf('GET mwan3/v1/policies', write);
  const to = calls.indexOf('PUT v1/service/mwan3', write);
  if (write < 0 || from < 0 || to < 0) throw new Error(`the first replica was not changed: ${calls.join(', ')}`);
  return calls.slice(from, to + 1).filter((call) => call !== 'GET v1/services' && call !== 'GET v1/status');
}

/** The control plane, replicas in a process of their own, and the applier that serves them. */
class Served {
  private constructor(
    readonly plane: ControlPlane,
    readonly standIns: ChildProcess,
    private readonly applier: ChildProcess,
    readonly joinMs: number,
  ) {}

  static async start(context: PartContext, count: number): Promise<Served> {
    const plane = await ControlPlane.start(context);
    const standIns = start(process.execPath, [join(DIST, 'bench', 'src', 'targets', 'stand-ins.js')], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    context.atEnd(() => end(standIns, 1_000));
    const { origins } = await ask(standIns, { do: 'start', count });
    const folder = temporaryFolder(context, 'targets');
    writeFileSync(join(folder, 'password'), 'secret\n');
    const functions = origins.map((url, i) => ({ name: `cnf-${i}`, url, passwordFile: 'password', labels: {} }));
    writeFileSync(join(folder, 'functions.yaml'), JSON.stringify({ functions }));
    const startMs = performance.now();
    const log = openSync(join(folder, 'applier.log'), 'a');
    const args = ['--targets', 'functions', '--inventory', join(folder, 'functions.yaml'), '--state', folder];
    const extra = (process.env['SLUICE_BENCH_NODE_ARGS'] ?? '').split(' ').filter((arg) => arg !== '');
    const applier = start(process.execPath, [...extra, join(DIST, 'cli', 'src', 'main.js'), 'applier', ...args], {
      env: { ...process.env, NATS_URL: plane.server.url },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    context.atEnd(() => end(applier));
    const joined = async (): Promise<true | undefined> => {
      if (!isRunning(applier)) throw new Error(`the applier ended; its log is ${join(folder, 'applier.log')}`);
      return (await timesOf(plane.bus, ['node.joined.*'], 1)).length >= count ? true : undefined;
    };
    await until(`${count} replicas have joined`, joined, WAIT_MS, 500);
    const joinMs = performance.now() - startMs;
    context.say(`${count} replicas joined in ${(joinMs / 1000).toFixed(1)} s`);
    await plane.untilQuiet();
    return new Served(plane, standIns, applier, joinMs);
  }

  get cpuMs(): number {
    return sum([cpuMs(this.applier.pid as number)]);
  }

  get memory(): { readonly rss: number; readonly peak: number } {
    return memoryMb(this.applier.pid as number);
  }
}

const manifest = (kind: string, name: string, spec: object): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind,
  metadata: { name },
  spec: { nodeSelector: {}, ...spec },
});
const policy = manifest('Mwan3Policy', 'main', { members: [{ network: 'wan1', metric: 1, weight: 1 }] });
const rule = (port: number): object => manifest('Mwan3Rule', 'web', { policy: 'main', proto: 'tcp', dest_port: port });

function ask(child: ChildProcess, message: ToStandIns): Promise<StandInFigures>;
function ask<M extends object, A>(child: ChildProcess, message: M): Promise<A>;
function ask(child: ChildProcess, message: object): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const exited = (): void => reject(new Error('a process of the bench ended'));
    child.once('exit', exited);
    child.once('message', (answer) => {
      child.off('exit', exited);
      resolve(answer);
    });
    child.send(message);
  });
}
