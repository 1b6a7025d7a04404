import { ControlPlane, startCluster, type PlaneOptions } from '../harness/control-plane.js';
import { median } from '../harness/figures.js';
import { joinFleet } from '../harness/fleet.js';
import { contentOf, file, pool } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';

const RUNS = 3;
/** With one node at a time, every append is waited for in turn. With many at once, nodes share appends. */
const BUDGETS = [1, 100] as const;

/** The cost of three copies of everything, for docs/design/scaling.md. Has no goals, and only runs on request. */
export const replicas: Part = {
  name: 'replicas',
  what: 'a rollout on three servers with three copies ÷ one server with one copy, all on this machine',
  run,
  onRequest: true,
};

interface Rollout {
  /** Per node, in milliseconds. */
  readonly took: number;
  readonly cpu: number;
}

async function run(context: PartContext): Promise<readonly Result[]> {
  const { size, say } = context;
  const single = await begin(context, {});
  const cluster = await begin(context, { servers: await startCluster(context), replicas: 3 });
  const results: Result[] = [];
  for (const budget of BUDGETS) {
    for (const plane of [single, cluster]) await plane.rollOut([pool(budget)]);
    const [ones, threes]: [Rollout[], Rollout[]] = [[], []];
    // In turn, because the speed of a shared machine changes from minute to minute. The first run of each is a warm-up.
    for (let i = 0; i <= RUNS; i += 1) {
      const [one, three] = [await rollOut(single, size, budget + i), await rollOut(cluster, size, budget + i)];
      say(`budget ${budget}: one copy ${describe(one)}, three ${describe(three)}`);
      if (i === 0) continue;
      ones.push(one);
      threes.push(three);
    }
    const of = (rollouts: readonly Rollout[], field: keyof Rollout): number =>
      median(rollouts.map((each) => each[field]));
    results.push(
      result({
        name: `replicas/time-budget-${budget}`,
        unit: 'ms per node',
        value: of(threes, 'took'),
        floor: of(ones, 'took'),
        note: `${size} nodes, median of ${RUNS} in turn; the floor is the same with one server and one copy`,
      }),
      result({
        name: `replicas/cpu-budget-${budget}`,
        unit: 'ms of CPU per node',
        value: of(threes, 'cpu'),
        floor: of(ones, 'cpu'),
        note: 'services and all servers',
      }),
    );
  }
  return results;
}

async function begin(context: PartContext, options: PlaneOptions): Promise<ControlPlane> {
  const plane = await ControlPlane.start(context, options);
  await joinFleet(context, plane, { nodes: context.size });
  return plane;
}

async function rollOut(plane: ControlPlane, size: number, version: number): Promise<Rollout> {
  await plane.untilQuiet();
  const before = plane.cpuMs();
  const { at } = await plane.rollOut([file('bench', contentOf(version))]);
  return { took: (at.complete - at.started) / size, cpu: (plane.cpuMs() - before) / size };
}

const describe = ({ took, cpu }: Rollout): string => `${took.toFixed(2)} ms and ${cpu.toFixed(2)} ms of CPU per node`;
