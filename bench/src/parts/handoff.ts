import { ControlPlane } from '../harness/control-plane.js';
import { median, percentile } from '../harness/figures.js';
import { joinFleet } from '../harness/fleet.js';
import { Floor } from '../harness/floor.js';
import { contentOf, file, pool } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';
import { phase } from '../harness/phase.js';

/** Enough for a median. With a budget of 1, a larger fleet only takes more time. */
const MOST_NODES = 1_000;

/**
 * The time from the report of one node to the start of the next. With a budget of 1, a rollout consists of such steps.
 */
export const handoff: Part = {
  name: 'handoff',
  what: 'budget 1: from node.applied to the start of the next applier ÷ the bare client with the same messages and reads',
  run,
};

async function run(context: PartContext): Promise<readonly Result[]> {
  const nodes = Math.min(MOST_NODES, context.size);
  const ours = await phase(context, async (inner) => {
    const plane = await ControlPlane.start(inner);
    const fleet = await joinFleet(inner, plane, { nodes });
    await plane.rollOut([pool(1)]);
    await plane.rollOut([file('bench', contentOf(1))]);
    await plane.untilQuiet();
    await fleet.reset();
    await plane.rollOut([file('bench', contentOf(2))]);
    return (await fleet.figures()).handoffsMs;
  });
  const floor = await phase(context, async (inner) => {
    const bare = await Floor.start(inner, { nodes, budget: 1 });
    await bare.run();
    return (await bare.run()).handoffsMs;
  });
  const spread = (times: readonly number[]): string =>
    [10, 50, 90, 99].map((p) => `p${p} ${percentile(times, p).toFixed(2)}`).join(', ');
  const note = `${ours.length} handoffs: ${spread(ours)} ms; floor: ${spread(floor)} ms`;
  return [
    result({ name: 'handoff', unit: 'ms', value: median(ours), floor: median(floor), note }, { of: 'ratio', most: 2 }),
  ];
}
