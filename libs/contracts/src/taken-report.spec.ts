import { takenReport, type Fact, type FactOf, type TakenReport } from './index.js';

const settled = (about: Partial<FactOf<'node.lease.settled'>>, report?: Partial<TakenReport>): Fact => ({
  type: 'node.lease.settled',
  v: 1,
  at: '',
  node: 'n',
  pool: 'p',
  lease: 'l1',
  change: 'c1',
  kind: 'forward',
  hash: 'to',
  recipe: '',
  because: 'applied',
  reason: '',
  restored: true,
  released: true,
  ...about,
  ...(report === undefined
    ? {}
    : {
        report: { incarnation: 2, nonce: 7, seq: 3, hash: '', verdict: '', bootId: '', reportSequence: 9, ...report },
      }),
});
const said = {
  node: 'n',
  lease: 'l1',
  incarnation: 2,
  nonce: 7,
  seq: 3,
  bootId: '',
  fresh: false,
  differences: [],
  reportSequence: 9,
};

describe('the report that a fact took', () => {
  test.each<[string, Fact, object | undefined]>([
    ['is not there where nobody answered', settled({ because: 'unknown' }), undefined],
    [
      'is what the settled lease says',
      settled({}, {}),
      { ...said, report: 'applied', verdict: 'applied', hash: 'to', reason: '', restored: true },
    ],
    [
      'says itself what the lease does not',
      settled({ because: 'invalid', reason: 'no', restored: false }, { hash: 'old', bootId: 'b2' }),
      { ...said, report: 'invalid', verdict: 'invalid', hash: 'old', reason: 'no', restored: false, bootId: 'b2' },
    ],
    [
      'keeps its own verdict where another was drawn from it',
      settled(
        { because: 'failed', reason: 'it reported applied, but its active config is x' },
        { hash: 'x', verdict: 'applied' },
      ),
      { ...said, report: 'applied', verdict: 'applied', hash: 'x', reason: '', restored: true },
    ],
  ])('%s', (_name, fact, report) => {
    expect(takenReport(fact)).toEqual(report);
  });

  test('is the fact itself where it stands alone', () => {
    const fact = {
      type: 'node.reported',
      v: 1,
      at: '',
      report: 'drifted',
      verdict: 'applied',
      hash: 'h',
      reason: '',
      restored: true,
      ...said,
      differences: ['/etc/x'],
    } as const;
    expect(takenReport(fact)).toBe(fact);
  });
});
