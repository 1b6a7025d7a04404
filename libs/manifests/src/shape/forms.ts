import { hasTemplate } from '../template.js';
import { durationMs, MAX_DURATION_MS } from '../duration.js';
import { Checked, type Check, type Problem, type Schema } from './checked.js';
import { typeName, isObject, placeOf } from './reader.js';

/** What a text must look like beyond being one. */
export interface TextForm {
  readonly code: string;
  /** What is wrong with the text, if anything. */
  readonly problem: (text: string) => string | undefined;
  /** What is wrong even while it still holds templates. */
  readonly anyway?: (text: string) => string | undefined;
  readonly schema: Schema;
}

/** A string. */
export const Text = (form?: TextForm): PropertyDecorator =>
  Checked('text', textCheck(form), { type: 'string', ...form?.schema });

/** A list of strings, each of that form. */
export function TextList(form?: TextForm, atLeast = 0): PropertyDecorator {
  const check = listCheck(textCheck(form), atLeast);
  return Checked('textList', check, { type: 'array', minItems: atLeast, items: { type: 'string', ...form?.schema } });
}

/** An object whose values are strings and whose keys are label keys. */
export function LabelMap(): PropertyDecorator {
  const check: Check = (value) => {
    if (!isObject(value)) return [problem('wrong-type', `must be an object of strings, but is ${typeName(value)}`)];
    return Object.entries(value).flatMap(([key, item]) => {
      const at = belowMap(key);
      const found: Problem[] = [];
      if (!LABEL_KEY.test(key)) found.push({ at, code: 'bad-label-key', message: LABEL_KEY_MESSAGE });
      if (typeof item !== 'string')
        found.push({ at, code: 'wrong-type', message: `must be a string, but is ${typeName(item)}: put it in quotes` });
      return found;
    });
  };
  return Checked('labelMap', check, {
    type: 'object',
    additionalProperties: { type: 'string' },
    propertyNames: { pattern: LABEL_KEY.source },
  });
}

/** A whole number within bounds. */
export function Whole(min: number, max: number): PropertyDecorator {
  return Checked('whole', wholeCheck(min, max), { type: 'integer', minimum: min, maximum: max });
}

/** A list of at least one whole number, each within bounds. */
export function WholeList(min: number, max: number): PropertyDecorator {
  const items = { type: 'integer', minimum: min, maximum: max };
  return Checked('wholeList', listCheck(wholeCheck(min, max), 1), { type: 'array', minItems: 1, items });
}

/** One of a few words. */
export function Word(words: readonly string[], code = 'unknown-word'): PropertyDecorator {
  const message = `must be one of ${words.join(', ')}`;
  return Text({
    code,
    problem: (text) => (words.includes(text) ? undefined : `${message}, but is ${JSON.stringify(text)}`),
    schema: { enum: words },
  });
}

/** A length of time, as in `5s`, `2m` or `1h30m`. */
export function Duration(): PropertyDecorator {
  return Text({
    code: 'bad-duration',
    problem: (text) => (durationMs(text) === undefined ? DURATION_MESSAGE : undefined),
    schema: { pattern: '^(?=.*[1-9])(\\d{1,9}h)?(\\d{1,9}m)?(\\d{1,9}s)?(\\d{1,9}ms)?$' },
  });
}

const ofType = (name: string, words: string, holds: (value: unknown) => boolean, schema: Schema) => () =>
  Checked(
    name,
    (value) => (holds(value) ? [] : [problem('wrong-type', `must be ${words}, but is ${typeName(value)}`)]),
    schema,
  );

export const Flag = ofType('flag', 'true or false', (value) => typeof value === 'boolean', { type: 'boolean' });
export const AnyObject = ofType('anyObject', 'an object', isObject, { type: 'object' });
export const AnyList = ofType('anyList', 'a list', Array.isArray, { type: 'array' });

/** The value itself and no other. */
export function Exactly(value: string | boolean, code: string): PropertyDecorator {
  const check: Check = (found) =>
    found === value ? [] : [problem(code, `must be ${JSON.stringify(value)}, but is ${JSON.stringify(found)}`)];
  return Checked('exactly', check, { const: value });
}

/** A number of things, or a share of them in percent. */
export function CountOrPercent(max: number): PropertyDecorator {
  const count = wholeCheck(1, max);
  const check: Check = (value, stage) => {
    if (typeof value === 'number') return count(value, stage);
    if (typeof value === 'string' && PERCENT.test(value)) return [];
    return [
      problem(
        typeof value === 'string' ? 'bad-percent' : 'wrong-type',
        'must be a whole number such as 2, or a percentage from "1%" to "100%"',
      ),
    ];
  };
  return Checked('countOrPercent', check, {
    anyOf: [
      { type: 'integer', minimum: 1, maximum: max },
      { type: 'string', pattern: PERCENT.source },
    ],
  });
}

/** The form of a regular expression, in a message with what it must look like. */
export const patternForm = (code: string, pattern: RegExp, message: string): TextForm => ({
  code,
  problem: (text) => (pattern.test(text) ? undefined : message),
  schema: { pattern: pattern.source },
});

/** The keys that Kubernetes allows for labels: an optional DNS prefix and a name. */
export const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
export const LABEL_KEY_MESSAGE =
  'must be a label key as in Kubernetes: letters, digits, "-", "_" and ".", with an optional "prefix/"';

export const LABEL_KEY_FORM = patternForm('bad-label-key', LABEL_KEY, LABEL_KEY_MESSAGE);

const PERCENT = /^([1-9]|[1-9][0-9]|100)%$/;
const DURATION_MESSAGE = `must be a duration such as "5s", "2m", "1h30m" or "500ms", longer than zero and at most ${MAX_DURATION_MS / 3_600_000}h`;

const belowMap = (key: string): string => placeOf('_', key).slice(1);

const problem = (code: string, message: string): Problem => ({ at: '', code, message });

function textCheck(form?: TextForm): Check {
  return (value, stage) => {
    if (typeof value !== 'string')
      return [problem('wrong-type', `must be a string, but is ${typeName(value)}${quotesHint(value)}`)];
    if (form === undefined) return [];
    const templated = stage === 'written' && hasTemplate(value);
    const found = templated ? form.anyway?.(value) : form.problem(value);
    return found === undefined ? [] : [problem(form.code, found)];
  };
}

const quotesHint = (value: unknown): string =>
  typeof value === 'number' || typeof value === 'boolean' ? ': put it in quotes' : '';

function wholeCheck(min: number, max: number): Check {
  return (value) => {
    if (typeof value !== 'number') return [problem('wrong-type', `must be a whole number, but is ${typeName(value)}`)];
    if (!Number.isInteger(value)) return [problem('wrong-type', 'must be a whole number')];
    return value >= min && value <= max
      ? []
      : [problem('out-of-range', `must be from ${min} to ${max}, but is ${value}`)];
  };
}

function listCheck(item: Check, atLeast: number): Check {
  return (value, stage) => {
    if (!Array.isArray(value)) return [problem('wrong-type', `must be a list, but is ${typeName(value)}`)];
    if (value.length < atLeast) return [problem('empty', 'must not be empty')];
    return value.flatMap((each: unknown, i) =>
      item(each, stage).map((found) => ({ ...found, at: `[${i}]${found.at}` })),
    );
  };
}
