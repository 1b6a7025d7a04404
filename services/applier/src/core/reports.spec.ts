import fc from 'fast-check';
import { encodeReport, MAX_REPORT_CHARACTERS } from '#libs/contracts';
import { report } from '#libs/testing';
import { boundedList, boundedProbes, boundedReason, boundedUnavailable } from './reports.js';

describe('the reason in a report', () => {
  test('is unchanged if it is short', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 256 }), { maxLength: 100 }), (items) => {
        expect(boundedList(items)).toEqual(items.map((item) => item.trim()));
      }),
    );
    expect(boundedReason('it is bad')).toBe('it is bad');
  });

  test('is cut if it is long, and says so', () => {
    const items = Array.from({ length: 100_000 }, (_, i) => `/etc/${i}`);
    const shown = boundedList(items);
    expect([shown.length, shown[0], shown.at(-1)]).toEqual([100, '/etc/0', '… and 99901 more']);
    expect(boundedList(['x'.repeat(600)])[0]).toMatch(/^x{255}…$/);
    expect(boundedReason('y'.repeat(5_000))).toMatch(/^y{4095}…$/);
  });

  test('is on one line, without what a terminal would carry out', () => {
    expect(boundedReason('a: no\r\n  b:\u001b[31mred\u2028c\u0000\n')).toBe('a: no b: [31mred c');
    expect([boundedList(['/a\nb: missing']), boundedUnavailable('\n')]).toEqual([
      ['/a b: missing'],
      'it does not answer',
    ]);
    expect(boundedProbes([{ probe: 'p', reason: 'x\ty' }])).toEqual([{ probe: 'p', reason: 'x y' }]);
    const half = boundedReason(`${'x'.repeat(4_094)}😀😀`);
    expect(half).toBe(`${'x'.repeat(4_094)}…`);
  });

  test('fits into a message at its maximum length', () => {
    const items = Array.from({ length: 300 }, () => '"'.repeat(600)); // two characters each in JSON
    const text = encodeReport(
      report('n', 'h', {
        reason: boundedReason('"'.repeat(9_000)),
        changed: boundedList(items),
        differences: boundedList(items.slice(0, 10)),
      }),
    );
    expect(text.length).toBeLessThan(MAX_REPORT_CHARACTERS);
  });
});
