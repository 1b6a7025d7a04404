import { nanos } from '@nats-io/nats-core';
import { JetStreamApiError } from '@nats-io/jetstream';
import { isLed } from './connection.js';
import { isConnectionTrouble, NoLeaderError } from './errors.js';

const peer = (name: string, activeMs: number) => ({
  name,
  current: true,
  offline: false,
  active: nanos(activeMs),
  lag: 0,
});

describe('the state of a stream is trusted', () => {
  test('from a single server', () => {
    expect(isLed(undefined)).toBe(true);
    expect(isLed({ name: 'c', leader: 'a' })).toBe(true);
  });
  test('from a leader that recently heard from a majority', () => {
    expect(isLed({ name: 'c', leader: 'a', replicas: [peer('b', 300), peer('c', 60_000)] })).toBe(true);
    expect(
      isLed({
        name: 'c',
        leader: 'a',
        replicas: [peer('b', 300), peer('c', 300), peer('d', 60_000), peer('e', 60_000)],
      }),
    ).toBe(true);
  });
  test('neither from a leader that is cut off, nor from another server while there is no leader', () => {
    expect(isLed({ name: 'c', leader: 'a', replicas: [peer('b', 5_000), peer('c', 60_000)] })).toBe(false);
    expect(isLed({ name: 'c', replicas: [peer('b', 300), peer('c', 300)] } as never)).toBe(false);
  });
});

test('a cluster without a majority is a temporary error, not a bug', () => {
  expect(isConnectionTrouble(new NoLeaderError('none'))).toBe(true);
  expect(
    isConnectionTrouble(
      new JetStreamApiError({ code: 503, err_code: 10008, description: 'JetStream system temporarily unavailable' }),
    ),
  ).toBe(true);
  expect(
    isConnectionTrouble(new JetStreamApiError({ code: 400, err_code: 10071, description: 'wrong last sequence' })),
  ).toBe(false);
});
