import type { Environment } from '@marcbachmann/cel-js';

/** A checked CEL expression about an object. */
export interface CelExpression {
  /**
   * Its value for this object. Throws an error that says why it has none, such as a field that is missing. There is no
   * limit on how long it takes: nested loops over a long list take hours. So call it only where it can be stopped.
   */
  evaluate(object: unknown): unknown;
}

/**
 * Checks a CEL expression that is true or false, and in which `object` is an object of a cluster, as in the admission
 * policies of Kubernetes. A text says why it cannot be used, and where.
 */
export function celExpression(text: string): CelExpression | string {
  if (text.length > MAX_EXPRESSION) return `it is longer than ${MAX_EXPRESSION} characters`;
  environment ??= newEnvironment();
  try {
    const parsed = environment.parse(text);
    const { valid, type, error } = parsed.check();
    if (!valid) return whyNot(text, error);
    if (type !== 'bool' && type !== 'dyn') return `it must be true or false, but is of type ${String(type)}`;
    return { evaluate: (object) => valueOf(() => parsed({ object: withIntegers(object) })) };
  } catch (error) {
    return whyNot(text, error);
  }
}

export const MAX_EXPRESSION = 2_000;
/** Far more than an expression needs that people can read. */
const LIMITS = { maxAstNodes: 500, maxDepth: 50, maxListElements: 100, maxMapEntries: 100, maxCallArguments: 16 };

/** Loaded with the first expression. */
declare const require: (name: '@marcbachmann/cel-js') => typeof import('@marcbachmann/cel-js');
let environment: Environment | undefined;

function newEnvironment(): Environment {
  const { Environment } = require('@marcbachmann/cel-js');
  return new Environment({ enableOptionalTypes: true, limits: LIMITS }).registerVariable('object', 'dyn');
}

interface CelError {
  readonly summary?: string;
  readonly message: string;
  readonly range?: { readonly start: number };
}

function whyNot(text: string, error: unknown): string {
  const { summary, message, range } = error as CelError;
  const why = (summary ?? message).replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase());
  const hint = why.startsWith('unknown variable') ? '; the only variable is `object`, as in object.status' : '';
  return `${why}${range === undefined ? '' : ` at ${placeIn(text, range.start)}`}${hint}`;
}

function placeIn(text: string, start: number): string {
  const lines = text.slice(0, start).split('\n');
  const character = `character ${(lines.at(-1) ?? '').length + 1}`;
  return lines.length === 1 && !text.trimEnd().includes('\n') ? character : `line ${lines.length}, ${character}`;
}

function valueOf(evaluate: () => unknown): unknown {
  try {
    return evaluate();
  } catch (error) {
    const { summary, message } = error as CelError;
    throw new Error(
      (summary ?? message).replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase()),
      { cause: error },
    );
  }
}

/** JSON does not tell an integer from another number, but CEL does. A number without a fraction is one. */
function withIntegers(value: unknown): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(withIntegers);
  if (typeof value !== 'object' || value === null) return value;
  return new Map(Object.entries(value).map(([key, item]) => [key, withIntegers(item)]));
}
