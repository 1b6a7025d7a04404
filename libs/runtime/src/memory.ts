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
 * Gives back to the machine what V8 kept from a burst of work, once a process has had nothing to do for some seconds:
 * V8 itself waits with that until memory is short, which for a fleet's scheduler is half of what it holds.
 * `work` counts what the process does; returns how to stop.
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
 * Node has no call for it but the one that its flag gives to a context that is made while it is set. With options (V8 11) it only scavenges.
 * Compacting, for what lives after a burst is strewn over all the pages that it took, and a page goes back only when it is empty.
 */
function collectAll(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  setFlagsFromString('--compact-on-every-full-gc');
  collect();
  setFlagsFromString('--no-compact-on-every-full-gc');
}
