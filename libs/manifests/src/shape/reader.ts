import { getMetadataStorage, validateSync, type ValidationError } from 'class-validator';
import { knownWords } from './nearest.js';
import {
  absentMessageOf,
  nestingOf,
  rulesOf,
  type Check,
  type Class,
  type Nesting,
  type Problem,
  type Stage,
} from './checked.js';

/** The result of reading: all problems at once, each `at` its field. Use the value only if there are none. */
export interface ShapeResult<T> {
  readonly value: T;
  readonly problems: readonly Problem[];
}

/** Reads plain JSON as an object of a class. Refuses unknown fields. */
export function readShape<T extends object>(type: Class<T>, value: unknown, stage: Stage = 'rendered'): ShapeResult<T> {
  if (!isObject(value)) return { value: new type(), problems: [wrongType('', 'an object', value)] };
  const problems: Problem[] = [];
  const instance = build(type, value, '', problems) as T;
  const structural = new Set(problems.map((problem) => problem.at));
  for (const problem of leafProblems(validateSync(instance), '', stage)) {
    if (!structural.has(problem.at)) problems.push(problem);
  }
  return { value: instance, problems };
}

/** The place of a field inside a place. */
export function placeOf(parent: string, key: string): string {
  if (!PLAIN_KEY.test(key)) return `${parent}[${JSON.stringify(key)}]`;
  return parent === '' ? key : `${parent}.${key}`;
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The fields of a class, in the order in which they are declared. */
export function fieldsOf(type: Class): ReadonlyMap<string, Field> {
  const cached = FIELDS.get(type);
  if (cached !== undefined) return cached;
  const fields = new Map<string, Field>();
  for (const metadata of getMetadataStorage().getTargetValidationMetadatas(type, '', true, false)) {
    const name = metadata.propertyName;
    const optional = metadata.type === 'conditionalValidation' || (fields.get(name)?.optional ?? false);
    fields.set(name, {
      optional,
      nesting: nestingOf(type, name),
      absent: absentMessageOf(type, name) ?? 'is required',
    });
  }
  FIELDS.set(type, fields);
  return fields;
}

export interface Field {
  readonly optional: boolean;
  readonly nesting: Nesting | undefined;
  readonly absent: string;
}

const PLAIN_KEY = /^[A-Za-z_$][\w$-]*$/;
/** Classes do not change after they are declared. */
const FIELDS = new WeakMap<Class, ReadonlyMap<string, Field>>();

const wrongType = (at: string, expected: string, value: unknown): Problem => ({
  at,
  code: 'wrong-type',
  message: `must be ${expected}, but is ${typeName(value)}`,
});

function build(type: Class, value: Readonly<Record<string, unknown>>, at: string, problems: Problem[]): object {
  const fields = fieldsOf(type);
  const instance = new type() as Record<string, unknown>;
  for (const key of Object.keys(value)) {
    if (fields.has(key)) continue;
    problems.push({
      at: placeOf(at, key),
      code: 'unknown-field',
      message: `unknown field; ${knownWords(key, 'fields', [...fields.keys()])}`,
    });
  }
  for (const [key, field] of fields) {
    const raw = Object.hasOwn(value, key) ? value[key] : undefined;
    const place = placeOf(at, key);
    if (raw !== undefined)
      instance[key] = field.nesting === undefined ? raw : nest(field.nesting, raw, place, problems);
    else if (!field.optional) problems.push({ at: place, code: 'required', message: field.absent });
  }
  for (const rule of rulesOf(type)) {
    for (const problem of rule.problems(value))
      problems.push({ ...problem, at: at === '' || problem.at === '' ? at + problem.at : `${at}.${problem.at}` });
  }
  return instance;
}

function nest(nesting: Nesting, raw: unknown, at: string, problems: Problem[]): unknown {
  if (!nesting.list) return nestOne(nesting, raw, at, problems);
  if (Array.isArray(raw)) {
    const { atMost = Infinity } = nesting;
    if (raw.length > atMost)
      problems.push({ at, code: 'too-many', message: `must have at most ${atMost} items, but has ${raw.length}` });
    return raw.map((item, i) => nestOne(nesting, item, `${at}[${i}]`, problems));
  }
  problems.push(wrongType(at, 'a list', raw));
  return [];
}

function nestOne({ type, orWord }: Nesting, raw: unknown, at: string, problems: Problem[]): unknown {
  if (isObject(raw)) return build(type(), raw, at, problems);
  if (orWord !== undefined && raw === orWord) return raw;
  problems.push(wrongType(at, orWord === undefined ? 'an object' : `${orWord} or an object`, raw));
  return new (type())();
}

/** The results of the validators of single fields. Missing fields were reported when the object was built. */
function* leafProblems(errors: readonly ValidationError[], parent: string, stage: Stage): Generator<Problem> {
  for (const error of errors) {
    const at = Array.isArray(error.target) ? `${parent}[${error.property}]` : placeOf(parent, error.property);
    if (error.value !== undefined) {
      for (const { check } of Object.values(
        (error.contexts ?? {}) as Readonly<Record<string, { readonly check: Check }>>,
      )) {
        for (const problem of check(error.value, stage)) yield { ...problem, at: `${at}${problem.at}` };
      }
    }
    yield* leafProblems(error.children ?? [], at, stage);
  }
}

/** The JSON type of a value, with its article, for messages. */
export function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  return typeof value === 'undefined' ? 'absent' : `a ${typeof value}`;
}
