import { Draft, MAX_DECISION_BYTES, SortedSet, UndoLog } from './index.js';

const draft = () =>
  new Draft(
    { undo: new UndoLog(), touched: new Set<string>() },
    { monotonicMs: 0, leadingSinceMs: 0, wallMs: 0 },
    () => undefined,
  );

describe('a draft', () => {
  it('is full when its work reaches the limit, and then asks for another decision', () => {
    const made = draft();
    made.spend(MAX_DECISION_BYTES - 1);
    expect([made.full, made.decision.more]).toEqual([false, false]);
    made.spend(1);
    expect([made.full, made.decision.more]).toEqual([true, true]);
  });

  it('starts at zero: the work of an earlier draft does not count', () => {
    draft().spend(MAX_DECISION_BYTES);
    expect(draft().full).toBe(false);
  });
});

describe('a sorted set', () => {
  it('sorts by the given order, and undoes changes of a trial', () => {
    const log = new UndoLog();
    const set = new SortedSet(log, (a, b) => Number(a) - Number(b));
    for (const item of ['10', '9', '100', '9']) set.add(item);
    expect([...set]).toEqual(['9', '10', '100']);
    log.dryRun(() => {
      set.delete('10');
      set.add('50');
      expect([...set]).toEqual(['9', '50', '100']);
    });
    expect([[...set], set.has('10'), set.has('50')]).toEqual([['9', '10', '100'], true, false]);
  });
});
