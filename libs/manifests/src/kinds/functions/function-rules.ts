import type { Problem } from '../../shape/checked.js';
import { hasTemplate } from '../../template.js';
import type { FieldRule, When } from './function-kind.js';

type Values = Readonly<Record<string, unknown>>;

/** What the rules say about an object. A value that may still contain templates is not judged. */
export const ruleProblems = (rules: readonly FieldRule[], object: Values): readonly Problem[] =>
  rules.flatMap((rule) => problemsOf(rule, object));

function problemsOf(rule: FieldRule, object: Values): readonly Problem[] {
  switch (rule.rule) {
    case 'needs': {
      if (!holds(rule.when, object) || rule.oneOf.some((field) => isGiven(object[field]))) return [];
      const [first = ''] = rule.oneOf;
      const missing = rule.oneOf.length === 1 ? 'is required' : `${rule.oneOf.join(' or ')} is required`;
      return [{ at: rule.oneOf.length === 1 ? first : '', code: 'required', message: `${missing}: ${rule.why}` }];
    }
    case 'needs-word': {
      const value = object[rule.field];
      if (!holds(rule.when, object) || isOpen(value) || rule.is.includes(String(value))) return [];
      const message = `must be one of ${rule.is.join(', ')}, because ${rule.when.field} is given: ${rule.why}`;
      return [{ at: rule.field, code: value === undefined ? 'required' : 'forbidden', message }];
    }
    case 'forbids':
      if (!holds(rule.when, object)) return [];
      return rule.fields
        .filter((field) => isGiven(object[field]))
        .map((field) => ({
          at: field,
          code: 'forbidden',
          message: `cannot be used with ${rule.when.field} ${(rule.when.is ?? []).join(', ')}: ${rule.why}`,
        }));
    case 'only-when':
      if (object[rule.field] !== rule.is || holds(rule.when, object)) return [];
      return [{ at: rule.field, code: 'forbidden', message: `cannot be ${rule.is} here: ${rule.why}` }];
    case 'no-mask': {
      const value = object[rule.field];
      if (!holds(rule.when, object) || typeof value !== 'string' || !value.includes('/') || isOpen(value)) return [];
      return [
        { at: rule.field, code: 'bad-address', message: `must be an address without a prefix length: ${rule.why}` },
      ];
    }
    case 'unique':
      return repeated(rule, object[rule.list]);
  }
}

function repeated({ list, field, why }: FieldRule & { readonly rule: 'unique' }, items: unknown): readonly Problem[] {
  const values = (Array.isArray(items) ? (items as readonly unknown[]) : []).map(
    (item) => (item as Values | null)?.[field],
  );
  return values.flatMap((value, i) => {
    const first = values.indexOf(value);
    return value === undefined || first === i
      ? []
      : [
          {
            at: `${list}[${i}].${field}`,
            code: 'duplicate',
            message: `is the same as ${list}[${first}].${field}: ${why}`,
          },
        ];
  });
}

function holds(when: When | undefined, object: Values): boolean {
  if (when === undefined) return true;
  const value = object[when.field];
  return when.is === undefined ? isGiven(value) : when.is.includes(String(value));
}

const isGiven = (value: unknown): boolean =>
  value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0);
const isOpen = (value: unknown): boolean => typeof value === 'string' && hasTemplate(value);
