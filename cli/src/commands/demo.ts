import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SERVICES } from '#libs/contracts';
import { EXIT, type ExitCode } from '../output/exit.js';
import { tellDemo } from '../demo/story.js';
import { DEMO_NODES } from '../demo/scene.js';
import type { Stage, Step } from '../demo/telling.js';
import type { Session } from '../connection/session.js';
import { startUp, type UpOptions } from '../up/run-up.js';

interface Flags {
  readonly keep?: boolean;
  readonly functions?: boolean;
}

/** What a demo runs, and what it shows with it. */
interface Play {
  readonly what: string;
  readonly note?: string;
  readonly parts: Pick<UpOptions, 'data' | 'nodes' | 'functions'>;
  readonly tell: (stage: Stage) => Promise<readonly Step[]>;
  close(): Promise<void>;
}

/** `sluice demo`: shows good and bad changes on this machine, in about a minute. */
export async function demo(session: Session, flags: Flags): Promise<ExitCode> {
  const { io } = session;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-demo-'));
  const tell = session.isJson ? io.say : io.out;
  let play: Play | undefined;
  try {
    play = flags.functions === true ? await functionsPlay(folder) : nodesPlay(folder);
    const { data } = play.parts;
    tell(`${io.colours.bold('Starting')} nats-server, ${SERVICES.length} services and ${play.what} in ${folder} …`);
    if (play.note !== undefined) tell(play.note);
    const running = await startUp({
      port: 0,
      ...play.parts,
      kubernetes: false,
      say: io.say,
      signal: io.interrupted,
    });
    try {
      if (running.missing.length > 0)
        throw new Error(
          `not ready: ${running.missing.join(', ')}; run sluice demo --keep and look at the logs in ${join(data, 'logs')}`,
        );
      const { connectFleet } = await import('#libs/client');
      const fleet = await connectFleet({ servers: [running.url], timeoutMs: 5_000 });
      const stage = { fleet, data, tell, colours: io.colours, signal: io.interrupted };
      const steps = await play.tell(stage).finally(() => fleet.close());
      const different = steps.filter(({ ok }) => !ok);
      if (session.isJson) io.out(JSON.stringify({ ok: different.length === 0, steps }));
      for (const { expected, actual } of different)
        io.say(`${io.colours.red('unexpected result:')} expected ${expected}, got ${actual}`);
      return different.length === 0 ? EXIT.done : EXIT.unexpected;
    } finally {
      await running.stop();
    }
  } finally {
    await play?.close();
    if (flags.keep === true) io.say(`The files and logs are in ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

const nodesPlay = (data: string): Play => ({
  what: `${DEMO_NODES.length} nodes`,
  parts: { data, nodes: DEMO_NODES },
  tell: tellDemo,
  close: () => Promise.resolve(),
});

/** Loaded only if needed. */
async function functionsPlay(folder: string): Promise<Play> {
  const [{ DemoReplicas, REPLICAS }, { tellFunctions }] = await Promise.all([
    import('../demo/functions/replicas.js'),
    import('../demo/functions/story.js'),
  ]);
  const replicas = await DemoReplicas.start();
  return {
    what: `${REPLICAS.length} replicas of a network function`,
    note: 'The replicas are stand-ins: they answer the REST API as the code of the function does, and route no traffic.',
    parts: {
      data: join(folder, 'fleet'),
      nodes: [],
      functions: { inventory: replicas.list(join(folder, 'replicas')), names: REPLICAS },
    },
    tell: (stage) => tellFunctions(stage, replicas),
    close: () => replicas.close(),
  };
}
