import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Ends what `lean-start` began: from here on V8 takes the room that the work needs. */
export const letMemoryGrow = (): void => setFlagsFromString('--semi-space-growth-factor=2');

const LOOK_MS = 3_000;
/** Less than this is not worth a pause. */
const WORTH = 1.2;
/** A collection takes about a millisecond for each megabyte that lives. */
const MOST_BYTES = 1.5 * 2 ** 30;

type Heap = Pick<ReturnType<typeof getHeapStatistics>, 'total_heap_size' | 'used_heap_size'>;

/**
 * Returns memory to the machine when a process was idle for some seconds. V8 itself waits until memory is short; for a
 * scheduler that would be half of what it holds. `work` counts what the process does; returns how to stop.
 */
export function giveBackMemory(
  work: () => number,
  lookMs = LOOK_MS,
  collect = collectAll,
  heapNow: () => Heap = getHeapStatistics,
): () => void {
  // The start is a burst too: loading leaves a tenth of what a service holds behind.
  let [done, kept] = [work(), 0];
  const timer = setInterval(() => {
    const now = work();
    const { total_heap_size: heap, used_heap_size: used } = heapNow();
    const isIdle = now === done;
    done = now;
    if (!isIdle || heap < kept * WORTH || used > MOST_BYTES) return;
    collect();
    kept = heapNow().total_heap_size;
  }, lookMs);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * Node.js offers `gc` only to a context made while its flag is set. It compacts, because a page is given back only when
 * it is empty.
 */
function collectAll(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  setFlagsFromString('--compact-on-every-full-gc');
  collect();
  setFlagsFromString('--no-compact-on-every-full-gc');
}
