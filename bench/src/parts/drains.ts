import { readAll } from '#libs/nats';
import { decodeFact, LEDGER, type Fact } from '#libs/contracts';
import { API_VERSION } from '#libs/manifests';
import { nodePath, podPath } from '#libs/testing';
import { nodeName } from '../fleet/protocol.js';
import { ControlPlane } from '../harness/control-plane.js';
import { median } from '../harness/figures.js';
import { joinFleet } from '../harness/fleet.js';
import { eachAtOnce, populate, startKube, type KubeWorld } from '../harness/kube-world.js';
import { contentOf, file, pool } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';
import { sleep } from '../harness/processes.js';

const NODES = 100;
const PODS_EACH = 10;
const BUDGET = 10;
/** How long a pod takes to end. Many need longer. */
const ENDING_MS = 1_000;
const LOOK_MS = 50;
const POLICY = {
  apiVersion: API_VERSION,
  kind: 'DisruptionPolicy',
  metadata: { name: 'drains' },
  spec: { nodeSelector: {}, default: [{ kind: 'drain' }] },
};

/** The cost of a drain in addition to the evictions themselves. */
export const drains: Part = {
  name: 'drains',
  what: `a rollout that drains ${NODES} nodes with ${PODS_EACH} pods each on a real API server, ${BUDGET} at once ÷ the same evictions by a script`,
  run,
};

async function run(context: PartContext): Promise<readonly Result[]> {
  const world = await startKube(context, ENDING_MS);
  const nodes = Array.from({ length: NODES }, (_, i) => nodeName(i));
  await eachAtOnce(nodes, 16, async (node) => void (await world.scene.node(node)));
  const plane = await ControlPlane.start(context, {
    env: { SLUICE_DRAIN: 'kubernetes', SLUICE_INVENTORY: 'kubernetes', KUBECONFIG: world.cluster.kubeconfig },
  });
  await joinFleet(context, plane, { nodes: NODES });
  await plane.rollOut([pool(BUDGET), POLICY]);
  const before = await byHand(context, world, nodes);
  const { ms: ours, spent } = await bySluice(context, world, plane, nodes);
  const after = await byHand(context, world, nodes);
  const floor = (before + after) / 2;
  const note = `pods end ${ENDING_MS / 1000} s after their eviction; from the start of the rollout until the last lease is released. The script, run before and after: cordon, evict all pods of the node, wait until they are gone, uncordon; ${BUDGET} nodes at once, ${(before / 1000).toFixed(1)} s and ${(after / 1000).toFixed(1)} s. Sluice's medians for one node, in ms: ${spent}`;
  return [
    result({ name: 'drains', unit: 's', value: ours / 1000, floor: floor / 1000, note }, { of: 'ratio', most: 1.3 }),
  ];
}

async function bySluice(
  context: PartContext,
  world: KubeWorld,
  plane: ControlPlane,
  nodes: readonly string[],
): Promise<{ readonly ms: number; readonly spent: string }> {
  await populate(world, nodes, PODS_EACH, 30);
  await plane.untilQuiet();
  const { state } = await plane.bus.streamInfo(LEDGER);
  const { at } = await plane.rollOut([file('bench', contentOf(1))]);
  await plane.untilQuiet();
  const leases = await leasesBehind(plane, state.last_seq);
  const released = leases.flatMap((times) => times.get('node.lease.released') ?? []);
  if (released.length !== nodes.length) throw new Error(`${released.length} leases were released, of ${nodes.length}`);
  const left =
    (await world.api.list('/api/v1/nodes')).filter(({ spec }) => spec?.['unschedulable'] === true).length +
    (await world.api.list('/api/v1/pods')).length;
  if (left > 0) throw new Error(`${left} nodes and pods are left`);
  const ms = Math.max(...released) - at.started;
  context.say(`Sluice: ${(ms / 1000).toFixed(2)} s`);
  return { ms, spent: spentOn(leases) };
}

type Times = ReadonlyMap<Fact['type'], number>;

/** When each fact of each lease was stored. */
async function leasesBehind(plane: ControlPlane, last: number): Promise<readonly Times[]> {
  const leases = new Map<string, Map<Fact['type'], number>>();
  await readAll(plane.bus, { stream: LEDGER, filters: ['node.>'], from: last + 1, ahead: 5_000 }, (message) => {
    const fact = decodeFact(message.subject, message.string());
    if (!('lease' in fact) || fact.lease === '') return;
    const times = leases.get(fact.lease) ?? new Map<Fact['type'], number>();
    leases.set(fact.lease, times.set(fact.type, Number(message.timestampNanos / 1_000n) / 1e3));
  });
  return [...leases.values()];
}

const STEPS: readonly Fact['type'][] = [
  'node.lease.granted',
  'node.cordoned',
  'node.drained',
  'node.lease.settled',
  'node.uncordoned',
  'node.lease.released',
];

function spentOn(leases: readonly Times[]): string {
  return STEPS.slice(1)
    .map((step, i) => {
      const times = leases.flatMap((lease) =>
        lease.has(step) ? [(lease.get(step) as number) - (lease.get(STEPS[i] as Fact['type']) ?? Number.NaN)] : [],
      );
      return `until ${step.replace(/^node\.(lease\.)?/, '')} ${median(times).toFixed(0)}`;
    })
    .join(', ');
}

async function byHand(context: PartContext, world: KubeWorld, nodes: readonly string[]): Promise<number> {
  const { api } = world;
  await populate(world, nodes, PODS_EACH, 30);
  const fromMs = performance.now();
  await eachAtOnce(nodes, BUDGET, async (node) => {
    await world.scene.cordon(node);
    await Promise.all(
      Array.from({ length: PODS_EACH }, (_, i) => `${node}-p${i}`).map((name) =>
        api.create(`${podPath(name)}/eviction`, {
          apiVersion: 'policy/v1',
          kind: 'Eviction',
          metadata: { name, namespace: 'default' },
        }),
      ),
    );
    while ((await api.list(`/api/v1/pods?fieldSelector=spec.nodeName%3D${node}`)).length > 0) await sleep(LOOK_MS);
    await api.patch(nodePath(node), { spec: { unschedulable: null } });
  });
  const ms = performance.now() - fromMs;
  context.say(`script: ${(ms / 1000).toFixed(2)} s`);
  return ms;
}
