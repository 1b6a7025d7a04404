import fc from 'fast-check';
import { atOnce, newCopy, readSnapshot, snapshotOf, startFold, type Core, type SnapshotInfo } from './index.js';

/** A core with this dump. */
const dumping = (dumped: unknown): Core<unknown, never> =>
  ({ name: 'merger', version: 3, initial: () => dumped, dump: (state: unknown) => state }) as never;

describe('a snapshot', () => {
  it('has the same text as JSON.stringify of the whole dump', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (dumped) => {
        const { text, sequence } = atOnce(snapshotOf({ ...newCopy(dumping(dumped)), folded: 7 }));
        expect(text).toBe(JSON.stringify({ service: 'merger', version: 3, sequence, state: dumped }));
        expect(readSnapshot(text)).toEqual({ sequence: 7, state: JSON.parse(JSON.stringify(dumped)) as unknown });
      }),
    );
  });

  it('leaves out undefined values, as JSON does', () => {
    const { text } = atOnce(snapshotOf(newCopy(dumping({ a: undefined, b: [undefined, 1] }))));
    expect(JSON.parse(text)).toMatchObject({ state: { b: [null, 1] } });
    expect(text).not.toContain('"a"');
  });

  it('pauses after each row', () => {
    const rows = Array.from({ length: 50 }, (_, i) => [`n${i}`, { labels: { a: 'x', b: ['y'] } }]);
    const steps = [...snapshotOf(newCopy(dumping({ nodes: rows, cursor: 3 })))];
    expect(steps).toEqual(Array.from({ length: 51 }, () => ({ do: 'pause' })));
  });
});

it('a fold does not start from a snapshot that was replaced after it was listed', () => {
  const info = (sequence: number): SnapshotInfo => ({
    name: 'merger.v3.a',
    version: 3,
    sequence,
    stored: undefined,
    storedMs: 0,
    loads: [3],
  });
  const core = { ...dumping(undefined), load: (state: unknown) => state };
  const listed = [info(5), info(9)];
  const steps = startFold(core, true);
  let answer: unknown;
  const loaded: unknown[] = [];
  for (;;) {
    const { done, value } = steps.next(answer);
    if (done === true) {
      expect(value).toMatchObject({ copy: { state: 'as of 9', folded: 9 } });
      break;
    }
    const answers: Readonly<Record<string, () => unknown>> = {
      'read-voided': () => new Map(),
      bounds: () => ({ first: 1, last: 20 }),
      'list-snapshots': () => [listed[Math.min(loaded.length, 1)]],
      // The one of sequence 9 is in the slot already when the one of sequence 5 is read.
      'read-snapshot': () => (loaded.push(value), { sequence: 9, state: 'as of 9' }),
      now: () => ({ monotonicMs: 0, wallMs: 0 }),
    };
    answer = answers[value.do]?.();
  }
  expect(loaded).toHaveLength(2);
});
