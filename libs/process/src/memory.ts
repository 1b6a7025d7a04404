import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Removes the limit that `lean-start` set: from now on, V8 may take the memory that the work needs. */
export const letMemoryGrow = (): void => setFlagsFromString('--semi-space-growth-factor=2');

const LOOK_MS = 3_000;
/** Freeing less than this is not worth a pause. */
const WORTH = 1.2;
/** A collection takes about a millisecond for each megabyte of live objects. */
const MOST_BYTES = 1.5 * 2 ** 30;

type Heap = Pick<ReturnType<typeof getHeapStatistics>, 'total_heap_size' | 'used_heap_size'>;

/**
 * Returns memory to the machine after a process was idle for some seconds. V8 itself waits until memory is short, and
 * half of a scheduler's memory would stay unused. `work` counts what the process does. Returns a function that stops
 * it.
 */
export function giveBackMemory(
  work: () => number,
  lookMs = LOOK_MS,
  collect = collectAll,
  heapNow: () => Heap = getHeapStatistics,
): () => void {
  // The start is a burst too: loading leaves garbage of about a tenth of the memory of a service.
  let [done, heldBytes] = [work(), 0];
  const timer = setInterval(() => {
    const now = work();
    const { total_heap_size: heap, used_heap_size: used } = heapNow();
    const isIdle = now === done;
    done = now;
    if (!isIdle || heap < heldBytes * WORTH || used > MOST_BYTES) return;
    collect();
    heldBytes = heapNow().total_heap_size;
  }, lookMs);
  timer.unref();
  return () => clearInterval(timer);
}

/**
 * Node.js exposes `gc` only to a context that was created while the flag is set. It compacts, because only an empty
 * page can be returned.
 */
function collectAll(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  setFlagsFromString('--compact-on-every-full-gc');
  collect();
  setFlagsFromString('--no-compact-on-every-full-gc');
}
