import { leastPerSecond } from '../floor/least.js';
import { ControlPlane, type Stations } from '../harness/control-plane.js';
import { median } from '../harness/figures.js';
import { joinFleet } from '../harness/fleet.js';
import { Floor } from '../harness/floor.js';
import { contentOf, file, pool } from '../harness/manifests.js';
import { phase } from '../harness/phase.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';

const BUDGET = 100;
/** Runs of each, after one for warm-up. */
const RUNS = 5;

/** Nodes per second in a rollout of the whole fleet, with the whole control plane as processes. */
export const rollout10k: Part = {
  name: 'rollout-10k',
  what: 'nodes per second with instant appliers and budget 100 ÷ the bare client with the same messages',
  run,
};

async function run(context: PartContext): Promise<readonly Result[]> {
  const { size } = context;
  const { rolling, whole, floors, note } = await phase(context, inTurn);
  const least = await leastPerSecond(context, size);
  const about = { unit: 'nodes/s', floor: median(floors) };
  const each = `in turn with runs of the floor, while the other is idle: ${rolling.map((rate, i) => (rate / (floors[i] as number)).toFixed(2)).join(', ')} × floor`;
  return [
    result(
      {
        name: 'rollout-10k',
        ...about,
        value: median(rolling),
        note: `${size} nodes, budget ${BUDGET}, median of ${RUNS}, ${each}; from rollout.started to rollout.complete. Last run: ${note}`,
      },
      { of: 'ratio', least: 0.6 },
    ),
    result({
      name: 'rollout-10k/published-to-succeeded',
      ...about,
      value: median(whole),
      note: 'with rendering, a config written for each node, review and commit, which the floor does not do',
    }),
    result({
      name: 'rollout-10k/least',
      unit: 'nodes/s',
      value: least,
      note: 'one put, one publish, one ack per node: the minimum for any such system',
    }),
  ];
}

interface Rates {
  readonly rolling: number[];
  readonly whole: number[];
  readonly floors: number[];
  note: string;
}

/** A shared machine may be half as fast again a minute later, so both are measured in turn. */
async function inTurn(context: PartContext): Promise<Rates> {
  const { size } = context;
  const rates: Rates = { rolling: [], whole: [], floors: [], note: '' };
  const plane = await ControlPlane.start(context);
  await joinFleet(context, plane, { nodes: size });
  await plane.rollOut([pool(BUDGET)]);
  const floor = await Floor.start(context, { nodes: size, budget: BUDGET });
  for (let i = 0; i <= RUNS; i += 1) {
    const bare = (size / (await floor.run()).ms) * 1000;
    await plane.untilQuiet();
    const before = plane.cpuByName();
    const publishedMs = Date.now();
    const { at } = await plane.rollOut([file('bench', contentOf(i + 1))]);
    rates.note = words(publishedMs, at, before, plane.cpuByName());
    context.say(`${i === 0 ? 'to warm up' : `run ${i}`}: ${rates.note}; the floor ${bare.toFixed(0)} nodes/s`);
    if (i === 0) continue;
    rates.floors.push(bare);
    rates.rolling.push((size / (at.complete - at.started)) * 1000);
    rates.whole.push((size / (at.succeeded - publishedMs)) * 1000);
  }
  return rates;
}

function words(
  publishedMs: number,
  at: Stations,
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): string {
  const seconds = (from: number, to: number): string => ((to - from) / 1000).toFixed(2);
  const cpu = Object.keys(after).map(
    (name) => `${name} ${(((after[name] ?? 0) - (before[name] ?? 0)) / 1000).toFixed(2)}`,
  );
  const stations = [
    `accepted +${seconds(publishedMs, at.accepted)}`,
    `rendered +${seconds(at.accepted, at.rendered)}`,
    `validated +${seconds(at.rendered, at.validated)}`,
    `started +${seconds(at.validated, at.started)}`,
    `complete +${seconds(at.started, at.complete)}`,
    `succeeded +${seconds(at.complete, at.succeeded)} s`,
  ];
  return `${stations.join(', ')}; CPU s: ${cpu.join(', ')}`;
}
