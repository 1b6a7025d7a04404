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
        report: {
          incarnation: 2,
          nonce: 7,
          seq: 3,
          hash: '',
          verdict: '',
          bootId: '',
          reportSequence: 9,
          notUndone: [],
          leftovers: [],
          ...report,
        },
      }),
});
const common = {
  node: 'n',
  lease: 'l1',
  incarnation: 2,
  nonce: 7,
  seq: 3,
  bootId: '',
  fresh: false,
  differences: [],
  reportSequence: 9,
  notUndone: [],
  leftovers: [],
};

describe('the report that a fact contains', () => {
  test.each<[string, Fact, object | undefined]>([
    ['does not exist if the node did not answer', settled({ because: 'unknown' }), undefined],
    [
      'follows from the settled lease',
      settled({}, {}),
      { ...common, report: 'applied', verdict: 'applied', hash: 'to', reason: '', restored: true },
    ],
    [
      'adds its own hash and boot id',
      settled({ because: 'invalid', reason: 'no', restored: false }, { hash: 'old', bootId: 'b2' }),
      { ...common, report: 'invalid', verdict: 'invalid', hash: 'old', reason: 'no', restored: false, bootId: 'b2' },
    ],
    [
      'keeps its own verdict if the scheduler decided on another one',
      settled(
        { because: 'failed', reason: 'it reported applied, but its active config is x' },
        { hash: 'x', verdict: 'applied' },
      ),
      { ...common, report: 'applied', verdict: 'applied', hash: 'x', reason: '', restored: true },
    ],
  ])('%s', (_name, fact, report) => {
    expect(takenReport(fact)).toEqual(report);
  });

  test('is the fact itself if the report has a separate fact', () => {
    const fact = {
      type: 'node.reported',
      v: 1,
      at: '',
      report: 'drifted',
      verdict: 'applied',
      hash: 'h',
      reason: '',
      restored: true,
      ...common,
      differences: ['/etc/x'],
    } as const;
    expect(takenReport(fact)).toBe(fact);
  });
});
