import { setTimeout as sleep } from 'node:timers/promises';
import { Slices } from './time.js';

async function inSlices(steps: number, sliceMs: number, did: (step: number) => void): Promise<void> {
  const slices = new Slices(sliceMs);
  for (let step = 0; step < steps; step += 1) {
    did(step);
    await slices.pause();
  }
}

it('does not pause within a slice', () => {
  // An hour: a busy machine may stop this process between the two calls for longer than the default.
  expect(new Slices(3_600_000).pause()).toBeUndefined();
});

it('does all steps in order', async () => {
  const did: number[] = [];
  await inSlices(1_000, 0, (step) => did.push(step));
  expect(did).toEqual(Array.from({ length: 1_000 }, (_, n) => n));
});

it('lets other work run between steps', async () => {
  const order: string[] = [];
  const other = sleep(0).then(() => order.push('other'));
  await inSlices(50_000, 0, (step) => step === 49_999 && order.push('end'));
  await other;
  expect(order).toEqual(['other', 'end']);
});
