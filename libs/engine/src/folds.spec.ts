import fc from 'fast-check';
import { atOnce, newCopy, readSnapshot, snapshotOf, type Core } from './index.js';

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
