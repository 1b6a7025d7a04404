/**
 * `--wait` needs no value, not even before an argument: `delete --wait File motd`. `args`: the names of the arguments
 * that the command takes.
 */
export function withWaitJoined(argv: readonly string[], args: readonly string[], defaultWait = '10m'): string[] {
  const joined: string[] = [];
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] as string;
    const next = argv[index + 1];
    if (word === '--') return [...joined, ...argv.slice(index)];
    if (word !== '--wait') joined.push(word);
    else if (next !== undefined && isValue(next, args)) {
      joined.push(`--wait=${next}`);
      index += 1;
    } else joined.push(`--wait=${defaultWait}`);
  }
  return joined;
}

/** What cannot be an argument is refused as a duration, not as an extra argument. */
const isValue = (word: string, args: readonly string[]): boolean =>
  /^[\d.]/.test(word) || (!word.startsWith('-') && args.every((arg) => arg === 'change' && !/^c\d/.test(word)));
