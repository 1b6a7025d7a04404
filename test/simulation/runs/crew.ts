import { isMainThread, parentPort, Worker, workerData, type MessagePort } from 'node:worker_threads';
import { readOptions, type Options } from '../options.js';
import { runPlan, type Outcome } from './run.js';

export interface FailedSeed {
  readonly seed: number;
  readonly failure: string;
}

/** The results of some seeds, in a form that a worker can send. */
export interface Tally {
  readonly seeds: number;
  readonly facts: number;
  readonly failed: readonly FailedSeed[];
  /** How often each fault took effect. */
  readonly fired: Readonly<Record<string, number>>;
}
const NOTHING: Tally = { seeds: 0, facts: 0, failed: [], fired: {} };

/**
 * The seeds to run: the first one, and how many. Portions are small, so that all processors finish at nearly the same
 * time.
 */
interface Portion {
  readonly from: number;
  readonly seeds: number;
}
const PORTION = 20;

/** Runs seeds on several processors at once. Reports progress after each portion. */
export async function runCrew(
  { from, seeds, workers }: Options,
  args: readonly string[],
  onProgress: (tally: Tally) => void,
): Promise<Tally> {
  let tally = NOTHING;
  const portions = Array.from({ length: Math.ceil(seeds / PORTION) }, (_, i) => ({
    from: from + i * PORTION,
    seeds: Math.min(PORTION, seeds - i * PORTION),
  }));
  const take = (): Portion | undefined => portions.shift();
  const add = (part: Tally): void => {
    tally = sum(tally, part);
    onProgress(tally);
  };
  await Promise.all(Array.from({ length: Math.min(workers, portions.length) }, () => runWorker(args, take, add)));
  return { ...tally, failed: [...tally.failed].sort((a, b) => a.seed - b.seed) };
}

function runWorker(
  args: readonly string[],
  take: () => Portion | undefined,
  add: (part: Tally) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: args });
    const next = (): void => {
      const portion = take();
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is not a window
      if (portion !== undefined) worker.postMessage(portion);
      else void worker.terminate().then(() => resolve());
    };
    worker.on('error', reject);
    worker.on('message', (part: Tally) => {
      add(part);
      next();
    });
    next();
  });
}

/** In a worker: runs each portion that it receives, and returns its tally. */
function work(port: MessagePort): void {
  const { plan } = readOptions(workerData as readonly string[]);
  port.on('message', ({ from, seeds }: Portion) => {
    let tally = NOTHING;
    for (let seed = from; seed < from + seeds; seed++) tally = sum(tally, tallyOf(runPlan(plan(seed))));
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is not a window
    port.postMessage(tally);
  });
}

export const tallyOf = ({ seed, facts, failure, fired }: Outcome): Tally => ({
  seeds: 1,
  facts,
  failed: failure === undefined ? [] : [{ seed, failure }],
  fired: Object.fromEntries(fired),
});

function sum(a: Tally, b: Tally): Tally {
  const fired = { ...a.fired };
  for (const [name, count] of Object.entries(b.fired)) fired[name] = (fired[name] ?? 0) + count;
  return { seeds: a.seeds + b.seeds, facts: a.facts + b.facts, failed: [...a.failed, ...b.failed], fired };
}

if (!isMainThread && parentPort !== null) work(parentPort);
