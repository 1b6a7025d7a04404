import { LABEL_KEY, LABEL_KEY_MESSAGE, LABEL_VALUE, LABEL_VALUE_MESSAGE } from '#libs/contracts';
import { hasTemplate } from '../template.js';
import { durationMs, MAX_DURATION_MS } from '../duration.js';
import { Checked, type Check, type Problem, type Schema } from './checked.js';
import { typeName, isObject, placeOf } from './reader.js';

/** The form of a text. */
export interface TextForm {
  readonly code: string;
  /** What is wrong with the text, if anything. */
  readonly problem: (text: string) => string | undefined;
  /** What is wrong even if it still contains templates. */
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

/** An object whose keys and values are those of labels. */
export function LabelMap(): PropertyDecorator {
  const checkValue = textCheck(LABEL_VALUE_FORM);
  const check: Check = (value, stage) => {
    if (!isObject(value)) return [problem('wrong-type', `must be an object of strings, but is ${typeName(value)}`)];
    return Object.entries(value).flatMap(([key, item]) => {
      const at = belowMap(key);
      const ofKey = LABEL_KEY.test(key) ? [] : [problem('bad-label-key', LABEL_KEY_MESSAGE)];
      return [...ofKey, ...checkValue(item, stage)].map((found) => ({ ...found, at }));
    });
  };
  return Checked('labelMap', check, {
    type: 'object',
    additionalProperties: { type: 'string', pattern: LABEL_VALUE.source },
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

/** A length of time, as in `5s`, `2m` or `1h30m`; a shorter one than `least` is refused with the reason. */
export function Duration(limit?: { readonly least: string; readonly because: string }): PropertyDecorator {
  const leastMs = durationMs(limit?.least ?? '') ?? 0;
  return Text({
    code: 'bad-duration',
    problem: (text) => {
      const ms = durationMs(text);
      if (ms === undefined) return DURATION_MESSAGE;
      return limit === undefined || ms >= leastMs
        ? undefined
        : `must be at least ${limit.least}, but is ${text}: ${limit.because}`;
    },
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

/** A list of at least one manifest. `checkManifest` checks each of them. */
export function ManifestList(): PropertyDecorator {
  const check: Check = (value) => {
    if (!Array.isArray(value)) return [problem('wrong-type', `must be a list, but is ${typeName(value)}`)];
    return value.length === 0 ? [problem('empty', 'must not be empty')] : [];
  };
  const items = { type: 'object', required: ['apiVersion', 'kind', 'metadata', 'spec'] };
  return Checked('manifestList', check, { type: 'array', minItems: 1, items });
}

/** The value itself and no other. */
export function Exactly(value: string | boolean, code: string): PropertyDecorator {
  const check: Check = (text) =>
    text === value ? [] : [problem(code, `must be ${JSON.stringify(value)}, but is ${JSON.stringify(text)}`)];
  return Checked('exactly', check, { const: value });
}

/** A count, or a percentage. */
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

/** The form of a regular expression, with a description for messages. */
export const patternForm = (code: string, pattern: RegExp, message: string): TextForm => ({
  code,
  problem: (text) => (pattern.test(text) ? undefined : message),
  schema: { pattern: pattern.source },
});

export const LABEL_KEY_FORM = patternForm('bad-label-key', LABEL_KEY, LABEL_KEY_MESSAGE);

const valueProblem = (text: string): string | undefined => (LABEL_VALUE.test(text) ? undefined : LABEL_VALUE_MESSAGE);
/** Selectors and labels contain no templates. */
export const LABEL_VALUE_FORM: TextForm = {
  code: 'bad-label-value',
  problem: valueProblem,
  anyway: valueProblem,
  schema: { pattern: LABEL_VALUE.source },
};

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
    if (!Number.isInteger(value)) return [problem('wrong-type', `must be a whole number, but is ${value}`)];
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
      item(each, stage).map((problem) => ({ ...problem, at: `[${i}]${problem.at}` })),
    );
  };
}
