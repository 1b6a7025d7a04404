import { ControlPlane } from '../harness/control-plane.js';
import { joinFleet } from '../harness/fleet.js';
import { Floor } from '../harness/floor.js';
import { contentOf, file, pool } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';
import { phase } from '../harness/phase.js';

const BUDGET = 10;
const SMALL = 100;
/**
 * A process of 100 nodes uses so little CPU that the ticks of 10 ms would dominate. So many rollouts are added up,
 * after some for warm-up.
 */
const SMALL_RUNS = { warm: 5, measured: 20 };
const LARGE_RUNS = { warm: 1, measured: 1 };

/** The growth of the CPU time per node, from a small fleet to a large one. */
export const growth: Part = {
  name: 'growth',
  what: `CPU of the control plane, server included, per node, budget ${BUDGET}, at full size ÷ at ${SMALL} nodes`,
  run,
};

async function run(context: PartContext): Promise<readonly Result[]> {
  const small = await cpuPerNode(context, SMALL, SMALL_RUNS);
  const large = await cpuPerNode(context, context.size, LARGE_RUNS);
  const bareSmall = await bareCpuPerNode(context, SMALL, SMALL_RUNS);
  const floor = await bareCpuPerNode(context, context.size, LARGE_RUNS);
  return [
    result(
      {
        name: 'growth',
        unit: '×',
        value: large.total / small.total,
        floor: floor / bareSmall,
        note: `${small.total.toFixed(3)} ms at ${SMALL} nodes, ${large.total.toFixed(3)} ms at ${context.size}; from published to succeeded. Floor: the same for the bare client and its server`,
      },
      { of: 'value', most: 1.2 },
    ),
    result(
      {
        name: 'growth/cpu-per-node',
        unit: 'ms',
        value: large.total,
        floor,
        note: `at ${context.size} nodes: ${large.note}; at ${SMALL}: ${small.note}. Floor: the bare client and its server`,
      },
      { of: 'value', most: 1 },
    ),
  ];
}

async function bareCpuPerNode(
  context: PartContext,
  nodes: number,
  { warm, measured }: typeof SMALL_RUNS,
): Promise<number> {
  return phase(context, async (inner) => {
    const bare = await Floor.start(inner, { nodes, budget: BUDGET });
    for (let i = 0; i < warm; i += 1) await bare.run();
    let used = 0;
    for (let i = 0; i < measured; i += 1) used += (await bare.run()).cpuMs;
    return used / nodes / measured;
  });
}

async function cpuPerNode(
  outer: PartContext,
  nodes: number,
  { warm, measured }: typeof SMALL_RUNS,
): Promise<{ readonly total: number; readonly note: string }> {
  return phase(outer, async (context) => {
    const plane = await ControlPlane.start(context);
    await joinFleet(context, plane, { nodes });
    await plane.rollOut([pool(BUDGET)]);
    for (let i = 0; i < warm; i += 1) await plane.rollOut([file('bench', contentOf(i))]);
    await plane.untilQuiet();
    const [startMs, before] = [performance.now(), plane.cpuByName()];
    for (let i = 0; i < measured; i += 1) await plane.rollOut([file('bench', contentOf(100 + i))]);
    const after = plane.cpuByName();
    const seconds = (performance.now() - startMs) / 1000;
    const each = Object.entries(after).map(
      ([name, ms]) => [name, (ms - (before[name] ?? 0)) / nodes / measured] as const,
    );
    const total = each.reduce((all, [, ms]) => all + ms, 0);
    const note = `${each.map(([name, ms]) => `${name} ${ms.toFixed(3)}`).join(', ')} ms, ${((nodes * measured) / seconds).toFixed(0)} nodes/s`;
    context.say(`${nodes} nodes: ${total.toFixed(3)} ms per node: ${note}`);
    return { total, note };
  });
}
