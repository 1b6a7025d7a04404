import {
  Checked,
  NestedList,
  Optional,
  Ruled,
  type Check,
  type Class,
  type Problem,
  type Schema,
} from '../../shape/checked.js';
import { About, Fields as Texts } from '../../shape/description.js';
import { Flag, Text, TextList, type TextForm } from '../../shape/forms.js';
import { typeName } from '../../shape/reader.js';
import { hasTemplate } from '../../template.js';
import { NodeSpec, type Kind } from '../kind.js';
import { FORMS } from './forms.js';
import { ruleProblems } from './function-rules.js';
import { COMPOSITE_KINDS, type CompositeKind } from './composite-kinds.js';
import type { Field, FieldRule, Fields, FunctionKind } from './function-kind.js';
import { FUNCTION_KINDS, sectionsOf } from './table.js';

/** Kubernetes has a limit on what it costs to check a list of objects. */
const MOST_OBJECTS = 64;
const LONGEST_NAME = 63;

function specOf(kind: FunctionKind | CompositeKind): Kind['spec'] {
  const type = classOf(`${kind.kind}Spec`, kind.fields, kind.rules ?? [], NodeSpec);
  About(kind.about)(type);
  return type;
}

/** Fragments have names in lower case, so what is left are letters and digits. */
function nameForm({ kind, post, maxName = LONGEST_NAME }: FunctionKind | CompositeKind): TextForm {
  const because =
    post === 'conflicts' ? 'the function loses an object with another name' : 'the function takes no other name';
  return {
    code: 'bad-name',
    problem: (text) =>
      text.length <= maxName && /^[a-z0-9]+$/.test(text)
        ? undefined
        : `the name of a ${kind} must be at most ${maxName} of a-z and 0-9, without "-" and ".": ${because}`,
    schema: { maxLength: maxName, pattern: '^[a-z0-9]+$' },
  };
}

/** As a class in the source would be, so that everything that reads classes works. */
function classOf<T extends object>(
  name: string,
  fields: Fields,
  rules: readonly FieldRule[],
  base: Class<T>,
): Class<T> {
  const type = { [name]: class extends (base as Class) {} }[name] as Class<T>;
  for (const [key, field] of Object.entries(fields)) {
    for (const decorate of decoratorsOf(`${name.replace(/Spec$/, '')}${capital(key)}`, field))
      decorate(type.prototype as object, key);
  }
  Texts(Object.fromEntries(Object.entries(fields).map(([key, { about }]) => [key, about])))(type);
  for (const [key, field] of Object.entries(fields)) {
    if ('fields' in field && field.required === true) NotEmpty(key)(type);
  }
  if (rules.length > 0) Ruled({ problems: (object) => ruleProblems(rules, object), schema: {} })(type);
  return type;
}

/** The list of objects in this field has at least one. */
const NotEmpty = (key: string): ClassDecorator =>
  Ruled({
    problems: ({ [key]: list }) =>
      Array.isArray(list) && list.length === 0 ? [{ at: key, code: 'empty', message: 'must not be empty' }] : [],
    schema: { properties: { [key]: { minItems: 1 } } },
    expressions: [{ rule: `self.${key}.size() > 0`, message: 'must not be empty', fieldPath: `.${key}` }],
  });

const decoratorsOf = (name: string, field: Field): readonly PropertyDecorator[] => [
  ...(field.required === true ? [] : [Optional()]),
  valueOf(name, field),
];

function valueOf(name: string, field: Field): PropertyDecorator {
  if ('fields' in field) {
    const type = classOf(name, field.fields, [], Object as unknown as Class);
    return NestedList(() => type, MOST_OBJECTS);
  }
  if ('flag' in field) return Flag();
  if ('least' in field) return NumberOrText(field);
  const form = 'words' in field ? wordForm(field.words) : FORMS[field.form];
  if (field.list === true) return TextList(form, field.required === true ? 1 : 0);
  return Text(field.mayBeEmpty === true ? orEmpty(form) : form);
}

const wordForm = (words: readonly string[]): TextForm => ({
  code: 'unknown-word',
  problem: (text) =>
    words.includes(text) ? undefined : `must be one of ${words.join(', ')}, but is ${JSON.stringify(text)}`,
  schema: { enum: words },
});

const orEmpty = (form: TextForm): TextForm => ({
  ...form,
  problem: (text) => (text === '' ? undefined : form.problem(text)),
  schema: {
    ...form.schema,
    ...(Array.isArray(form.schema['enum']) ? { enum: [...(form.schema['enum'] as readonly string[]), ''] } : {}),
    ...(typeof form.schema['pattern'] === 'string' ? { pattern: `^$|${form.schema['pattern']}` } : {}),
  },
});

/** A whole number, or a text with one, as functions and templates write it. */
function NumberOrText({
  least,
  most,
  mayBeEmpty,
}: Field & { readonly least: number; readonly most: number }): PropertyDecorator {
  const problem = (code: string, message: string): readonly Problem[] => [{ at: '', code, message }];
  const check: Check = (value, stage) => {
    if (typeof value === 'string' && stage === 'written' && hasTemplate(value)) return [];
    if (value === '' && mayBeEmpty === true) return [];
    const isNumber = typeof value === 'number' || (typeof value === 'string' && DIGITS.test(value));
    if (!isNumber || !Number.isInteger(Number(value)))
      return problem(
        'wrong-type',
        `must be a whole number, but is ${typeof value === 'object' ? typeName(value) : JSON.stringify(value)}`,
      );
    return Number(value) >= least && Number(value) <= most
      ? []
      : problem('out-of-range', `must be from ${least} to ${most}, but is ${value}`);
  };
  // A template is not told apart from a number by a structural schema of Kubernetes.
  const text: Schema = { type: 'string', pattern: `^([0-9]{1,10}|[^{]*\\{\\{.*)${mayBeEmpty === true ? '?' : ''}$` };
  return Checked('numberOrText', check, { anyOf: [{ type: 'integer', minimum: least, maximum: most }, text] });
}

const templateProblems = ({ hosts }: CompositeKind, object: Readonly<Record<string, unknown>>): readonly Problem[] =>
  hosts
    .filter((field) => typeof object[field] === 'string' && hasTemplate(object[field]))
    .map((at) => ({
      at,
      code: 'bad-template',
      message: 'must have no templates, because a name is looked up once for all nodes: write one object per name',
    }));

const DIGITS = /^[0-9]{1,10}$/;

/** `src_ip` becomes `SrcIp`. */
const capital = (key: string): string =>
  key
    .split('_')
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join('');

// Last, because it uses everything above when this file is loaded.
/** The kinds of the table, with a class for each. */
export const functionKinds: readonly Kind[] = FUNCTION_KINDS.map((kind) => ({
  name: kind.kind,
  spec: specOf(kind),
  role: 'state',
  nameForm: nameForm(kind),
  claims: (spec, name) => sectionsOf(kind, name, spec),
}));

/** The kinds that become objects of the others. Their hosts have no templates: a name is looked up for all nodes. */
export const compositeKinds: readonly Kind[] = COMPOSITE_KINDS.map((kind) => {
  const spec = specOf(kind);
  Ruled({ problems: (object) => templateProblems(kind, object), schema: {} })(spec);
  return {
    name: kind.kind,
    spec,
    role: 'composite',
    nameForm: nameForm(kind),
    literal: () => kind.hosts,
  };
});
