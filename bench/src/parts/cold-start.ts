import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { connectBus, ensureTopology, readView } from '#libs/nats';
import { SNAPSHOTS } from '#libs/contracts';
import type { NatsServer } from '#libs/testing';
import { nodeName } from '../fleet/protocol.js';
import { ControlPlane, startServer } from '../harness/control-plane.js';
import { median, timed } from '../harness/figures.js';
import { ROOT } from '../harness/folders.js';
import { writeHistory, type History } from '../harness/history.js';
import { phase } from '../harness/phase.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';

const run_ = promisify(execFile);
const CHANGES = 200;
const RUNS = 3;
/** There are no nodes that could send heartbeats. */
const ENV = { SLUICE_SILENT_SECONDS: '1000000' };

/** Starts, and reads the newest snapshot of each service: everything that must be known before the first decision. */
const BARE_START = `require('@nats-io/transport-node').connect({servers: process.argv[1]}).then(async (nc) => {
  const store = await new (require('@nats-io/obj').Objm)(nc).open(process.argv[2], false);
  const newest = new Map();
  for (const info of await store.list()) {
    const service = info.name.split('.')[0];
    if (!(newest.get(service)?.mtime > info.mtime)) newest.set(service, info);
  }
  for (const { name } of newest.values()) await store.getBlob(name);
  await nc.close();
})`;

/** The time from a complete stop until every service leads. */
export const coldStart: Part = {
  name: 'cold-start',
  what: `all services start on a store with a full fleet and ${CHANGES} changes of history`,
  run,
};

async function run(context: PartContext): Promise<readonly Result[]> {
  const server = await startServer(context);
  const history = await fill(context, server);
  const first = await startOnce(context, server, history);
  const times: number[] = [];
  const servers: number[] = [];
  const floors: number[] = [];
  for (let i = 0; i < RUNS; i += 1) {
    servers.push(await timed(() => server.restart()));
    floors.push(await timed(() => run_(process.execPath, ['-e', BARE_START, server.url, SNAPSHOTS], { cwd: ROOT })));
    times.push(await startOnce(context, server, history));
  }
  const about = `${history.nodes} nodes, ${CHANGES} changes of ${history.touched} nodes each, ${history.facts} facts`;
  return [
    result(
      {
        name: 'cold-start',
        unit: 's',
        value: median(times) / 1000,
        note: `${about}; after a clean stop, so with snapshots; time until all lead, median of ${RUNS}. The restart of the server, not included: ${(median(servers) / 1000).toFixed(2)} s. Floor: one process that reads the newest snapshot of each service`,
        floor: median(floors) / 1000,
      },
      { of: 'value', most: 5 },
    ),
    result({
      name: 'cold-start/without-snapshots',
      unit: 's',
      value: first / 1000,
      note: 'the first start: folds every fact and writes every view',
    }),
  ];
}

async function fill(context: PartContext, server: NatsServer): Promise<History> {
  const bus = await connectBus({ servers: server.url, name: 'history', timeoutMs: 30_000 });
  try {
    await ensureTopology(bus);
    let history: History | undefined;
    const ms = await timed(async () => (history = await writeHistory(bus, context.size, CHANGES)));
    context.say(`${history?.facts} facts written in ${(ms / 1000).toFixed(1)} s`);
    return history as History;
  } finally {
    await bus.close();
  }
}

/** The time until all services lead, in ms. Then they are stopped, which stores their snapshots. */
async function startOnce(context: PartContext, server: NatsServer, history: History): Promise<number> {
  return phase(context, async (inner) => {
    let plane: ControlPlane | undefined;
    const ms = await timed(async () => (plane = await ControlPlane.start(inner, { servers: [server], env: ENV })));
    context.say(`all lead after ${(ms / 1000).toFixed(2)} s`);
    await (plane as ControlPlane).untilQuiet();
    await check(plane as ControlPlane, history);
    return ms;
  });
}

/** The history was read correctly, and caused no new decisions. */
async function check(plane: ControlPlane, history: History): Promise<void> {
  const last = await readView(plane.bus, 'rollouts', history.lastChange);
  const node = await readView(plane.bus, 'status', nodeName(0));
  if (last?.phase !== 'succeeded' || node?.desired !== node?.hash)
    throw new Error(`the services misread the history: ${JSON.stringify({ last, node })}`);
  const { state } = await plane.bus.streamInfo('LEDGER');
  if (state.last_seq !== history.facts)
    throw new Error(`the services appended ${state.last_seq - history.facts} facts to the history`);
}
