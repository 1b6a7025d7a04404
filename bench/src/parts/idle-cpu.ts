import { startBare } from '../harness/bare.js';
import { ControlPlane, startServer } from '../harness/control-plane.js';
import { Fleet, joinFleet } from '../harness/fleet.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';
import { phase } from '../harness/phase.js';
import { cpuMs, sleep } from '../harness/processes.js';
import { HEARTBEATS_PER_SECOND } from '#libs/contracts';
import { askedPaceMs } from '../../../services/inventory/src/core/index.js';

const WINDOW_MS = 40_000;
/** Until the garbage of the joins is collected. Before that, a fleet is not idle. */
const SETTLE_MS = 45_000;
/** Listens to heartbeats and remembers the last one of each node: the minimum to know which nodes are silent. */
const LISTENER = `require('@nats-io/transport-node').connect({servers: process.argv[1]}).then((nc) => {
  const heard = new Map();
  nc.subscribe('alive.*', {callback: (error, message) => heard.set(message.subject, performance.now())});
})`;

/** The CPU usage of a fleet while nothing happens. */
export const idleCpu: Part = {
  name: 'idle-cpu',
  what: 'CPU of the idle control plane with all nodes connected, at the heartbeat rate that the inventory asks for',
  run,
};

async function run(context: PartContext): Promise<readonly Result[]> {
  const ours = await phase(context, async (inner) => {
    const plane = await ControlPlane.start(inner);
    await joinFleet(inner, plane, { nodes: context.size });
    await sleep(SETTLE_MS);
    const before = plane.cpuByName();
    await sleep(WINDOW_MS);
    const after = plane.cpuByName();
    return Object.entries(after).map(([name, ms]) => [name, ((ms - (before[name] ?? 0)) / WINDOW_MS) * 100] as const);
  });
  const floor = await phase(context, async (inner) => {
    const server = await startServer(inner);
    const listener = startBare(inner, LISTENER, server.url);
    // Nothing asks these nodes for fewer heartbeats, so they get the interval that Sluice would request.
    await Fleet.start(inner, [server.url], {
      nodes: context.size,
      announce: false,
      heartbeatMs: Math.max(10_000, askedPaceMs((context.size / HEARTBEATS_PER_SECOND) * 1_000)),
    });
    await sleep(5_000);
    const used = (): number => cpuMs(server.pid) + cpuMs(listener.pid as number);
    const before = used();
    await sleep(WINDOW_MS);
    return ((used() - before) / WINDOW_MS) * 100;
  });
  const total = ours.reduce((all, [, percent]) => all + percent, 0);
  const note = `${context.size} nodes over ${WINDOW_MS / 1000} s, ${SETTLE_MS / 1000} s after the joins: ${ours.map(([name, percent]) => `${name} ${percent.toFixed(2)}`).join(', ')}; floor: the server, and one process that receives the same heartbeats`;
  return [result({ name: 'idle-cpu', unit: '% of a core', value: total, floor, note }, { of: 'value', most: 3 })];
}
