import { setTimeout as sleep } from 'node:timers/promises';
import { inSlices } from './slices.js';

function* counting(steps: number, did: (step: number) => void): Generator<void, number, void> {
  for (let step = 0; step < steps; step += 1) {
    did(step);
    yield;
  }
  return steps;
}

it('does all steps in order, and gives what they came to', async () => {
  const did: number[] = [];
  expect(
    await inSlices(
      counting(1_000, (step) => did.push(step)),
      0,
    ),
  ).toBe(1_000);
  expect(did).toEqual(Array.from({ length: 1_000 }, (_, n) => n));
});

it('lets others have their turn between steps', async () => {
  const order: string[] = [];
  const other = sleep(0).then(() => order.push('other'));
  await inSlices(
    counting(50_000, (step) => step === 49_999 && order.push('end')),
    0,
  );
  await other;
  expect(order).toEqual(['other', 'end']);
});

it('breaks where a step breaks', async () => {
  await expect(
    inSlices(
      counting(10, (step) => {
        if (step === 5) throw new Error('five');
      }),
    ),
  ).rejects.toThrow('five');
});
