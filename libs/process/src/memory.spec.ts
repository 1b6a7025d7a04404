import { getHeapStatistics } from 'node:v8';
import { until } from '#libs/testing';
import { giveBackMemory } from './memory.js';

const heap = (): number => getHeapStatistics().total_heap_size;
/** Allocates enough to grow the heap by half, and releases it. */
function burst(): void {
  const before = heap();
  const held: object[] = [];
  while (heap() < before * 1.5) for (let i = 0; i < 10_000; i += 1) held.push({ name: `garbage ${i}` });
}

describe('memory that is free after a burst of work', () => {
  let [looks, collections, stop] = [0, 0, (): void => undefined];
  const begin = (isBusy: boolean, collect?: () => void, heapNow?: Parameters<typeof giveBackMemory>[3]): void => {
    [looks, collections] = [0, 0];
    const work = (): number => ((looks += 1) && isBusy ? looks : 0);
    stop = giveBackMemory(work, 5, collect, heapNow);
  };
  const looksMore = (): Promise<unknown> => {
    const seen = looks;
    return until(() => looks > seen + 3 || undefined, 'the heap was checked four times');
  };
  afterEach(() => stop());

  it('is returned to the machine when the process is idle, once after the start and once after each large burst', async () => {
    let bytes = 100;
    begin(
      false,
      () => (collections += 1),
      () => ({ total_heap_size: bytes, used_heap_size: 0 }),
    );
    await until(() => collections > 0 || undefined, 'the garbage was collected');
    await looksMore();
    bytes = 119;
    await looksMore();
    expect(collections).toBe(1);
    bytes = 120;
    await until(() => collections > 1 || undefined, 'the garbage was collected again');
    await looksMore();
    expect(collections).toBe(2);
  });

  it('is kept while there is work', async () => {
    begin(true, () => (collections += 1));
    burst();
    await looksMore();
    expect(collections).toBe(0);
  });

  it('no longer counts as used by the machine', async () => {
    begin(false);
    const { used_heap_size: usedBefore } = getHeapStatistics();
    burst();
    const [grown, used] = [heap(), getHeapStatistics().used_heap_size];
    // V8 may make the heap a little smaller before that: only a full collection frees old objects.
    const isFreed = (): boolean => getHeapStatistics().used_heap_size - usedBefore < (used - usedBefore) / 4;
    await until(() => heap() < grown && isFreed(), 'the heap is smaller, and what was allocated is freed');
  });
});
