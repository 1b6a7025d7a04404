import type { FleetClient } from '#libs/client';

/**
 * Characters that a terminal obeys instead of showing them, and those that reverse the order of text. A newline and a
 * tab are text; what must stay on one line replaces the newline itself.
 */
const OBEYED = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
/** Nearly all text is like this, and much faster to recognize. */
const PLAIN = /^[\x20-\x7e]*$/;

/** The text with these characters as escapes, such as `\u001b`. */
export const readableText = (text: string): string =>
  text.replaceAll(OBEYED, (character) =>
    character === '\n' || character === '\t'
      ? character
      : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** The text with a space for each of these characters, so that all others stay where they are. */
export const withoutObeyed = (text: string): string => text.replaceAll(OBEYED, ' ');

/** The value with every text in it readable. Most values are, and a fleet has many: only the others are copied. */
export function readable<T>(value: T): T {
  if (typeof value === 'string') return readableText(value) as T;
  if (isReadable(value)) return value;
  if (Array.isArray(value)) return value.map(readable) as T;
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [key, readable(item)] as const)) as T;
  return Object.fromEntries(
    Object.entries(value as object).map(([key, item]) => [readableText(key), readable(item)]),
  ) as T;
}

function isReadable(value: unknown): boolean {
  if (typeof value === 'string') return PLAIN.test(value) || value.search(OBEYED) < 0;
  if (Array.isArray(value)) return value.every(isReadable);
  if (value instanceof Map) return [...value.values()].every(isReadable);
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return true;
  for (const key in value)
    if (!isReadable(key) || !isReadable((value as Readonly<Record<string, unknown>>)[key])) return false;
  return true;
}

/**
 * A client whose answers are readable. Everybody who may publish, or who has a file on a node, chooses some of the
 * texts that operators see, and must not control their terminals.
 */
export const readableFleet = (fleet: FleetClient): FleetClient =>
  new Proxy(fleet, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...args: readonly unknown[]): unknown => readableAnswer(Reflect.apply(member, target, args));
    },
  });

function readableAnswer(answer: unknown): unknown {
  if (answer instanceof Promise) return answer.then(readable);
  if (typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer)
    return readableItems(answer as AsyncIterable<unknown>);
  return readable(answer);
}

async function* readableItems(items: AsyncIterable<unknown>): AsyncGenerator {
  for await (const item of items) yield readable(item);
}
