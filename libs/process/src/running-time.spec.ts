import { once } from 'node:events';
import { RunningTime } from './running-time.js';

/** The process does nothing at all for this time. */
const hang = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

it('is over after its limit', async () => {
  const time = new RunningTime(20);
  await once(time.signal, 'abort');
  expect(time.signal.reason).toMatchObject({ name: 'TimeoutError' });
  expect(time.ms).toBeGreaterThanOrEqual(20);
});

it('is not over because the process has hung for longer than its limit', async () => {
  const time = new RunningTime(60_000);
  hang(2_000);
  expect(time.ms).toBeLessThanOrEqual(500);
  // The timers that are due run, and then what has arrived is read.
  await new Promise((resolve) => setImmediate(resolve));
  hang(2_000);
  await new Promise((resolve) => setImmediate(resolve));
  expect(time.ms).toBeLessThan(2_000);
  expect(time.signal.aborted).toBe(false);
  time.end();
});

it('does not end once it is not needed any more', () => {
  jest.useFakeTimers();
  try {
    const time = new RunningTime(1_000);
    time.end();
    jest.advanceTimersByTime(10_000);
    expect(time.signal.aborted).toBe(false);
  } finally {
    jest.useRealTimers();
  }
});
