import { FAULTS } from './faults/index.js';
import { scheduleOf } from './schedule.js';
import { LONG, SHORT } from './shape.js';

test('the same seed gives the same schedule, another seed another', () => {
  expect(scheduleOf(7, 5, LONG)).toEqual(scheduleOf(7, 5, LONG));
  expect(scheduleOf(8, 5, LONG)).not.toEqual(scheduleOf(7, 5, LONG));
});

test('more rounds start like fewer rounds, so that a replay can end with the round that failed', () => {
  expect(scheduleOf(3, 9, LONG).slice(0, 4)).toEqual(scheduleOf(3, 4, LONG));
});

test('it is plain data, so that a failure can print it', () => {
  const schedule = scheduleOf(1, 2, SHORT);
  expect(JSON.parse(JSON.stringify(schedule))).toEqual(schedule);
});

test('every fault occurs within two rounds, and ends before its round', () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const faults = scheduleOf(seed, 2, LONG).flatMap((round) => round.faults);
    expect(new Set(faults.map(({ what }) => what.fault))).toEqual(new Set(FAULTS.map(({ name }) => name)));
    expect(faults.filter(({ atMs, what }) => atMs + what.forMs > LONG.roundMs)).toEqual([]);
  }
});

test('versions differ over all rounds, and include good and bad ones, corrections and deletions', () => {
  const acts = scheduleOf(1, 20, LONG).flatMap((round) => round.acts.map(({ what }) => what));
  const publications = acts.flatMap((act) => (act.do === 'publish' ? [act] : []));
  expect(new Set(publications.map(({ version }) => version)).size).toBe(20 * LONG.publications);
  expect(publications.filter(({ failingNodes }) => failingNodes.length === 0).length).toBeGreaterThan(30);
  expect(
    publications.filter(({ failingNodes }) => failingNodes.length > 0 && failingNodes.length <= 3).length,
  ).toBeGreaterThan(10);
  expect(publications.filter(({ failingNodes }) => failingNodes.length > 3).length).toBeGreaterThan(10);
  expect(publications.filter(({ gone }) => gone).length).toBeGreaterThan(3);
  expect(new Set(acts.map((act) => act.do))).toEqual(new Set(['publish', 'pause', 'resume', 'abort']));
});
