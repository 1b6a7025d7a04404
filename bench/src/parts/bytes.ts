import { CONFIGS, LEDGER, reportSubject } from '#libs/contracts';
import { connectBus, ensureTopology, type Bus } from '#libs/bus';
import { nodeName } from '../fleet/protocol.js';
import { ControlPlane, startServer } from '../harness/control-plane.js';
import { joinFleet } from '../harness/fleet.js';
import { contentOf, file, pool } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';
import { phase } from '../harness/phase.js';

const MOST_NODES = 1_000;
const KB = 1000;

/** What the store grows by. */
export const bytes: Part = { name: 'bytes', what: 'stored per node and change, beyond the config itself', run };

async function run(context: PartContext): Promise<readonly Result[]> {
  const nodes = Math.min(MOST_NODES, context.size);
  const measured = await phase(context, (inner) => oneChange(inner, nodes));
  const floor = await phase(context, (inner) => bareBytes(inner, 100));
  const total = [...measured.values()].reduce((all, one) => all + one, 0);
  const listed = [...measured].filter(([, one]) => Math.abs(one) >= 1).sort(([, a], [, b]) => b - a).map(([name, one]) => `${name} ${one.toFixed(0)}`).join(', ');
  const note = `${nodes} nodes, the third change over all of them, as the server counts (state.bytes); bytes by stream: ${listed}. Floor: the same four messages without a body`;
  return [result({ name: 'bytes', unit: 'KB', value: total / KB, floor: floor / KB, note }, { of: 'value', most: 1.5 })];
}

/** Bytes per node by stream, the config's text taken out. The first changes make every key of the views; the third is as all that follow. */
async function oneChange(context: PartContext, nodes: number): Promise<ReadonlyMap<string, number>> {
  const plane = await ControlPlane.start(context);
  await joinFleet(context, plane, { nodes });
  await plane.rollOut([pool(100)]);
  for (const version of [1, 2]) await plane.rollOut([file('bench', contentOf(version))]);
  await plane.untilQuiet();
  const before = await storedBytes(plane.bus);
  const configsBefore = before.get(`KV_${CONFIGS}`)?.messages ?? 0;
  await plane.rollOut([file('bench', contentOf(3))]);
  await plane.untilQuiet();
  const after = await storedBytes(plane.bus);
  if ((after.get(`KV_${CONFIGS}`)?.messages ?? 0) - configsBefore !== nodes) throw new Error('not one config per node was stored');
  const configBytes = Buffer.byteLength(JSON.stringify({ fragments: [{ kind: 'File', name: 'bench', spec: { content: contentOf(3), mode: '0644', path: '/etc/bench/bench' } }] }));
  return new Map([...after].map(([name, now]) => [name, (now.bytes - (before.get(name)?.bytes ?? 0)) / nodes - (name === `KV_${CONFIGS}` ? configBytes : 0)]));
}

async function storedBytes(bus: Bus): Promise<ReadonlyMap<string, { readonly bytes: number; readonly messages: number }>> {
  const found = new Map<string, { bytes: number; messages: number }>();
  for await (const { config, state } of bus.jsm.streams.list()) found.set(config.name, { bytes: state.bytes, messages: state.messages });
  return found;
}

/** Granted, settled, released and the report, as empty messages. */
async function bareBytes(context: PartContext, nodes: number): Promise<number> {
  const server = await startServer(context);
  const bus = await connectBus({ servers: server.url, name: 'bench' });
  context.atEnd(() => bus.close());
  await ensureTopology(bus);
  for (let n = 0; n < nodes; n += 1) {
    const node = nodeName(n);
    const facts = ['granted', 'settled', 'released'].map((phase_) => `node.lease.${phase_}.all.${node}`);
    for (const subject of [...facts, reportSubject('applied', node)]) await bus.js.publish(subject, '');
  }
  const stored = await storedBytes(bus);
  return ((stored.get(LEDGER)?.bytes ?? 0) + (stored.get('REPORTS')?.bytes ?? 0)) / nodes;
}
