import { setImmediate as untilOthersRan } from 'node:timers/promises';
import type { Steps } from '#libs/kernel';
import { monotonicMs } from './clocks.js';

const SLICE_MS = 20;

/** Drives long work, and lets whatever else waits in this process have its turn every now and then. */
export async function inSlices<T>(steps: Steps<T>, sliceMs = SLICE_MS): Promise<T> {
  for (let untilMs = monotonicMs() + sliceMs; ;) {
    const next = steps.next();
    if (next.done === true) return next.value;
    if (monotonicMs() < untilMs) continue;
    await untilOthersRan();
    untilMs = monotonicMs() + sliceMs;
  }
}
