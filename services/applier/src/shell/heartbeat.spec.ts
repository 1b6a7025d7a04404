import { heartbeatMs } from './heartbeat.js';

test('a heartbeat comes every ten seconds, or as often as is said', () => {
  expect([
    heartbeatMs({}),
    heartbeatMs({ SLUICE_ALIVE_SECONDS: '' }),
    heartbeatMs({ SLUICE_ALIVE_SECONDS: '2.5' }),
  ]).toEqual([10_000, 10_000, 2_500]);
});

test.each(['0', '-1', 'often', 'Infinity'])('%s is refused by name', (text) => {
  expect(() => heartbeatMs({ SLUICE_ALIVE_SECONDS: text })).toThrow(
    `SLUICE_ALIVE_SECONDS is "${text}", and must be a number above 0`,
  );
});
