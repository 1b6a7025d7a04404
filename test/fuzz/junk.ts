import type { Chance } from '../simulation/world/chance.js';
import { FOREIGN } from './foreign-documents.js';

/** A body that is sent by mistake or with malicious intent, and what its refusal must say. */
export interface Junk {
  /** What is wrong with it, for failure messages. */
  readonly what: string;
  readonly body: Buffer;
  /** It is not a JSON object, so everything that decodes it must refuse it. */
  readonly unreadable: boolean;
  /** The name of the wrong field, if exactly one field is wrong. */
  readonly field?: string;
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type Example = { readonly [key: string]: Json };

/** The limit of nats-server, as Sluice runs it. */
export const MAX_PAYLOAD = 1_048_576;

/** Not JSON, or the example with one error. */
export function junk(chance: Chance, example: Example): Junk {
  return chance.flip(0.4)
    ? unreadable(chance, example)
    : chance.flip(0.15)
      ? large(chance, example)
      : mutated(chance, example);
}

/** A body that is never a JSON object. */
export function unreadable(chance: Chance, example: Example): Junk {
  const good = JSON.stringify(example);
  const of = (what: string, body: string | Buffer): Junk => ({
    what,
    body: Buffer.from(body as string),
    unreadable: true,
  });
  return chance.pick<() => Junk>([
    () => of('a part of JSON', good.slice(0, chance.integer(1, good.length - 1))),
    () => of('only spaces', ' '.repeat(chance.integer(1, 9))),
    () => of('NUL bytes', Buffer.alloc(chance.integer(1, 64))),
    () => of('random bytes', bytes(chance, chance.integer(1, 200))),
    () => of('JSON and then more', `${good}}`),
    () => of('YAML', 'apiVersion: v1\nkind: Pod\n'),
    () => of('a list', `[${good}]`),
    () => of('a number', String(chance.pick([0, -1, 1e308]))),
    () => of('a word', chance.pick(['null', 'true', '"text"', 'NaN', 'undefined', '-Infinity'])),
    () => of('lists without end', nested('[', ']', chance.pick([100, 10_000, 300_000]))),
    () => of('objects that are not closed', '{"a":'.repeat(chance.pick([100, 10_000, 100_000]))),
    () => of('numbers without end', `{"n":${'9'.repeat(chance.integer(400, 100_000))}`),
  ])();
}

/** The example with one wrong field: its type, its size, its key, or an unknown field. */
export function mutated(chance: Chance, example: Example): Junk {
  const field = chance.pick(Object.keys(example));
  const [what, value] = hostile(chance);
  const of = (description: string, text: string, named = field): Junk => ({
    what: description,
    body: Buffer.from(text),
    unreadable: false,
    field: named,
  });
  return chance.pick<() => Junk>([
    () => of(`${field} is ${what}`, withRaw(example, field, value)),
    () => of(`${field} is ${what}`, withRaw(example, field, value)),
    () => {
      const unknown = chance.pick(['__proto__', 'constructor', 'toString', 'when', '', 'a.b', '"', 'k'.repeat(1_000)]);
      return of(`the unknown field ${unknown.slice(0, 20)}`, withRaw(example, unknown, value), unknown);
    },
    () => of('bytes that are no UTF-8', withRaw(example, field, '"\u00ff"')),
    () => of('half of a surrogate pair', withRaw(example, field, '"\\ud800"')),
    () => ({ what: 'a foreign document', body: Buffer.from(JSON.stringify(chance.pick(FOREIGN))), unreadable: false }),
  ])();
}

/** Close to the maximum size of a message, or above it. */
export function large(chance: Chance, example: Example): Junk {
  const field = chance.pick(Object.keys(example));
  const size = chance.pick([300_000, 600_000, 900_000, MAX_PAYLOAD - 20_000, MAX_PAYLOAD + 1]);
  const fill = chance.pick<(bytes: number) => string>([
    (count) => `"${'x'.repeat(count)}"`,
    (count) => `"${'\\"'.repeat(count / 2)}"`,
    (count) => `"${'\\u0001'.repeat(count / 6)}"`,
    (count) => `[${'1,'.repeat(count / 2)}1]`,
    (count) => `{${Array.from({ length: count / 12 }, (_, i) => `"k${i}":{}`).join(',')}}`,
    (count) => `{"${'\\"'.repeat(count / 2)}":1}`,
  ]);
  return {
    what: `${field} of ${size} bytes`,
    body: Buffer.from(withRaw(example, field, fill(size - JSON.stringify(example).length - 100))),
    unreadable: false,
    field,
  };
}

/** A value that few fields accept, as raw JSON, with a description. */
function hostile(chance: Chance): readonly [what: string, raw: string] {
  return chance.pick([
    ['null', 'null'],
    ['true', 'true'],
    ['a list', '[[]]'],
    ['an object', '{"a":{"b":[1]}}'],
    ['a number', '7'],
    ['a negative number', '-1'],
    ['a broken number', '0.5'],
    ['a number beyond all', '1e400'],
    ['a number beyond 2^53', '9007199254740993'],
    ['a number beyond uint32', '4294967296'],
    ['the word NaN', '"NaN"'],
    ['the word Infinity', '"Infinity"'],
    ['an empty text', '""'],
    ['a long text', `"${'ä'.repeat(5_000)}"`],
    ['a text with controls', '"\\u0000\\u001b[2J\\r\\n"'],
    ['the key __proto__', '{"__proto__":{"polluted":true}}'],
    ['the key constructor', '{"constructor":{"prototype":{"polluted":true}}}'],
    ['an unknown word', '"sideways"'],
    ['nested deeply', nested('[', ']', 200)],
    ['a path out', '"../../../../etc/passwd"'],
    ['wildcards', '"*.>"'],
    ['a list with a hole', '[null]'],
    ['an object of objects', '{"a":null}'],
  ] as const);
}

const nested = (open: string, close: string, depth: number): string => open.repeat(depth) + close.repeat(depth);

/** The example as text with one field set to raw JSON, which JavaScript may be unable to express. */
function withRaw(example: Example, field: string, raw: string): string {
  const rest = Object.entries(example)
    .filter(([key]) => key !== field)
    .map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`);
  return `{${[...rest, `${JSON.stringify(field)}:${raw}`].join(',')}}`;
}

function bytes(chance: Chance, count: number): Buffer {
  // Never starts like JSON.
  return Buffer.from([0xff, ...Array.from({ length: count }, () => chance.integer(0, 255))]);
}
