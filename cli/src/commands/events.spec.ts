import type { FleetEvent } from '#libs/client';
import { cli } from '../fakes.fixture.js';

const eventOf = (body: unknown): FleetEvent => ({
  stream: 'LEDGER',
  sequence: 1,
  subject: 'config.desired.me',
  time: '2026-11-21T10:00:00.500Z',
  body,
});

test.each<[what: string, body: unknown]>([
  ['is a text', 'a\nconfig.committed.c99'],
  ['has such a key', { 'a\nconfig.committed.c99': 1 }],
  ['has a list of texts', { names: ['a\nconfig.committed.c99'] }],
])('a body that %s does not forge a second event', async (_what, body) => {
  const { out } = await cli(['events', '--no-follow'], { events: [eventOf(body)] });
  expect(out.trimEnd().split('\n')).toHaveLength(1);
  expect(out).toContain('a\\nconfig.committed.c99');
});

test.each(['foo bar', '', 'a..b'])('the subject %j is refused', async (subject) => {
  const { exit, err } = await cli(['events', '--subject', subject], { events: [] });
  expect([exit, err]).toEqual([2, expect.stringContaining(`--subject: ${JSON.stringify(subject)} is not a`)]);
});
