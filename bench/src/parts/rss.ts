import { LEDGER, SERVICES } from '#libs/contracts';
import { ControlPlane } from '../harness/control-plane.js';
import { joinFleet } from '../harness/fleet.js';
import { ROOT, SLUICE, temporaryFolder } from '../harness/folders.js';
import { contentOf, file, pool } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';
import { phase } from '../harness/phase.js';
import { end, memoryMb, sleep, start, until } from '../harness/processes.js';

/** V8 returns the pages that were needed for loading the code after about 10 to 20 s. */
const SETTLE_MS = 25_000;
const CONNECTED = `require('@nats-io/transport-node').connect({servers: process.argv[1]})`;

/** Resident memory. */
export const rss: Part = {
  name: 'rss',
  what: 'resident memory of an idle applier, an idle service, and the scheduler of a full fleet',
  run,
};

interface IdleMemory {
  readonly services: readonly { readonly name: string; readonly mb: number }[];
  readonly applierMb: number;
  readonly floor: number;
}

async function run(context: PartContext): Promise<readonly Result[]> {
  // Each service on its own, as in a cluster. Then together, as `sluice up` runs them.
  const idle = await phase(context, async (inner) =>
    idleMemory(inner, await ControlPlane.start(inner, { processes: SERVICES.map((name) => [name]) })),
  );
  const { floor, applierMb } = idle;
  const plane = await ControlPlane.start(context);
  const shared = await phase(context, (inner) => idleMemory(inner, plane));
  await joinFleet(context, plane, { nodes: context.size });
  await plane.rollOut([pool(100)]);
  await plane.rollOut([file('bench', contentOf(1), { matchExpressions: [{ key: 'rack', operator: 'Exists' }] })]);
  await plane.untilQuiet();
  await sleep(SETTLE_MS);
  const full = plane.services.map(({ name, pid }) => ({ name, ...memoryMb(pid) }));
  const scheduler = full.find(({ name }) => name === 'scheduler') as { readonly rss: number; readonly peak: number };
  const worst = Math.max(...idle.services.map(({ mb }) => mb));
  const listOf = ({ services }: IdleMemory): string =>
    services.map(({ name, mb }) => `${name} ${mb.toFixed(0)}`).join(', ');
  const listed = full
    .map(({ name, rss: now, peak }) => `${name} ${now.toFixed(0)} (peak ${peak.toFixed(0)})`)
    .join(', ');
  return [
    result(
      {
        name: 'rss/applier',
        unit: 'MB',
        value: applierMb,
        floor,
        note: 'sluice applier, 25 s after it announced itself; floor: Node.js with one connection',
      },
      { of: 'value', most: 70 },
    ),
    result(
      {
        name: 'rss/service',
        unit: 'MB',
        value: worst,
        floor,
        note: `the largest of: ${listOf(idle)}; without nodes. In the processes of sluice up: ${listOf(shared)}`,
      },
      { of: 'value', most: 100 },
    ),
    result(
      {
        name: 'rss/scheduler',
        unit: 'MB',
        value: scheduler.rss,
        floor,
        note: `${context.size} nodes, 25 s after a rollout to all of them. All: ${listed}, nats-server ${memoryMb(plane.server.pid).rss.toFixed(0)}`,
      },
      { of: 'value', most: 250 },
    ),
  ];
}

async function idleMemory(context: PartContext, plane: ControlPlane): Promise<IdleMemory> {
  const [applier, bare] = await appliers(context, plane);
  await sleep(SETTLE_MS);
  return {
    services: plane.services.map(({ name, pid }) => ({ name, mb: memoryMb(pid).rss })),
    applierMb: memoryMb(applier).rss,
    floor: memoryMb(bare).rss,
  };
}

async function appliers(context: PartContext, plane: ControlPlane): Promise<readonly [number, number]> {
  const folder = temporaryFolder(context, 'applier');
  const args = [
    SLUICE,
    'applier',
    '--node',
    'real',
    '--root',
    folder,
    '--state',
    `${folder}/state`,
    '--server',
    plane.server.url,
  ];
  const applier = start(process.execPath, args, { stdio: 'ignore' });
  const bare = start(process.execPath, ['-e', CONNECTED, plane.server.url], { cwd: ROOT, stdio: 'ignore' });
  context.atEnd(() => Promise.all([end(applier), end(bare, 1_000)]).then(() => undefined));
  await until(
    'the applier reviewed',
    async () => (await plane.bus.stored(LEDGER, { last_by_subj: 'node.reviewed.real' })) ?? undefined,
    30_000,
  );
  return [applier.pid as number, bare.pid as number];
}
