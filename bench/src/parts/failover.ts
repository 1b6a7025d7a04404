import { connectBus } from '#libs/nats';
import { LEDGER } from '#libs/contracts';
import { startBare } from '../harness/bare.js';
import { ControlPlane, startServer, type ServiceProcess } from '../harness/control-plane.js';
import { median } from '../harness/figures.js';
import { joinFleet, timesOf, type Fleet } from '../harness/fleet.js';
import { contentOf, file, pool } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';
import { phase } from '../harness/phase.js';
import { sleep, until } from '../harness/processes.js';

const BUDGET = 10;
const RUNS = 3;
/** What the killed copy had in flight is stored within this time. The next grant takes far longer. */
const ON_ITS_WAY_MS = 20;
/** Leads, by answering requests. */
const BARE_LEADER = `require('@nats-io/transport-node').connect({servers: process.argv[1]}).then((nc) => {
  nc.subscribe('bare.lead', {callback: (error, message) => message.respond('')});
})`;
/** Sends requests to its leader, and stores one message as soon as there is no answer. */
const BARE_STANDBY = `require('@nats-io/transport-node').connect({servers: process.argv[1]}).then(async (nc) => {
  const js = require('@nats-io/jetstream').jetstream(nc);
  while (await nc.request('bare.lead', '', {timeout: 1000}).then(() => true, () => false)) await new Promise((resolve) => setTimeout(resolve, 20));
  await js.publish('bare.granted', '');
})`;

/** The time without grants after kill -9 of the leading scheduler. */
export const failover: Part = {
  name: 'failover',
  what: 'time until the next grant after the leading scheduler is killed in a rollout, with a standby copy',
  run,
};

async function run(context: PartContext): Promise<readonly Result[]> {
  const floors: number[] = [];
  for (let i = 0; i < RUNS; i += 1) floors.push(await phase(context, bareOnce));
  const plane = await ControlPlane.start(context);
  const fleet = await joinFleet(context, plane, { nodes: context.size });
  await plane.rollOut([pool(BUDGET)]);
  const gaps: number[] = [];
  let leader = plane.services.find(({ name }) => name === 'scheduler') as ServiceProcess;
  for (let i = 0; i < RUNS; i += 1) {
    const standby = plane.startService('scheduler');
    await sleep(5_000);
    await plane.untilQuiet();
    gaps.push(await killOnce(context, plane, fleet, leader, i + 1));
    context.say(`run ${i + 1}: ${((gaps.at(-1) ?? 0) / 1000).toFixed(2)} s`);
    leader = standby;
  }
  const note = `${context.size} nodes, budget ${BUDGET}; kill -9 after a fifth of the rollout, ${RUNS} times: ${gaps.map((gap) => (gap / 1000).toFixed(2)).join(', ')} s; median. Floor: a bare standby that polls its leader 50 times a second and stores one message`;
  return [
    result(
      { name: 'failover', unit: 's', value: median(gaps) / 1000, floor: Math.min(...floors) / 1000, note },
      { of: 'value', most: 3 },
    ),
  ];
}

/**
 * The time from kill -9 of a bare leader until the standby has stored its message. A standby whose request was sent
 * just before the kill waits for its whole timeout, so the floor is the minimum of several runs.
 */
async function bareOnce(context: PartContext): Promise<number> {
  const server = await startServer(context);
  const bus = await connectBus({ servers: server.url, name: 'bench' });
  context.atEnd(() => bus.close());
  await bus.jsm.streams.add({ name: 'BARE', subjects: ['bare.granted'] });
  const isLed = (): Promise<boolean> =>
    bus.request('bare.lead', '').then(
      () => true,
      () => false,
    );
  const leader = startBare(context, BARE_LEADER, server.url);
  await until('it leads', async () => ((await isLed()) ? true : undefined), 10_000, 20);
  startBare(context, BARE_STANDBY, server.url);
  await sleep(1_000);
  leader.kill('SIGKILL');
  const killedMs = Date.now();
  const stored = await until(
    'the other leads',
    async () => (await bus.stored('BARE', { last_by_subj: 'bare.granted' })) ?? undefined,
    10_000,
    5,
  );
  return stored.time.getTime() - killedMs;
}

async function killOnce(
  context: PartContext,
  plane: ControlPlane,
  fleet: Fleet,
  leader: ServiceProcess,
  version: number,
): Promise<number> {
  const from = (await plane.bus.streamInfo(LEDGER)).state.last_seq + 1;
  await fleet.reset();
  const change = await plane.publish([file('bench', contentOf(version))]);
  await until(
    'a fifth of the rollout',
    async () => ((await fleet.figures()).applied >= context.size / 5 ? true : undefined),
    120_000,
    10,
  );
  leader.child.kill('SIGKILL');
  const killedMs = Date.now();
  await plane.untilFact('rollout.succeeded', change);
  const grants = await timesOf(plane.bus, ['node.lease.granted.*.*'], from);
  const next = grants.find((atMs) => atMs > killedMs + ON_ITS_WAY_MS);
  if (next === undefined) throw new Error('the rollout ended before the kill');
  return next - killedMs;
}
