import { ServerClock } from './server-clock.js';

/** A clock, and the two clocks that it is made from. */
async function scene() {
  const times = { own: 1_000, server: 5_000_000, isDown: false };
  const clock = await ServerClock.start(
    () => (times.isDown ? Promise.reject(new Error('no connection')) : Promise.resolve(times.server)),
    () => times.own,
  );
  clock.stop();
  const pass = (ms: number): void => {
    times.own += ms;
    times.server += ms;
  };
  return { times, clock, pass };
}

it('shows the time of the server, also while there is no connection', async () => {
  const { times, clock, pass } = await scene();
  expect(clock.read()).toBe(5_000_000);
  times.isDown = true;
  pass(30_000);
  await clock.follow();
  expect(clock.read()).toBe(5_030_000);
});

it.each([3_600_000, -3_600_000])(
  'follows a server whose clock jumps by %i ms slowly, and never runs backwards',
  async (jump) => {
    const { times, clock, pass } = await scene();
    clock.read();
    times.server += jump;
    await clock.follow();
    expect(clock.read()).toBe(jump > 0 ? 5_001_000 : 5_000_000);
    pass(60_000);
    expect(clock.read()).toBe(5_060_000 + Math.sign(jump) * 1_000);
  },
);
