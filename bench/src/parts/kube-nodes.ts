import { LEDGER } from '#libs/contracts';
import { nodePath } from '#libs/testing';
import { nodeName } from '../fleet/protocol.js';
import { ControlPlane, startServer } from '../harness/control-plane.js';
import { median, timed } from '../harness/figures.js';
import { Fleet, timesOf } from '../harness/fleet.js';
import { eachAtOnce, startKube, type KubeWorld } from '../harness/kube-world.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';
import { phase } from '../harness/phase.js';
import { memoryMb, sleep, until } from '../harness/processes.js';

const NODES = 10_000;
const RUNS = 3;
const SETTLE_MS = 10_000;
const WAIT_MS = 600_000;

/** The cost of following the Nodes of an API server. */
export const kubeNodes: Part = {
  name: 'kube-nodes',
  what: 'the inventory started on a real API server with 10,000 Node objects: until it is ready, and its memory',
  run,
};

async function run(context: PartContext): Promise<readonly Result[]> {
  const count = Math.min(context.size, NODES);
  const world = await startKube(context, 0);
  const made = await timed(() =>
    eachAtOnce(
      Array.from({ length: count }, (_, n) => nodeName(n)),
      16,
      async (node) => void (await world.scene.node(node, labelsOf(node))),
    ),
  );
  context.say(`${count} Nodes created in ${(made / 1000).toFixed(1)} s`);
  const server = await startServer(context);
  const env = {
    SLUICE_INVENTORY: 'kubernetes',
    KUBECONFIG: world.cluster.kubeconfig,
    SLUICE_SILENT_SECONDS: '1000000',
  };
  const begin = (inner: PartContext): Promise<ControlPlane> =>
    ControlPlane.start(inner, { servers: [server], processes: [['inventory']], env });
  const first = await phase(context, async (inner) => {
    const plane = await begin(inner);
    const ms = await timed(async () => {
      await Fleet.start(inner, [server.url], { nodes: count, heartbeatMs: 0 });
      await untilCounted(plane, 'node.available.*', count);
    });
    await plane.untilQuiet();
    return ms;
  });
  const [times, memory]: [number[], { readonly rss: number; readonly peak: number }[]] = [[], []];
  for (let i = 0; i < RUNS; i += 1) {
    await phase(context, async (inner) => {
      times.push(await startOnce(inner, world, begin, i));
    });
  }
  await phase(context, async (inner) => {
    const plane = await begin(inner);
    await sleep(SETTLE_MS);
    memory.push(memoryMb((plane.services[0] as { readonly pid: number }).pid));
  });
  const { rss, peak } = memory[0] as { readonly rss: number; readonly peak: number };
  return [
    result({
      name: 'kube-nodes',
      unit: 's',
      value: median(times) / 1000,
      note: `${count} known Nodes; from the start of the process until a change of a Node made meanwhile is in the ledger, median of ${RUNS}. With all nodes new, from their announcements until all have joined and are available: ${(first / 1000).toFixed(1)} s`,
    }),
    result(
      {
        name: 'kube-nodes/rss',
        unit: 'MB',
        value: rss,
        note: `the inventory, ${SETTLE_MS / 1000} s after it became the leader; peak before that: ${peak.toFixed(0)}`,
      },
      { of: 'value', most: 250 },
    ),
  ];
}

/** About as many labels as the Nodes of a cloud provider have. */
const labelsOf = (node: string): Readonly<Record<string, string>> =>
  Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`example.com/label-${i}`, `${node}-${i}`]));

async function startOnce(
  context: PartContext,
  { api }: KubeWorld,
  begin: (inner: PartContext) => Promise<ControlPlane>,
  i: number,
): Promise<number> {
  const node = nodeName(i);
  await api.patch(nodePath(node), { metadata: { labels: { round: String(i) } } });
  return timed(async () => {
    const plane = await begin(context);
    await until(
      'the new label in the ledger',
      async () => {
        plane.checkAlive();
        const message = await plane.bus.stored(LEDGER, { last_by_subj: `node.changed.${node}` });
        return message?.string().includes(`"round":"${i}"`) === true ? true : undefined;
      },
      WAIT_MS,
      20,
    );
  });
}

async function untilCounted(plane: ControlPlane, subject: string, count: number): Promise<void> {
  await until(
    `${count} of ${subject}`,
    async () => {
      plane.checkAlive();
      return (await timesOf(plane.bus, [subject], 1)).length >= count ? true : undefined;
    },
    WAIT_MS,
    1_000,
  );
}
