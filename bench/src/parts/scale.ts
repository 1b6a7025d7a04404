import { ControlPlane } from '../harness/control-plane.js';
import { timed } from '../harness/figures.js';
import { joinFleet } from '../harness/fleet.js';
import { contentOf, file, pool } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';
import { end, memoryMb, sleep } from '../harness/processes.js';

const WINDOW_MS = 30_000;

/** The figures of docs/design/scaling.md, for any --size. Has no goals, and only runs on request. */
export const scale: Part = {
  name: 'scale',
  what: 'what a fleet of --size nodes costs: joins, memory, idle CPU, rollouts, a restart of everything',
  run,
  onRequest: true,
};

async function run(context: PartContext): Promise<readonly Result[]> {
  const { size, say } = context;
  const plane = await ControlPlane.start(context);
  let joinMs = await timed(() =>
    joinFleet(context, plane, { nodes: size, connections: Math.max(10, Math.ceil(size / 2_000)) }),
  );
  joinMs -= 2_800; // includes the checks until it counts as quiet
  const idle = await idlePercent(plane);
  say(`idle: ${idle.note}`);
  const rolled: Result[] = [];
  for (const [i, budget] of [size / 100, size / 10].entries()) {
    await plane.rollOut([pool(budget)]);
    await plane.untilQuiet();
    const before = plane.cpuMs();
    const { at } = await plane.rollOut([file('bench', contentOf(i))]);
    const cpu = (plane.cpuMs() - before) / size;
    rolled.push(
      result({
        name: `scale/rollout-budget-${i === 0 ? '1' : '10'}%`,
        unit: 'nodes/s',
        value: (size / (at.complete - at.started)) * 1000,
        note: `${cpu.toFixed(3)} ms of CPU per node; published to started ${((at.started - at.accepted) / 1000).toFixed(1)} s, to succeeded ${((at.succeeded - at.accepted) / 1000).toFixed(1)} s`,
      }),
    );
    say(rolled.at(-1)?.note ?? '');
  }
  await plane.untilQuiet();
  const memory = plane.services.map(({ name, pid }) => ({ name, ...memoryMb(pid) }));
  const server = memoryMb(plane.server.pid);
  const stored = await plane.bus.jsm.getAccountInfo();
  const restartMs = await restart(plane);
  const listed = memory.map(({ name, rss, peak }) => `${name} ${rss.toFixed(0)} (peak ${peak.toFixed(0)})`).join(', ');
  return [
    result({
      name: 'scale/joins',
      unit: 'nodes/s',
      value: (size / joinMs) * 1000,
      note: `${size} nodes announced, rendered, reviewed, shown`,
    }),
    result({ name: 'scale/idle-cpu', unit: '% of a core', value: idle.total, note: idle.note }),
    ...rolled,
    result({
      name: 'scale/rss',
      unit: 'MB',
      value: memory.reduce((all, { rss }) => all + rss, server.rss),
      note: `after the rollouts: ${listed}, nats-server ${server.rss.toFixed(0)} (peak ${server.peak.toFixed(0)})`,
    }),
    result({
      name: 'scale/stored',
      unit: 'KB per node',
      value: stored.storage / size / 1000,
      note: 'all streams and buckets after two changes of half a kilobyte to all nodes',
    }),
    result({
      name: 'scale/restart',
      unit: 's',
      value: restartMs / 1000,
      note: 'all services stopped cleanly and started again, until all lead; with all nodes connected',
    }),
  ];
}

async function idlePercent(plane: ControlPlane): Promise<{ readonly total: number; readonly note: string }> {
  const before = plane.cpuByName();
  await sleep(WINDOW_MS);
  const each = Object.entries(plane.cpuByName()).map(
    ([name, ms]) => [name, ((ms - (before[name] ?? 0)) / WINDOW_MS) * 100] as const,
  );
  return {
    total: each.reduce((all, [, percent]) => all + percent, 0),
    note: each.map(([name, percent]) => `${name} ${percent.toFixed(1)}`).join(', '),
  };
}

async function restart(plane: ControlPlane): Promise<number> {
  const groups = plane.services.map(({ services }) => services);
  await Promise.all(plane.services.splice(0).map(({ child }) => end(child)));
  return timed(async () => {
    for (const services of groups) plane.startService(...services);
    await plane.untilLed();
  });
}
