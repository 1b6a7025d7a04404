import { parentPort, workerData } from 'node:worker_threads';
import { readOptions } from './options.js';
import { runPlan } from './run.js';
import { NOTHING, sum, tallyOf } from './tally.js';

/** Seeds to run: from the first, so many. */
export interface Portion {
  readonly from: number;
  readonly seeds: number;
}

/** A processor of a crew: runs each portion that it is given, and tells what came of it. */
function work(port: NonNullable<typeof parentPort>): void {
  const { plan } = readOptions(workerData as readonly string[]);
  port.on('message', ({ from, seeds }: Portion) => {
    let tally = NOTHING;
    for (let seed = from; seed < from + seeds; seed++) tally = sum(tally, tallyOf(runPlan(plan(seed))));
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
    port.postMessage(tally);
  });
}

if (parentPort !== null) work(parentPort);
