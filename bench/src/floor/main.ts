import { connectBus } from '#libs/nats';
import { BareScheduler } from './bare-scheduler.js';
import type { FromFloor, ToFloor } from './protocol.js';

/** The process of the floor. It replaces the control plane. */
let scheduler: BareScheduler | undefined;

process.on('message', (message: ToFloor) => {
  handle(message).then(send, (error: unknown) => send({ type: 'failed', error: String(error) }));
});
process.on('disconnect', () => process.exit(0));

const send = (message: FromFloor): void => void process.send?.(message);

async function handle(message: ToFloor): Promise<FromFloor> {
  if (message.do === 'prepare') {
    scheduler ??= new BareScheduler(
      await connectBus({ servers: message.options.url, name: 'floor', timeoutMs: 30_000 }),
      message.options,
    );
    await scheduler.prepare();
    return { type: 'prepared' };
  }
  return { type: 'done', ms: (await scheduler?.run()) ?? Number.NaN };
}
