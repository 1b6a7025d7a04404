import { Refused } from './ports.js';

/** The argv at this place of a spec. Throws Refused when it is none. */
export function argvOf(value: unknown, where: string): readonly string[] {
  const argv = (value as { readonly argv?: unknown } | undefined)?.argv;
  if (
    !Array.isArray(argv) ||
    argv.length === 0 ||
    !argv.every((text) => typeof text === 'string' && !text.includes('\0'))
  ) {
    throw new Refused('content', `${where}.argv is not a list of texts`);
  }
  return argv as readonly string[];
}
