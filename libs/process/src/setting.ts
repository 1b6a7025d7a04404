/** How to parse the text of an environment variable. */
export interface Form<T> {
  /** Follows `must be` in a refusal, and is the type in the reference. */
  readonly must: string;
  parse(text: string): T | undefined;
}

/** One environment variable. An empty one counts as unset. */
export interface Setting<T> {
  readonly variable: string;
  /** Read if the first is unset: the name that other tools use. */
  readonly orVariable?: string;
  /** The same setting as a flag of the command line, as commander writes it. */
  readonly flag?: string;
  /** The services that read it. Undefined: all of them. */
  readonly services?: readonly string[];
  readonly form: Form<T>;
  /** As a person would write it. Undefined: there is no default. */
  readonly fallback?: string;
  readonly description: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment is invalid. The message names every variable that is wrong. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

type Value<S> = S extends { readonly form: Form<infer T> }
  ? S extends { readonly fallback: string }
    ? T
    : T | undefined
  : never;

/** The values of a table of settings. */
export type Values<Table> = { readonly [Key in keyof Table]: Value<Table[Key]> };

/** Reads a table. With `services`, reads only their settings and uses the defaults of the rest. */
export function readSettings<Table extends Readonly<Record<string, Setting<unknown>>>>(
  table: Table,
  environment: Environment,
  services?: readonly string[],
): Values<Table> {
  const complaints: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries(table)) {
    const isRead = services === undefined || setting.services?.some((name) => services.includes(name)) !== false;
    const { variable, orVariable = variable } = setting;
    const value = isRead ? environment[variable] || environment[orVariable] || '' : '';
    const text = value === '' ? setting.fallback : value;
    values[key] = text === undefined ? undefined : setting.form.parse(text);
    if (text !== undefined && values[key] === undefined)
      complaints.push(`${setting.variable} is ${JSON.stringify(text)}, but must be ${setting.form.must}`);
  }
  if (complaints.length > 0) throw new SettingsError(complaints.join('; '));
  return values as Values<Table>;
}

export const text = (must: string): Form<string> => ({ must, parse: (text) => text });

export const oneOf = <const T extends string>(words: readonly T[]): Form<T> => ({
  must: `one of ${words.join(', ')}`,
  parse: (text) => words.find((word) => word === text),
});

/** Any number that is at least `least`, or above 0. */
export function number(least: 0 | 'above 0', each = 1): Form<number> {
  return {
    must: least === 0 ? 'a number from 0' : 'a number above 0',
    parse: (text) => {
      const value = Number(text);
      return Number.isFinite(value) && (least === 0 ? value >= 0 : value > 0) ? value * each : undefined;
    },
  };
}

/** A whole number. `each` converts it to the unit of the code. */
export function whole(least: number, each = 1): Form<number> {
  return {
    must: `a whole number from ${least}`,
    parse: (text) => (Number.isInteger(Number(text)) && Number(text) >= least ? Number(text) * each : undefined),
  };
}

export const PORT: Form<number> = {
  must: 'a TCP port',
  parse: (text) => (/^\d{1,5}$/.test(text) && Number(text) <= 65_535 ? Number(text) : undefined),
};

export const SWITCH: Form<boolean> = {
  must: 'true or false',
  parse: (text) => {
    const word = text.toLowerCase();
    if (['1', 'true', 'yes'].includes(word)) return true;
    return ['0', 'false', 'no'].includes(word) ? false : undefined;
  },
};
