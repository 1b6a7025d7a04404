import type { ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { APPLY_SET } from '#libs/manifests';
import { kubeconfigText, testAuthority } from '#libs/testing';
import type { BareDone, BareWork, StandInFigures, ToStandIns } from '../clusters/protocol.js';
import type { Call } from '../clusters/stand-in-server.js';
import { ControlPlane } from '../harness/control-plane.js';
import { median, sum } from '../harness/figures.js';
import { timesOf } from '../harness/fleet.js';
import { DIST, temporaryFolder } from '../harness/folders.js';
import { pool } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';
import { phase } from '../harness/phase.js';
import { cpuMs, end, isRunning, memoryMb, sleep, start, until } from '../harness/processes.js';

/** As many clusters as one process must serve. */
const CLUSTERS = 1_000;
/** For what a process needs without clusters. */
const FEW = 20;
const BUDGET = 100;
const ALL = '100%';
const RUNS = 3;
/** Until the garbage of the joins is collected, and each cluster was asked whether it is ready. */
const SETTLE_MS = 35_000;
const WINDOW_MS = 60_000;
const WAIT_MS = 900_000;
const TOKEN = 'a-token-of-a-service-account';
const SERVED = join(DIST, 'bench', 'src', 'clusters');

const fewOf = (count: number): number => Math.min(FEW, count / 2);

/** One process that serves many Kubernetes clusters. */
export const clusters: Part = {
  name: 'clusters',
  what: '1,000 Kubernetes clusters, served by one process: memory, idle requests, and rollouts',
  run,
};

async function run(context: PartContext): Promise<readonly Result[]> {
  const count = Math.min(context.size, CLUSTERS);
  const few = await phase(context, async (inner) => {
    const served = await Served.start(inner, fewOf(count));
    await served.rollOutFirst();
    await sleep(SETTLE_MS / 2);
    return served.memory.rss;
  });
  const served = await Served.start(context, count);
  await served.rollOutFirst();
  await sleep(SETTLE_MS);
  const { rss } = served.memory;
  await ask(served.standIns, { do: 'look' });
  const idleFrom = served.cpuMs;
  await sleep(WINDOW_MS);
  const idleCpu = ((served.cpuMs - idleFrom) / WINDOW_MS) * 100;
  const idle = await ask(served.standIns, { do: 'look' });
  context.say(
    `idle: ${(((rss - few) * 1000) / (count - fewOf(count))).toFixed(0)} KB per cluster, ${rss.toFixed(0)} MB in all; ${idleCpu.toFixed(1)} % of a core; per minute ${verbsOf(idle.counts, count, 60_000 / WINDOW_MS)} and ${perCluster(idle.opened, count)} new connections; ${perCluster(idle.watches, count)} watches on ${perCluster(idle.connections, count)} connections`,
  );
  const bare = startChild(context, 'bare-client.js');
  const some = await rollOuts(context, served, bare, BUDGET);
  const all = await rollOuts(context, served, bare, ALL);
  const { peak } = served.memory;
  const words = `of ${OBJECTS} objects over ${count} clusters`;
  return [
    ...figuresOf('clusters', `a rollout ${words}, budget ${BUDGET}`, some, count),
    ...figuresOf('clusters/all', `a rollout ${words}, maxUnavailable ${ALL}`, all, count),
    result(
      {
        name: 'clusters/rss',
        unit: 'KB per cluster',
        value: ((rss - few) * 1000) / (count - fewOf(count)),
        note: `${rss.toFixed(0)} MB with ${count} idle clusters, ${few.toFixed(0)} MB with ${fewOf(count)}; at most ${peak.toFixed(0)} MB during rollouts; ${perCluster(idle.watches, count)} watches and ${perCluster(idle.connections, count)} connections per cluster`,
      },
      { of: 'value', most: 500 },
    ),
    result(
      {
        name: 'clusters/idle',
        unit: 'requests per cluster and minute',
        value: (sum(Object.values(idle.counts)) * 60_000) / WINDOW_MS / count,
        note: `over ${WINDOW_MS / 1000} s with the settings of a user: ${verbsOf(idle.counts, count, 60_000 / WINDOW_MS)}; ${idle.opened} new connections; all joined within ${(served.joinMs / 1000).toFixed(0)} s`,
      },
      { of: 'value', most: 3 },
    ),
    result(
      {
        name: 'clusters/idle-cpu',
        unit: '% of a core',
        value: idleCpu,
        note: `of the process that serves ${count} clusters, over ${WINDOW_MS / 1000} s`,
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
  readonly words: string;
  readonly floorMs: number;
  readonly floorCpuMs: number;
}

function figuresOf(name: string, what: string, runs: readonly Run[], count: number): readonly Result[] {
  const of = (pick: (run: Run) => number): number => median(runs.map(pick));
  return [
    result(
      {
        name,
        unit: 's',
        value: of(({ ms }) => ms) / 1000,
        floor: of(({ floorMs }) => floorMs) / 1000,
        note: `${what}, ${runs[0]?.calls} calls each, median of ${runs.length}; from rollout.started to rollout.complete; floor: the same calls by a bare client, so many clusters at a time`,
      },
      { of: 'ratio', most: 4 },
    ),
    result(
      {
        name: `${name}-cpu`,
        unit: 'ms per cluster',
        value: of((run) => run.cpuMs) / count,
        floor: of(({ floorCpuMs }) => floorCpuMs) / count,
        note: `CPU of the process that serves them in the same rollouts; services and server: ${(of(({ planeMs }) => planeMs) / count).toFixed(2)} ms`,
      },
      { of: 'ratio', most: 6 },
    ),
  ];
}

/** A shared machine may be half as fast again a minute later, so both are measured in turn. */
async function rollOuts(
  context: PartContext,
  served: Served,
  bare: ChildProcess,
  budget: number | string,
): Promise<readonly Run[]> {
  const { plane, standIns, count } = served;
  await plane.rollOut([pool(budget)]);
  const atOnce = typeof budget === 'number' ? budget : count;
  const runs: Run[] = [];
  for (let i = 0; i <= RUNS; i += 1) {
    await plane.untilQuiet();
    await ask(standIns, { do: 'look' });
    const [from, planeFrom] = [served.cpuMs, plane.cpuMs()];
    const { at } = await served.rollOutNext();
    const [cpu, planeMs] = [served.cpuMs - from, plane.cpuMs() - planeFrom];
    const { origins, first, counts } = await ask(standIns, { do: 'look' });
    const calls = ofRollout(first);
    const applied = counts['apply'] ?? 0;
    // On a busy machine, some clusters may have been deferred. They make the figures no better than they are.
    if (applied < count * CHANGED * 0.95) throw new Error(`only ${applied} objects were applied in ${count} clusters`);
    const bareFrom = cpuMs(bare.pid as number);
    const work = { origins, calls, atOnce, ca: served.ca, token: TOKEN };
    const floor = await ask<BareWork, BareDone>(bare, work);
    const floorCpuMs = cpuMs(bare.pid as number) - bareFrom;
    const ms = at.complete - at.started;
    context.say(
      `${budget}, ${i === 0 ? 'to warm up' : `run ${i}`}: ${(ms / 1000).toFixed(2)} s, CPU ${(cpu / count).toFixed(2)} ms per cluster, ${verbsOf(counts, count, 1)}; the floor ${(floor.ms / 1000).toFixed(2)} s, ${(floorCpuMs / count).toFixed(2)} ms`,
    );
    if (i > 0)
      runs.push({ ms, cpuMs: cpu, planeMs, calls: calls.length, words: wordsOf(calls), floorMs: floor.ms, floorCpuMs });
  }
  context.say(`the calls to a cluster: ${runs[0]?.words}`);
  return runs;
}

/**
 * The calls of a rollout, without what an idle cluster is sent. Nor that which says whose cluster it is, if the applier
 * has opened the first cluster again: the bare client makes the same calls to all.
 */
function ofRollout(calls: readonly Call[]): readonly Call[] {
  const own = calls.filter(
    ({ method, path }) =>
      path !== '/readyz' && !path.includes('watch=1') && !(method === 'PATCH' && path.includes(APPLY_SET.name)),
  );
  if (!own.some(({ method, path }) => method === 'PATCH' && !path.includes('dryRun')))
    throw new Error(`the first cluster was not changed: ${own.map(({ path }) => path).join(', ')}`);
  return own;
}

/** The control plane, API servers in a process of their own, and the applier that serves them. */
class Served {
  private version = 1;

  private constructor(
    readonly count: number,
    readonly plane: ControlPlane,
    readonly standIns: ChildProcess,
    private readonly applier: ChildProcess,
    readonly joinMs: number,
    readonly ca: string,
  ) {}

  static async start(context: PartContext, count: number): Promise<Served> {
    const plane = await ControlPlane.start(context);
    const standIns = startChild(context, 'stand-ins.js');
    const folder = temporaryFolder(context, 'clusters');
    const authority = await testAuthority();
    const { certFile, keyFile } = await authority.write(folder);
    const [cert, key] = [readFileSync(certFile, 'utf8'), readFileSync(keyFile, 'utf8')];
    const { origins } = await ask(standIns, { do: 'start', count, key, cert, token: TOKEN });
    writeInventory(folder, origins, authority.ca);
    const startMs = performance.now();
    const applier = startApplier(context, folder, plane.server.url);
    const joined = async (): Promise<true | undefined> => {
      if (!isRunning(applier))
        throw new Error(`the applier ended: ${readFileSync(join(folder, 'applier.log'), 'utf8').slice(-1_000)}`);
      return (await timesOf(plane.bus, ['node.joined.*'], 1)).length >= count ? true : undefined;
    };
    await until(`${count} clusters have joined`, joined, WAIT_MS, 500);
    const joinMs = performance.now() - startMs;
    context.say(`${count} clusters joined in ${(joinMs / 1000).toFixed(1)} s`);
    await plane.untilQuiet();
    return new Served(count, plane, standIns, applier, joinMs, authority.ca);
  }

  async rollOutFirst(): Promise<void> {
    await this.plane.rollOut([pool(BUDGET), fragment(0)], WAIT_MS);
  }

  rollOutNext(): ReturnType<ControlPlane['rollOut']> {
    return this.plane.rollOut([fragment(this.version++)], WAIT_MS);
  }

  get cpuMs(): number {
    return sum([cpuMs(this.applier.pid as number)]);
  }

  get memory(): { readonly rss: number; readonly peak: number } {
    return memoryMb(this.applier.pid as number);
  }
}

function startApplier(context: PartContext, folder: string, url: string): ChildProcess {
  const log = openSync(join(folder, 'applier.log'), 'a');
  const args = ['--targets', 'clusters', '--inventory', join(folder, 'clusters.yaml'), '--state', folder];
  const extra = (process.env['SLUICE_BENCH_NODE_ARGS'] ?? '').split(' ').filter((arg) => arg !== '');
  const applier = start(process.execPath, [...extra, join(DIST, 'cli', 'src', 'main.js'), 'applier', ...args], {
    env: { ...process.env, NATS_URL: url },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  context.atEnd(() => end(applier));
  return applier;
}

function writeInventory(folder: string, origins: readonly string[], ca: string): void {
  mkdirSync(join(folder, 'kubeconfigs'));
  const all = origins.map((server, i) => {
    const kubeconfigFile = join('kubeconfigs', `c-${i}`);
    writeFileSync(join(folder, kubeconfigFile), kubeconfigText({ server, ca, token: TOKEN }));
    return { name: `c-${i}`, kubeconfigFile };
  });
  writeFileSync(join(folder, 'clusters.yaml'), JSON.stringify({ clusters: all }));
}

const inDefault = (apiVersion: string, kind: string, more: object): object => ({
  apiVersion,
  kind,
  metadata: { name: 'web', namespace: 'default' },
  ...more,
});

/** Five objects of five kinds, which are the same in each cluster: what the bare client applies again is no change. */
const objects = (version: number): readonly object[] => [
  inDefault('v1', 'ServiceAccount', {}),
  inDefault('v1', 'ConfigMap', { data: { version: String(version) } }),
  inDefault('v1', 'Secret', { data: { token: Buffer.from(`v${version}`).toString('base64') } }),
  inDefault('v1', 'Service', { spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] } }),
  inDefault('apps/v1', 'Deployment', {
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: {
          serviceAccountName: 'web',
          containers: [
            {
              name: 'web',
              image: `registry.example/web:${version}`,
              ports: [{ containerPort: 8080 }],
              envFrom: [{ configMapRef: { name: 'web' } }],
            },
          ],
        },
      },
    },
  }),
];
const OBJECTS = objects(0).length;
/** The ConfigMap, the Secret and the Deployment. */
const CHANGED = 3;

const fragment = (version: number): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'KubeObjects',
  metadata: { name: 'web' },
  spec: { nodeSelector: {}, objects: objects(version) },
});

const perCluster = (all: number, count: number): string => (all / count).toFixed(1);

const verbsOf = (counts: Readonly<Record<string, number>>, count: number, times: number): string =>
  Object.entries(counts)
    .map(([verb, all]) => `${((all * times) / count).toFixed(2)} ${verb}`)
    .join(', ');

const wordsOf = (calls: readonly Call[]): string =>
  calls
    .map(({ method, path }) => {
      const [place = '', query = ''] = path.split('?');
      return `${query.includes('dryRun') ? 'try' : method}${query.includes('force') ? '!' : ''} ${place.split('/').slice(-2).join('/')}`;
    })
    .join(', ');

function startChild(context: PartContext, file: string): ChildProcess {
  const child = start(process.execPath, [join(SERVED, file)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  context.atEnd(() => end(child, 1_000));
  return child;
}

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
