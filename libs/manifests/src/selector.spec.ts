import fc from 'fast-check';
import { selectorOf, selects, type MatchExpression } from './index.js';

const holds = (expression: MatchExpression, labels: Record<string, string>): boolean =>
  selects({ matchExpressions: [expression] }, labels);

describe('selects', () => {
  test('an empty selector selects every node', () => {
    expect(selects({}, {})).toBe(true);
    expect(selects({ matchLabels: {}, matchExpressions: [] }, { a: 'b' })).toBe(true);
  });

  test.each([
    [{ key: 'zone', operator: 'In', values: ['a', 'b'] }, { zone: 'b' }, true],
    [{ key: 'zone', operator: 'In', values: ['a', 'b'] }, { zone: 'c' }, false],
    [{ key: 'zone', operator: 'In', values: ['a'] }, {}, false],
    [{ key: 'zone', operator: 'NotIn', values: ['a'] }, { zone: 'a' }, false],
    [{ key: 'zone', operator: 'NotIn', values: ['a'] }, { zone: 'b' }, true],
    [{ key: 'zone', operator: 'NotIn', values: ['a'] }, {}, true],
    [{ key: 'zone', operator: 'Exists' }, { zone: '' }, true],
    [{ key: 'zone', operator: 'Exists' }, {}, false],
    [{ key: 'zone', operator: 'DoesNotExist' }, {}, true],
    [{ key: 'zone', operator: 'DoesNotExist' }, { zone: '' }, false],
    [{ key: 'constructor', operator: 'Exists' }, {}, false],
  ] as const)('%j on %j: %s', (expression, labels, selected) => {
    expect(holds(expression, labels)).toBe(selected);
  });

  test('all conditions must be true', () => {
    const selector = {
      matchLabels: { role: 'edge' },
      matchExpressions: [{ key: 'zone', operator: 'Exists' }],
    } as const;
    expect(selects(selector, { role: 'edge', zone: 'a' })).toBe(true);
    expect(selects(selector, { role: 'edge' })).toBe(false);
    expect(selects(selector, { role: 'core', zone: 'a' })).toBe(false);
  });

  test('each operator is the opposite of another', () => {
    const labels = fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom('x', 'y', ''));
    const values = fc.array(fc.constantFrom('x', 'y', ''), { minLength: 1 });
    fc.assert(
      fc.property(labels, values, (given, wanted) => {
        expect(holds({ key: 'a', operator: 'In', values: wanted }, given)).toBe(
          !holds({ key: 'a', operator: 'NotIn', values: wanted }, given),
        );
        expect(holds({ key: 'a', operator: 'Exists' }, given)).toBe(
          !holds({ key: 'a', operator: 'DoesNotExist' }, given),
        );
      }),
    );
  });

  test('a fragment without a selector selects nothing', () => {
    expect(selects(selectorOf({ spec: {} }), { none: 'a' })).toBe(false);
    expect(selects(selectorOf({}), {})).toBe(false);
  });
});
