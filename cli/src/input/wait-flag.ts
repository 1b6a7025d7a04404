import { isDuration } from './times.js';

/** `--wait` needs no value, not even before an argument: `delete --wait File motd`. */
export function withWaitJoined(argv: readonly string[], defaultWait = '10m'): string[] {
  const joined: string[] = [];
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] as string;
    const next = argv[index + 1];
    if (word === '--') return [...joined, ...argv.slice(index)];
    if (word !== '--wait') joined.push(word);
    // A number without a unit is refused as a duration, and not as a surplus argument.
    else if (next !== undefined && (isDuration(next) || /^\d+$/.test(next))) {
      joined.push(`--wait=${next}`);
      index += 1;
    } else joined.push(`--wait=${defaultWait}`);
  }
  return joined;
}
