import { connectBus } from '#libs/nats';
import { BareScheduler } from './bare-scheduler.js';
import type { FromFloor, ToFloor } from './protocol.js';

/** The process of the floor: stands where the control plane stands. */
let scheduler: BareScheduler | undefined;

process.on('message', (message: ToFloor) => {
  handle(message).then(say, (error: unknown) => say({ says: 'failed', error: String(error) }));
});
process.on('disconnect', () => process.exit(0));

const say = (words: FromFloor): void => void process.send?.(words);

async function handle(message: ToFloor): Promise<FromFloor> {
  if (message.do === 'prepare') {
    scheduler ??= new BareScheduler(
      await connectBus({ servers: message.options.url, name: 'floor', timeoutMs: 30_000 }),
      message.options,
    );
    await scheduler.prepare();
    return { says: 'prepared' };
  }
  return { says: 'done', ms: (await scheduler?.run()) ?? Number.NaN };
}
