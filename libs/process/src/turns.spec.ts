import { Turns } from './turns.js';

const soon = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
const never = new Promise<string>(() => undefined);

it('lets only so many work at once', async () => {
  const turns = new Turns(2);
  let [working, most] = [0, 0];
  const work = async (): Promise<void> => {
    most = Math.max(most, ++working);
    await soon();
    working -= 1;
  };
  await Promise.all(Array.from({ length: 10 }, () => turns.take(work)));
  expect(most).toBe(2);
});

it('gives the next one its turn when work takes too long, and still returns what comes of it', async () => {
  const turns = new Turns(1);
  let answer: (text: string) => void = () => undefined;
  const slow = turns.start(() => new Promise<string>((resolve) => (answer = resolve)), 5);
  void turns.start(() => never, 5);
  expect(await turns.start(() => Promise.resolve('quick'), 5)).toBe('quick');
  answer('slow');
  expect(await slow).toBe('slow');
  await expect(turns.start(() => Promise.reject(new Error('a reason')), 5)).rejects.toThrow('a reason');
  expect(await turns.take(() => Promise.resolve('next'))).toBe('next');
});
