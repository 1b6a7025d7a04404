import { createHash } from 'node:crypto';
import { connectBus, type Bus } from '#libs/nats';
import { emptyHash } from '#libs/rules';
import { InstantNode, Tally } from './instant-node.js';
import { labelsOf, nodeName, type FleetOptions, type FromFleet, type ToFleet } from './protocol.js';

/** The process of the appliers: ten thousand nodes that share a few connections. */
const tally = new Tally();
const REPEAT_MS = 15_000;
/** How many nodes announce themselves at once. */
const AT_ONCE = 512;

process.on('message', (message: ToFleet) => {
  if (message.do === 'start')
    void start(message.options).catch((error: unknown) => send({ type: 'failed', error: String(error) }));
  else if (message.do === 'reset') tally.reset();
  else send({ type: 'figures', figures: tally.figures });
});
process.on('disconnect', () => process.exit(0));

const send = (message: FromFleet): void => void process.send?.(message);

async function start(options: FleetOptions): Promise<void> {
  const { urls, connections, heartbeatMs } = options;
  const buses = await Promise.all(
    Array.from({ length: connections }, (_, i) =>
      connectBus({ servers: urls, name: `appliers ${i}`, timeoutMs: 30_000 }),
    ),
  );
  const empty = emptyHash((text) => createHash('sha256').update(text).digest('hex'));
  const nodes = Array.from(
    { length: options.nodes },
    (_, n) => new InstantNode(nodeName(n), labelsOf(n), empty, buses[n % connections] as Bus, tally),
  );
  await Promise.all(buses.map((bus) => bus.nc.flush()));
  if (options.announce)
    for (let i = 0; i < nodes.length; i += AT_ONCE)
      await Promise.all(nodes.slice(i, i + AT_ONCE).map((node) => node.announce()));
  if (heartbeatMs > 0) beat(nodes, heartbeatMs);
  setInterval(() => void Promise.all(nodes.map((node) => node.repeat())).catch(() => undefined), REPEAT_MS);
  send({ type: 'started' });
}

/** Every node sends one heartbeat per interval, spread evenly. */
function beat(nodes: readonly InstantNode[], everyMs: number): void {
  const slices = 100;
  let slice = 0;
  setInterval(() => {
    for (let n = slice; n < nodes.length; n += slices) nodes[n]?.alive(everyMs);
    slice = (slice + 1) % slices;
  }, everyMs / slices);
}
