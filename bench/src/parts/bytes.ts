import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { CONFIGS, LEDGER, reportSubject } from '#libs/contracts';
import { connectBus, ensureTopology, type Bus } from '#libs/nats';
import { nodeName } from '../fleet/protocol.js';
import { ControlPlane, startServer } from '../harness/control-plane.js';
import { joinFleet } from '../harness/fleet.js';
import { contentOf, file, pool } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';
import { phase } from '../harness/phase.js';

const MOST_NODES = 1_000;
/** Enough to fill several blocks of the server. */
const ON_DISK_CHANGES = 30;
const KB = 1000;

/** The growth of the store. */
export const bytes: Part = { name: 'bytes', what: 'bytes stored per node and change, without the config itself', run };

async function run(context: PartContext): Promise<readonly Result[]> {
  const nodes = Math.min(MOST_NODES, context.size);
  const { counted, onDisk } = await phase(context, (inner) => changes(inner, nodes));
  const floor = await phase(context, (inner) => bareBytes(inner, nodes));
  const diskNote = `${nodes} nodes, growth of the files over ${ON_DISK_CHANGES} more changes; full blocks are compressed (S2), the last block of each stream is not. ${listed(onDisk)}. Floor: two facts and a report without a body, the same number of times`;
  const note = `${nodes} nodes, the third change of all nodes, as counted by the server (state.bytes), before compression. ${listed(counted)}. Floor: two facts and a report without a body`;
  return [
    result(
      { name: 'bytes', unit: 'KB', value: sumOf(onDisk) / KB, floor: floor.onDisk / KB, note: diskNote },
      { of: 'value', most: 1.5 },
    ),
    result({ name: 'bytes/uncompressed', unit: 'KB', value: sumOf(counted) / KB, floor: floor.counted / KB, note }),
  ];
}

type PerStream = ReadonlyMap<string, number>;

const sumOf = (found: PerStream): number => [...found.values()].reduce((all, one) => all + one, 0);
const listed = (found: PerStream): string =>
  `Bytes by stream: ${[...found]
    .filter(([, one]) => Math.abs(one) >= 1)
    .sort(([, a], [, b]) => b - a)
    .map(([name, one]) => `${name} ${one.toFixed(0)}`)
    .join(', ')}`;

/**
 * Bytes per node and change by stream, without the text of the config. The first changes create every key of the views.
 * From the third on, all changes are alike.
 */
async function changes(
  context: PartContext,
  nodes: number,
): Promise<{ readonly counted: PerStream; readonly onDisk: PerStream }> {
  const plane = await ControlPlane.start(context);
  await joinFleet(context, plane, { nodes });
  await plane.rollOut([pool(100)]);
  let version = 0;
  const roll = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 1) await plane.rollOut([file('bench', contentOf((version += 1)))]);
    await plane.untilQuiet();
  };
  await roll(2);
  const [before, filesBefore] = [await storedBytes(plane.bus), fileBytes(plane.server.dataDir)];
  await roll(1);
  const after = await storedBytes(plane.bus);
  await roll(ON_DISK_CHANGES - 1);
  const filesAfter = fileBytes(plane.server.dataDir);
  const configs = `KV_${CONFIGS}`;
  if ((after.get(configs)?.messages ?? 0) - (before.get(configs)?.messages ?? 0) !== nodes)
    throw new Error('not one config per node was stored');
  const configBytes = Buffer.byteLength(
    JSON.stringify({
      fragments: [
        { kind: 'File', name: 'bench', spec: { content: contentOf(3), mode: '0644', path: '/etc/bench/bench' } },
      ],
    }),
  );
  const grown = (name: string, bytes: number, changed: number): [string, number] => [
    name,
    bytes / nodes / changed - (name === configs ? configBytes : 0),
  ];
  return {
    counted: new Map([...after].map(([name, now]) => grown(name, now.bytes - (before.get(name)?.bytes ?? 0), 1))),
    onDisk: new Map(
      [...filesAfter].map(([name, now]) => grown(name, now - (filesBefore.get(name) ?? 0), ON_DISK_CHANGES)),
    ),
  };
}

/** The sizes of the files with the messages of each stream. */
function fileBytes(dataDir: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const entry of readdirSync(dataDir, { recursive: true, withFileTypes: true })) {
    const stream = /\/streams\/([^/]+)\/msgs$/.exec(entry.parentPath)?.[1];
    if (stream === undefined || !entry.isFile()) continue;
    // A file may be replaced while its size is read.
    found.set(
      stream,
      (found.get(stream) ?? 0) + (statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0),
    );
  }
  return found;
}

async function storedBytes(
  bus: Bus,
): Promise<ReadonlyMap<string, { readonly bytes: number; readonly messages: number }>> {
  const found = new Map<string, { bytes: number; messages: number }>();
  for await (const { config, state } of bus.jsm.streams.list())
    found.set(config.name, { bytes: state.bytes, messages: state.messages });
  return found;
}

/**
 * Granted, settled and the report as empty messages: their size according to the server, and the growth of its files.
 */
async function bareBytes(
  context: PartContext,
  nodes: number,
): Promise<{ readonly counted: number; readonly onDisk: number }> {
  const server = await startServer(context);
  const bus = await connectBus({ servers: server.url, name: 'bench' });
  context.atEnd(() => bus.close());
  await ensureTopology(bus);
  const subjects = Array.from({ length: nodes }, (_, n) => nodeName(n)).flatMap((node) => [
    ...['granted', 'settled'].map((phase_) => `node.lease.${phase_}.all.${node}`),
    reportSubject('applied', node),
  ]);
  const roll = async (changes: number): Promise<void> => {
    for (let i = 0; i < changes; i += 1) await Promise.all(subjects.map((subject) => bus.js.publish(subject, '')));
  };
  const sum = (found: ReadonlyMap<string, number>): number => (found.get(LEDGER) ?? 0) + (found.get('REPORTS') ?? 0);
  await roll(2);
  const filesBefore = fileBytes(server.dataDir);
  await roll(ON_DISK_CHANGES);
  const stored = await storedBytes(bus);
  const counted = sum(new Map([...stored].map(([name, { bytes: one }]) => [name, one]))) / (ON_DISK_CHANGES + 2);
  return {
    counted: counted / nodes,
    onDisk: (sum(fileBytes(server.dataDir)) - sum(filesBefore)) / ON_DISK_CHANGES / nodes,
  };
}
