import 'reflect-metadata';
import { ValidateBy, ValidateIf, ValidateNested } from 'class-validator';
import { JSONSchema } from 'class-validator-jsonschema';

/** JSON Schema, as far as this library uses it. */
export type Schema = { readonly [key: string]: unknown };

/** What is wrong with a value; `at` is the place below the value, empty for the value itself. */
export interface Problem {
  readonly at: string;
  readonly code: string;
  readonly message: string;
}

/** A text that is `written` may still contain templates, whose result is only known once it is `rendered`. */
export type Stage = 'written' | 'rendered';
export type Check = (value: unknown, stage: Stage) => readonly Problem[];
export type Class<T extends object = object> = new () => T;

/** The decorated field passes the check. The schema says the same to other tools. */
export function Checked(name: string, check: Check, schema: Schema): PropertyDecorator {
  const validate = ValidateBy(
    {
      name,
      validator: {
        validate: (value: unknown) => check(value, 'rendered').length === 0,
        defaultMessage: (args) => check(args?.value, 'rendered')[0]?.message ?? '',
      },
    },
    // The validation error contains its check, so that the reader can ask it for places and codes.
    { context: { check } },
  );
  return both(validate, () => schema);
}

/** The decorated field may be left out; null does not count as left out. */
export const Optional = (): PropertyDecorator =>
  ValidateIf((_object, value: unknown) => value !== undefined) as PropertyDecorator;

/** How a field is nested: the class of its value, or of each item of its list. */
export interface Nesting {
  readonly type: () => Class;
  readonly list: boolean;
  /** For a list. */
  readonly atMost?: number;
  /** The field may have this word instead of an object. */
  readonly orWord?: string;
}

/** The decorated field holds an object of another class, or this word. */
export function Nested(type: () => Class, orWord?: string): PropertyDecorator {
  if (orWord === undefined)
    return all(
      noteNesting({ type, list: false }),
      both(ValidateNested(), () => refTo(type())),
    );
  const schema = (): Schema => ({ anyOf: [{ type: 'string', enum: [orWord] }, refTo(type())] });
  return all(noteNesting({ type, list: false, orWord }), both(ValidateNested(), schema));
}

/**
 * The decorated field holds a list of objects of another class. A nested list must have a limit, because Kubernetes
 * refuses rules of unlimited cost.
 */
export function NestedList(type: () => Class, atMost?: number): PropertyDecorator {
  const bound = atMost === undefined ? {} : { maxItems: atMost };
  return all(
    noteNesting({ type, list: true, ...(atMost === undefined ? {} : { atMost }) }),
    both(ValidateNested({ each: true }), () => ({ type: 'array', ...bound, items: refTo(type()) })),
  );
}

/** The message if the decorated field is missing, where `is required` would not be enough. */
export function WhenAbsent(message: string): PropertyDecorator {
  return (target, property) => Reflect.defineMetadata(ABSENT, message, target, property);
}

/** A rule about several fields of the decorated class. It must accept fields of a wrong type. */
export interface Rule {
  readonly problems: (object: Readonly<Record<string, unknown>>) => readonly Problem[];
  readonly schema: Schema;
  /**
   * The same for Kubernetes, in its expression language (CEL), whose refusals have messages. Without it, as a schema.
   */
  readonly expressions?: readonly Expression[];
}

/** `rule` must be true for `self`. Otherwise `message` says what is wrong. */
export interface Expression {
  readonly rule: string;
  readonly message: string;
  /** The field below `self` that it refers to, such as `.unit`. */
  readonly fieldPath?: string;
}

/** The decorated class follows the rule. */
export function Ruled(rule: Rule): ClassDecorator {
  return (target) => Reflect.defineMetadata(RULES, [...rulesOf(target as unknown as Class), rule], target);
}

export const nestingOf = (type: Class, property: string): Nesting | undefined =>
  Reflect.getMetadata(NESTING, type.prototype as object, property) as Nesting | undefined;
export const absentMessageOf = (type: Class, property: string): string | undefined =>
  Reflect.getMetadata(ABSENT, type.prototype as object, property) as string | undefined;
export const rulesOf = (type: Class): readonly Rule[] => (Reflect.getMetadata(RULES, type) ?? []) as readonly Rule[];

const NESTING = 'sluice:nesting';
const ABSENT = 'sluice:absent';
const RULES = 'sluice:rules';

const refTo = (type: Class): Schema => ({ $ref: `#/definitions/${type.name}` });

const noteNesting =
  (nesting: Nesting): PropertyDecorator =>
  (target, property) =>
    Reflect.defineMetadata(NESTING, nesting, target, property);

/** The schema is given as a function, because then it replaces the one that is derived from the TypeScript type. */
function both(validate: PropertyDecorator, schema: () => Schema): PropertyDecorator {
  const describe = JSONSchema(schema as Parameters<typeof JSONSchema>[0]) as PropertyDecorator;
  return all(validate, describe);
}

const all =
  (...decorators: readonly PropertyDecorator[]): PropertyDecorator =>
  (target, property) => {
    for (const decorate of decorators) decorate(target, property);
  };

const dependency = (field: string, other: string, problem: Problem): ClassDecorator =>
  Ruled({
    problems: (object) => (object[field] !== undefined && object[other] === undefined ? [problem] : []),
    schema: { dependencies: { [field]: [other] } },
    expressions: [
      { rule: `!has(self.${field}) || has(self.${other})`, message: problem.message, fieldPath: `.${problem.at}` },
    ],
  });

/** An object of the decorated class that has the field must have the other one too. */
export const Requires = (field: string, other: string, message: string): ClassDecorator =>
  dependency(field, other, { at: other, code: 'required', message });

/** An object of the decorated class may have the field only if it has the other one. */
export const OnlyWith = (other: string, field: string, message: string): ClassDecorator =>
  dependency(field, other, { at: field, code: 'forbidden', message });

/** The decorated class has at least one of these fields. */
export const AtLeastOne = (fields: readonly string[], message: string, code = 'required'): ClassDecorator =>
  Ruled({
    problems: (object) => (fields.some((field) => object[field] !== undefined) ? [] : [{ at: '', code, message }]),
    schema: { anyOf: fields.map((field) => ({ required: [field] })) },
    expressions: [{ rule: fields.map((field) => `has(self.${field})`).join(' || '), message }],
  });

/** The decorated class has exactly one of these fields. */
export function ExactlyOne(...fields: readonly string[]): ClassDecorator {
  return Ruled({
    problems: (object) => {
      const given = fields.filter((field) => Object.hasOwn(object, field) && object[field] !== undefined);
      if (given.length === 1) return [];
      const problem = given.length === 0 ? 'none is given' : `${given.join(' and ')} are given`;
      return [
        { at: '', code: 'exactly-one', message: `exactly one of ${fields.join(', ')} is needed, and ${problem}` },
      ];
    },
    schema: { oneOf: fields.map((field) => ({ required: [field] })) },
    expressions: [
      {
        rule: `[${fields.map((field) => `has(self.${field})`).join(', ')}].filter(given, given).size() == 1`,
        message: `exactly one of ${fields.join(', ')} is needed`,
      },
    ],
  });
}
