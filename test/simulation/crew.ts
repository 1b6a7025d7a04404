import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Options } from './options.js';
import type { Portion } from './seed-worker.js';
import { NOTHING, sum, type Tally } from './tally.js';

/** Small, so that all processors end at nearly the same time. */
const PORTION = 20;

/** Runs seeds on several processors at once; tells how far it is after each portion. */
export async function runCrew(
  options: Options,
  args: readonly string[],
  onProgress: (tally: Tally) => void,
): Promise<Tally> {
  let tally = NOTHING;
  const portions = portionsOf(options);
  const take = (): Portion | undefined => portions.shift();
  const taken = (part: Tally): void => {
    tally = sum(tally, part);
    onProgress(tally);
  };
  await Promise.all(
    Array.from({ length: Math.min(options.workers, portions.length) }, () => employ(args, take, taken)),
  );
  return { ...tally, failed: [...tally.failed].sort((a, b) => a.seed - b.seed) };
}

function portionsOf({ from, seeds }: Options): Portion[] {
  const count = Math.ceil(seeds / PORTION);
  return Array.from({ length: count }, (_, i) => ({
    from: from + i * PORTION,
    seeds: Math.min(PORTION, seeds - i * PORTION),
  }));
}

function employ(args: readonly string[], take: () => Portion | undefined, taken: (part: Tally) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(join(__dirname, 'seed-worker.js'), { workerData: args });
    const next = (): void => {
      const portion = take();
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
      if (portion !== undefined) worker.postMessage(portion);
      else void worker.terminate().then(() => resolve());
    };
    worker.on('error', reject);
    worker.on('message', (part: Tally) => {
      taken(part);
      next();
    });
    next();
  });
}
