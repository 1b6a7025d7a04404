import { CONFIGS, reportSubject, REPORTS } from '#libs/contracts';
import { connectBus, ensureTopology, kvSubject } from '#libs/nats';
import { nodeName } from '../fleet/protocol.js';
import { startServer } from '../harness/control-plane.js';
import type { PartContext } from '../harness/part.js';

const WIDTH = 512;

/**
 * The least that any such system must do: one put, one publish and one acknowledgement per node. In nodes per second.
 */
export async function leastPerSecond(context: PartContext, nodes: number): Promise<number> {
  const server = await startServer(context);
  const [control, appliers] = await Promise.all(
    ['control', 'appliers'].map((name) => connectBus({ servers: server.url, name, timeoutMs: 30_000 })),
  );
  if (control === undefined || appliers === undefined) throw new Error('not connected');
  await ensureTopology(control);
  await control.jsm.consumers.add(REPORTS, {
    durable_name: 'least',
    ack_policy: 'explicit' as never,
    max_ack_pending: 5_000,
  });
  const consumer = await control.js.consumers.get(REPORTS, 'least');
  let [acked, n] = [0, 0];
  const startMs = performance.now();
  const all = new Promise<void>((resolve) => {
    void consumer.consume({
      max_messages: 1_000,
      callback: (message) => {
        message.ack();
        if (++acked === nodes) resolve();
      },
    });
  });
  const lane = async (): Promise<void> => {
    while (n < nodes) {
      const node = nodeName(n++);
      await control.js.publish(kvSubject(CONFIGS, node), 'x'.repeat(256));
      await appliers.js.publish(reportSubject('applied', node), 'x'.repeat(256));
    }
  };
  await Promise.all([all, ...Array.from({ length: WIDTH }, lane)]);
  const perSecond = (nodes / (performance.now() - startMs)) * 1000;
  await Promise.all([control.close(), appliers.close()]);
  return perSecond;
}
