import fc from 'fast-check';
import {
  baseOf,
  byNewest,
  loadableVersions,
  migrated,
  slotForNext,
  SLOTS,
  type SnapshotInfo,
  type Slot,
} from './snapshots.js';

const DAY_MS = 24 * 3_600_000;
const kept = (sequence: number, day: number, more: Partial<SnapshotInfo> = {}): SnapshotInfo => ({
  name: `s${sequence}`,
  version: 1,
  sequence,
  stored: undefined,
  storedMs: day * DAY_MS,
  loads: [1],
  ...more,
});

/** Writes snapshots as a service does, and trims the ledger up to a snapshot that is older than `days`. */
function live(
  steps: readonly { readonly facts: number; readonly days: number }[],
  days: number,
): { readonly slots: Slot[]; readonly first: number; readonly spans: number[] } {
  const slots: Slot[] = SLOTS.map((name) => ({ name }));
  const spans: number[] = [];
  let [sequence, day, first, firstDay] = [0, 0, 1, 0];
  for (const step of steps) {
    sequence += step.facts;
    day += step.days;
    const { name } = slotForNext(slots, first);
    slots[SLOTS.indexOf(name)] = { name, snapshot: kept(sequence, day, { name }) };
    const found = baseOf(
      slots.flatMap(({ snapshot: one }) => (one === undefined ? [] : [one])),
      (day - days) * DAY_MS,
    );
    const base = 'base' in found ? found.base[0] : undefined;
    if (base !== undefined && base.sequence + 1 > first)
      [first, firstDay] = [base.sequence + 1, base.storedMs / DAY_MS];
    spans.push(day - firstDay);
  }
  return { slots, first, spans };
}

const step = fc.record({
  facts: fc.integer({ min: 1, max: 50_000 }),
  days: fc.double({ min: 0, max: 3, noNaN: true }),
});

describe('the places of snapshots', () => {
  it('never overwrite the newest snapshot, and keep two usable ones after each write, whatever was trimmed', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 2, maxLength: 120 }), fc.integer({ min: 0, max: 30 }), (steps, days) => {
        const { slots, first } = live(steps, days);
        const sequences = slots
          .flatMap(({ snapshot: one }) => (one === undefined ? [] : [one.sequence]))
          .toSorted((a, b) => b - a);
        expect(sequences[0]).toBe(steps.reduce((sum, { facts }) => sum + facts, 0));
        expect(sequences.filter((sequence) => sequence >= first - 1).length).toBeGreaterThanOrEqual(2);
      }),
    );
  });

  it('do not allow trimming facts that are younger than the limit', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 120 }), fc.integer({ min: 1, max: 30 }), (steps, days) => {
        const { first, spans } = live(steps, days);
        if (first > 1) expect(spans.at(-1)).toBeGreaterThanOrEqual(days);
      }),
    );
  });

  it('keep a ledger that grows daily at less than twice its limit of ninety days', () => {
    const { spans } = live(
      Array.from({ length: 1_000 }, () => ({ facts: 20_000, days: 1 })),
      90,
    );
    expect(Math.max(...spans)).toBeLessThan(180);
    expect(Math.min(...spans.slice(180))).toBeGreaterThanOrEqual(90);
  });

  it('are filled in order: empty ones first, then those of useless snapshots', () => {
    const full = [kept(50, 1), kept(90, 2), kept(100, 3)].map((one): Slot => ({ name: one.name, snapshot: one }));
    expect(slotForNext([...full, { name: 'empty' }], 1).name).toBe('empty');
    expect(slotForNext(full, 80).name).toBe('s50');
    expect(slotForNext(full, 51).name).toBe('s90');
  });
});

describe('the snapshot to trim up to', () => {
  const why = (snapshots: readonly SnapshotInfo[], day: number): unknown => {
    const found = baseOf(snapshots, day * DAY_MS);
    return 'why' in found ? found.why : found.base.map(({ sequence }) => sequence);
  };

  it('is the newest snapshot that is old enough, but not the newest of all', () => {
    const snapshots = [kept(10, 1), kept(20, 2), kept(30, 3)];
    expect([why(snapshots, 2), why(snapshots, 9), why(snapshots, 0)]).toEqual([
      [20, 10],
      [20, 10],
      'has no snapshot that is old enough yet',
    ]);
    expect([why([], 9), why([kept(10, 1)], 9)]).toEqual([
      'has no snapshot',
      expect.stringContaining('only one snapshot'),
    ]);
  });

  it('may have another version only if the newest release can load it', () => {
    expect(why([kept(10, 1), kept(20, 2), kept(30, 3, { version: 2, loads: [2, 1] })], 9)).toEqual([20, 10]);
    expect(why([kept(10, 1), kept(20, 2), kept(30, 3, { version: 2, loads: [2] })], 9)).toMatch('only one');
    expect([kept(10, 1), kept(20, 2)].toSorted(byNewest)[0]?.sequence).toBe(20);
  });
});

const add = (text: string) => (dumped: unknown) => `${dumped as string}${text}`;

describe('a dump of an older version', () => {
  const core = { version: 4, migrations: { 1: add('b'), 2: add('c'), 3: add('d') } };

  it('is migrated step by step', () => {
    expect([migrated(core, 4, 'a'), migrated(core, 3, 'a'), migrated(core, 1, 'a')]).toEqual(['a', 'ad', 'abcd']);
  });

  it('can be loaded as far back as the migrations have no gap', () => {
    expect(loadableVersions(core)).toEqual([4, 3, 2, 1]);
    expect(loadableVersions({ version: 4, migrations: { 1: add('b'), 3: add('d') } })).toEqual([4, 3]);
    expect(loadableVersions({ version: 4 })).toEqual([4]);
  });

  it('is an error if a migration is missing or the version is newer', () => {
    expect(() => migrated({ version: 4, migrations: { 1: add('b') } }, 1, 'a')).toThrow(
      'no migration from version 1 to version 4',
    );
    expect(() => migrated(core, 5, 'a')).toThrow('no migration from version 5');
  });
});
