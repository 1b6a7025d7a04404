import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { EXIT, UsageError, type ExitCode } from '../output/exit.js';
import { packageVersion } from '../package-root.js';
import { aborted } from '../pause.js';
import type { Session } from '../connection/session.js';
import { defaultDataFolder } from '../up/data-folder.js';
import { localNodes, readInventory, type InventoryNode } from '../up/inventory.js';
import { servicesOf, startUp } from '../up/run-up.js';

export interface UpFlags {
  readonly nodes?: string;
  readonly inventory?: string;
  readonly data?: string;
  readonly port: string;
  readonly kube?: boolean;
  readonly keepCrds?: boolean;
}

const DEFAULT_NODES = '10';
const NATS_PORT = 4_222;

/** `sluice up`: runs everything on this machine, until Ctrl-C. */
export async function up(session: Session, flags: UpFlags): Promise<ExitCode> {
  const { io } = session;
  const withKube = flags.kube === true;
  const data = flags.data ?? defaultDataFolder(io.env, withKube ? 'sluice-kubernetes' : 'sluice');
  const [port, declared] = [portOf(flags.port), nodesSaid(flags)];
  if (flags.keepCrds === true && !withKube) throw new UsageError('--keep-crds needs --kube');
  const nodes = withKube ? await withKubernetes(session, flags, declared) : (declared ?? nodesBefore(data));
  const options = { data, port, nodes, kubernetes: withKube, signal: io.interrupted };
  io.say(`Starting nats-server, the services ${servicesOf(withKube).join(', ')} and ${nodes.length} nodes in ${data}`);
  const running = await startUp({ ...options, say: io.say });
  try {
    if (session.isJson) io.out(JSON.stringify({ server: running.url, pid: process.pid, data: running.data }));
    else io.out(running.url);
    if (running.missing.length > 0 && !io.interrupted.aborted)
      io.say(`Not ready yet: ${running.missing.join(', ')}; look at the logs in ${join(running.data, 'logs')}`);
    if (!io.interrupted.aborted) for (const line of welcome(running.url, running.data, withKube, io.env)) io.say(line);
    await aborted(io.interrupted);
    io.say('Stopping; the data is kept');
  } finally {
    await running.stop();
  }
  return EXIT.done;
}

function portOf(text: string): number {
  const port = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65_535)) throw new UsageError(`--port: ${JSON.stringify(text)} is not a port; use 0 for any free port`);
  return port;
}

function nodesSaid({ nodes, inventory }: UpFlags): readonly InventoryNode[] | undefined {
  if (nodes !== undefined && inventory !== undefined)
    throw new UsageError('--nodes and --inventory cannot be used together: give one of them');
  if (inventory !== undefined) return readInventory(inventory);
  return nodes === undefined ? undefined : localNodes(nodes);
}

/** The nodes of the last run. */
function nodesBefore(data: string): readonly InventoryNode[] {
  const before = join(data, 'inventory.json');
  return existsSync(before) ? readInventory(before) : localNodes(DEFAULT_NODES);
}

/** By default, the nodes of Kubernetes are used. */
async function withKubernetes(
  { io }: Session,
  { keepCrds = false }: UpFlags,
  declared: readonly InventoryNode[] | undefined,
): Promise<readonly InventoryNode[]> {
  const { prepareKubernetes } = await import('../up/kubernetes.js');
  const names = await prepareKubernetes({
    env: io.env,
    say: io.say,
    keepDefinitions: keepCrds,
    version: packageVersion(),
    signal: io.interrupted,
  });
  if (declared === undefined)
    io.say(
      `Each of its ${names.length} Nodes gets an applier on this machine, which only writes to the data folder. Drains are real: they evict pods`,
    );
  else io.say('A drain needs a Kubernetes Node with the same name as the node: without one, it stays blocked');
  // Their labels are known from Kubernetes.
  return declared ?? names.map((name) => ({ name, labels: {} }));
}

function welcome(url: string, data: string, withKube: boolean, env: Session['io']['env']): string[] {
  const isDefault = url.endsWith(`:${NATS_PORT}`);
  const manifest =
    '{"apiVersion": "sluice.dev/v1alpha1", "kind": "File", "metadata": {"name": "motd"}, "spec": {"nodeSelector": {}, "path": "/etc/motd", "content": "hello {{ node.name }}"}}';
  return [
    '',
    'Try, in another terminal:',
    // The context would replace the URL.
    ...(env['NATS_CONTEXT'] ? ['  unset NATS_CONTEXT'] : []),
    ...(isDefault ? [] : [`  export NATS_URL=${url}`]),
    '  sluice get nodes',
    `  echo '${manifest}' | ${withKube ? 'kubectl' : 'sluice'} apply -f -${withKube ? '' : ' --wait'}   # then: cat ${data}/nodes/*/root/etc/motd`,
    '  sluice events --since 10m',
    '',
    'Press Ctrl-C to stop everything.',
  ];
}
