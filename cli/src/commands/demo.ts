import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SERVICES } from '#libs/contracts';
import { EXIT, UsageError, type ExitCode } from '../output/exit.js';
import { tellDemo } from '../demo/story.js';
import { DEMO_NODES } from '../demo/scene.js';
import type { Stage, Step } from '../demo/telling.js';
import type { Session } from '../connection/session.js';
import { startUp, type UpOptions } from '../up/run-up.js';

interface Flags {
  readonly keep?: boolean;
  readonly functions?: boolean;
  readonly clusters?: boolean;
}

/** What a demo runs, and what it shows with it. */
interface Play {
  readonly what: string;
  readonly note?: string;
  /** Starts what the control plane does not start. */
  begin(folder: string): Promise<Pick<UpOptions, 'data' | 'nodes' | 'targets'>>;
  tell(stage: Stage): Promise<readonly Step[]>;
  close(): Promise<void>;
}

/** `sluice demo`: shows good and bad changes on this machine, in about a minute. */
export async function demo(session: Session, flags: Flags): Promise<ExitCode> {
  const { io } = session;
  if (flags.functions === true && flags.clusters === true)
    throw new UsageError('--functions and --clusters cannot be used together: give one of them');
  const signal = io.interrupted;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-demo-'));
  try {
    return await run(session, await playOf(session, flags), folder);
  } catch (error) {
    // What was interrupted fails in some way or other.
    if (!signal.aborted) throw error;
    return EXIT.unfinished;
  } finally {
    if (flags.keep === true) io.say(`The files and logs are in ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

async function run(session: Session, play: Play, folder: string): Promise<ExitCode> {
  const { io } = session;
  const signal = io.interrupted;
  const tell = session.isJson ? io.say : io.out;
  tell(`${io.colours.bold('Starting')} nats-server, ${SERVICES.length} services and ${play.what} in ${folder} …`);
  if (play.note !== undefined) tell(play.note);
  try {
    const parts = await play.begin(folder);
    const running = await startUp({ port: 0, ...parts, kubernetes: false, say: io.say, signal });
    try {
      if (running.missing.length > 0)
        throw new Error(
          `not ready: ${running.missing.join(', ')}; run sluice demo --keep and look at the logs in ${join(parts.data, 'logs')}`,
        );
      const { connectFleet } = await import('#libs/client');
      const fleet = await connectFleet({ servers: [running.url], timeoutMs: 5_000 });
      const stage = { fleet, data: parts.data, tell, colours: io.colours, signal };
      const steps = await play.tell(stage).finally(() => fleet.close());
      return signal.aborted ? EXIT.unfinished : result(session, steps);
    } finally {
      await running.stop();
    }
  } finally {
    await play.close();
  }
}

function result({ io, isJson }: Session, steps: readonly Step[]): ExitCode {
  const different = steps.filter(({ ok }) => !ok);
  if (isJson) io.out(JSON.stringify({ ok: different.length === 0, steps }));
  for (const { expected, actual } of different)
    io.say(`${io.colours.red('unexpected result:')} expected ${expected}, got ${actual}`);
  return different.length === 0 ? EXIT.done : EXIT.unexpected;
}

async function playOf(session: Session, { functions, clusters }: Flags): Promise<Play> {
  if (functions === true) return functionsPlay();
  return clusters === true ? clustersPlay(session) : NODES_PLAY;
}

const NODES_PLAY: Play = {
  what: `${DEMO_NODES.length} nodes`,
  begin: (data) => Promise.resolve({ data, nodes: DEMO_NODES }),
  tell: tellDemo,
  close: () => Promise.resolve(),
};

/** Loaded only if needed. */
async function functionsPlay(): Promise<Play> {
  const [{ DemoReplicas, REPLICAS }, { tellFunctions }] = await Promise.all([
    import('../demo/functions/replicas.js'),
    import('../demo/functions/story.js'),
  ]);
  const replicas = await DemoReplicas.start();
  return {
    what: `${REPLICAS.length} replicas of a network function`,
    note: 'The replicas are stand-ins: they answer the REST API as the code of the function does, and route no traffic.',
    begin: (folder) => {
      const inventory = replicas.list(join(folder, 'replicas'));
      const targets = { kind: 'functions', inventory, names: REPLICAS } as const;
      return Promise.resolve({ data: join(folder, 'fleet'), nodes: [], targets });
    },
    tell: (stage) => tellFunctions(stage, replicas),
    close: () => replicas.close(),
  };
}

/** Builds first what it needs. */
async function clustersPlay({ io }: Session): Promise<Play> {
  const signal = io.interrupted;
  const [{ DemoClusters, CLUSTERS }, { tellClusters }, { findKubeBinaries, whyNoKubeBinaries }] = await Promise.all([
    import('../demo/clusters/clusters.js'),
    import('../demo/clusters/story.js'),
    import('#libs/api-servers'),
  ]);
  const why = whyNoKubeBinaries();
  if (why !== undefined) throw new Error(`sluice demo --clusters needs real API servers, and ${why}`);
  await findKubeBinaries({ say: io.say, note: 'for the demo and the tests', signal });
  let clusters: Awaited<ReturnType<typeof DemoClusters.start>> | undefined;
  return {
    what: `${CLUSTERS.length} Kubernetes API servers`,
    note: 'The API servers are real, but nothing runs there: the demo plays the controllers, and sets the status of each Deployment.',
    begin: async (folder) => {
      clusters = await DemoClusters.start(join(folder, 'kubernetes'), signal);
      const targets = {
        kind: 'clusters',
        inventory: clusters.list(join(folder, 'clusters')),
        names: CLUSTERS,
      } as const;
      return { data: join(folder, 'fleet'), nodes: [], targets };
    },
    tell: (stage) => tellClusters(stage, clusters as NonNullable<typeof clusters>),
    close: async () => clusters?.close(),
  };
}
