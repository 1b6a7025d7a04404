import { Fields } from './shape/description.js';
import { NestedList, Optional, Ruled, type Problem } from './shape/checked.js';
import { LABEL_KEY_FORM, LABEL_VALUE_FORM, LabelMap, Text, TextList, Word } from './shape/forms.js';

/** The four operators of Kubernetes. */
const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const;
export type Operator = (typeof OPERATORS)[number];

/** One condition of a selector. */
@Ruled({
  problems: valuesProblems,
  schema: {
    oneOf: [
      { properties: { operator: { enum: ['In', 'NotIn'] }, values: { minItems: 1 } }, required: ['values'] },
      { properties: { operator: { enum: ['Exists', 'DoesNotExist'] }, values: { maxItems: 0 } } },
    ],
  },
  expressions: [
    {
      rule: "!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",
      message: 'In and NotIn need at least one value',
      fieldPath: '.values',
    },
    {
      rule: "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0",
      message: 'Exists and DoesNotExist take no values',
      fieldPath: '.values',
    },
  ],
})
@Fields({
  key: 'Key of the label that the condition checks.',
  operator:
    '`In` and `NotIn` compare the label with `values`; a node without the label matches `NotIn`. `Exists` and `DoesNotExist` only look for the key.',
  values: 'Values to compare with. Required for `In` and `NotIn`, forbidden for the others.',
})
export class MatchExpression {
  @Text(LABEL_KEY_FORM) readonly key!: string;
  @Word(OPERATORS, 'unknown-operator') readonly operator!: Operator;
  @Optional() @TextList(LABEL_VALUE_FORM) readonly values?: readonly string[];
}

/** Which nodes a fragment selects: all conditions must be true, and `{}` has none. */
@Fields({
  matchLabels: 'Labels that must all be present with exactly these values.',
  matchExpressions: 'Conditions that must all hold.',
})
export class NodeSelector {
  @Optional() @LabelMap() readonly matchLabels?: Readonly<Record<string, string>>;
  @Optional() @NestedList(() => MatchExpression) readonly matchExpressions?: readonly MatchExpression[];
}

/** The message for a missing selector. */
export const SELECTOR_ABSENT = 'nodeSelector is required; {} means every node';

/** Whether a selector selects a node with these labels, as in Kubernetes. */
export function selects(selector: NodeSelector, labels: Readonly<Record<string, string>>): boolean {
  for (const key in selector.matchLabels) {
    if (!Object.hasOwn(labels, key) || labels[key] !== selector.matchLabels[key]) return false;
  }
  for (const expression of selector.matchExpressions ?? []) {
    if (!holds(expression, labels)) return false;
  }
  return true;
}

/** The selector of a checked fragment. A fragment without one selects nothing. */
export function selectorOf(fragment: { readonly spec?: Readonly<Record<string, unknown>> | undefined }): NodeSelector {
  return (fragment.spec?.['nodeSelector'] as NodeSelector | undefined) ?? NOTHING;
}

const NOTHING: NodeSelector = {
  matchExpressions: [
    { key: 'none', operator: 'Exists' },
    { key: 'none', operator: 'DoesNotExist' },
  ],
};

function holds(expression: MatchExpression, labels: Readonly<Record<string, string>>): boolean {
  const value = Object.hasOwn(labels, expression.key) ? labels[expression.key] : undefined;
  switch (expression.operator) {
    case 'In':
      return value !== undefined && (expression.values ?? []).includes(value);
    case 'NotIn':
      return value === undefined || !(expression.values ?? []).includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}

function valuesProblems(expression: Readonly<Record<string, unknown>>): readonly Problem[] {
  const { operator, values } = expression;
  const hasValues = Array.isArray(values) && values.length > 0;
  if ((operator === 'In' || operator === 'NotIn') && (values === undefined || (Array.isArray(values) && !hasValues))) {
    return [{ at: 'values', code: 'required', message: `${operator} needs at least one value` }];
  }
  if ((operator === 'Exists' || operator === 'DoesNotExist') && hasValues) {
    return [{ at: 'values', code: 'forbidden', message: `${operator} takes no values` }];
  }
  return [];
}

/** Whether two sets of labels are equal, in any order. */
export const sameLabels = (a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean =>
  JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());
