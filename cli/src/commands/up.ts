import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT, UsageError, type ExitCode } from '../exit.js';
import { aborted } from '../pause.js';
import type { Session } from '../session.js';
import { defaultDataFolder } from '../up/data-folder.js';
import { localNodes, readInventory, type InventoryNode } from '../up/inventory.js';
import { startUp } from '../up/run-up.js';

export interface UpFlags {
  readonly nodes?: string;
  readonly inventory?: string;
  readonly data?: string;
  readonly port: string;
}

const DEFAULT_NODES = '10';
const NATS_PORT = 4_222;

/** `sluice up`: everything on this machine, until Ctrl-C. */
export async function up(session: Session, flags: UpFlags): Promise<ExitCode> {
  const { io } = session;
  const data = flags.data ?? defaultDataFolder(io.env);
  const options = { data, port: portOf(flags.port), nodes: nodesOf(flags, data), signal: io.interrupted };
  io.say(`starting nats-server, five services and ${options.nodes.length} nodes in ${data}`);
  const running = await startUp({ ...options, say: io.say });
  try {
    if (session.isJson) io.out(JSON.stringify({ server: running.url, pid: process.pid, data: running.data }));
    else io.out(running.url);
    if (running.missing.length > 0 && !io.interrupted.aborted) io.say(`not answering yet: ${running.missing.join(', ')}; see the logs in ${join(running.data, 'logs')}`);
    if (!io.interrupted.aborted) for (const line of welcome(running.url, running.data)) io.say(line);
    await aborted(io.interrupted);
    io.say('ending; the data stays');
  } finally {
    await running.stop();
  }
  return EXIT.done;
}

function portOf(text: string): number {
  const port = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65_535)) throw new UsageError(`--port: ${JSON.stringify(text)} is not a port; 0 takes any that is free`);
  return port;
}

/** What was said, else what the folder had the last time. */
function nodesOf({ nodes, inventory }: UpFlags, data: string): readonly InventoryNode[] {
  if (nodes !== undefined && inventory !== undefined) throw new UsageError('--nodes and --inventory both say which nodes there are: give one');
  if (inventory !== undefined) return readInventory(inventory);
  const before = join(data, 'inventory.json');
  return nodes === undefined && existsSync(before) ? readInventory(before) : localNodes(nodes ?? DEFAULT_NODES);
}

function welcome(url: string, data: string): string[] {
  const isDefault = url.endsWith(`:${NATS_PORT}`);
  const manifest = '{"apiVersion": "sluice.dev/v1alpha1", "kind": "File", "metadata": {"name": "motd"}, "spec": {"nodeSelector": {}, "path": "/etc/motd", "content": "hello {{ node.name }}"}}';
  return [
    '',
    'Try, in another terminal:',
    ...(isDefault ? [] : [`  export NATS_URL=${url}`]),
    '  sluice get nodes',
    `  echo '${manifest}' | sluice apply -f - --wait   # then: cat ${data}/nodes/*/root/etc/motd`,
    '  sluice events --since 10m',
    '',
    'Ctrl-C ends all of it.',
  ];
}
