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

describe('the start of a fold', () => {
  const core = { ...dumping(undefined), load: (state: unknown) => state };
  const info = (sequence: number): SnapshotInfo => ({
    name: 'merger.v3.a',
    version: 3,
    sequence,
    stored: undefined,
    storedMs: 0,
    loads: [3],
  });
  const asOf = (sequence: number): object => ({ sequence, state: `as of ${sequence}` });

  /** How it starts if each effect has these answers, one after the other; the last one stays. */
  function started(answers: Readonly<Record<string, readonly unknown[]>>): unknown {
    const left = new Map(Object.entries(answers).map(([effect, all]) => [effect, [...all]]));
    const steps = startFold(core, true);
    for (let answer: unknown; ;) {
      const { done, value } = steps.next(answer);
      if (done === true) return value;
      const own = left.get(value.do) ?? [];
      answer = own.length > 1 ? own.shift() : own[0];
    }
  }
  const COMMON = { 'read-voided': [new Map()], now: [{ monotonicMs: 0, wallMs: 0 }] };

  it('does not use a snapshot that was replaced after it was listed', () => {
    const replaced = {
      bounds: [{ first: 1, last: 20 }],
      'list-snapshots': [[info(5)], [info(9)]],
      'read-snapshot': [asOf(9)],
    };
    expect(started({ ...COMMON, ...replaced })).toMatchObject({ copy: { state: 'as of 9', folded: 9 } });
  });

  it('uses a snapshot of what the ledger got after its bounds were read first', () => {
    const slow = {
      bounds: [
        { first: 5, last: 20 },
        { first: 45, last: 60 },
      ],
      'list-snapshots': [[info(50)]],
      'read-snapshot': [asOf(50)],
    };
    expect(started({ ...COMMON, ...slow })).toMatchObject({ copy: { state: 'as of 50', folded: 50 } });
  });
});
