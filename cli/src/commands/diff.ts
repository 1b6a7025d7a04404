import { createTwoFilesPatch } from 'diff';
import { stringify } from 'yaml';
import type { FleetClient } from '#libs/client';
import { EMPTY_CONFIG, fragmentId, isHash, type Config, type ConfigEntry } from '#libs/contracts';
import type { Session } from '../connection/session.js';
import { hashPrefixOf, nodeNameOf } from '../input/arguments.js';
import { EXIT, type ExitCode } from '../output/exit.js';
import type { Colours } from '../output/io.js';

export interface DiffFlags {
  readonly from?: string;
  readonly to?: string;
}
interface DiffAnswer {
  readonly node: string;
  readonly from: string;
  readonly to: string;
  readonly fromConfig: Config | null;
  readonly toConfig: Config | null;
}

/** `sluice diff NODE`: from the config that is active on the node to the committed one, or between two hashes. */
export async function diff(session: Session, name: string, flags: DiffFlags): Promise<ExitCode> {
  const node = nodeNameOf(name);
  const prefixes = Object.entries(flags)
    .filter(([flag]) => flag === 'from' || flag === 'to')
    .map(([flag, hash]) => [`--${flag}`, hashPrefixOf(hash, `--${flag}: `, 'sluice get leases')] as const);
  const fleet = await session.fleet();
  const hashes: Record<string, string> = {};
  for (const [flag, prefix] of prefixes) hashes[flag.slice(2)] = await wholeHash(fleet, node, flag, prefix);
  const answer = await fleet.request<DiffAnswer>('ops.config.diff', { node, ...hashes });
  const { io } = session;
  if (session.isJson) io.out(JSON.stringify(answer));
  else if (answer.from === answer.to) io.say(`${node} is up to date (config ${answer.to.slice(0, 12)})`);
  else io.out(configDiff(answer.fromConfig, answer.toConfig, io.colours));
  return EXIT.done;
}

async function wholeHash(fleet: FleetClient, node: string, flag: string, hash: string): Promise<string> {
  if (isHash(hash)) return hash;
  const matches = (await fleet.configHashes(node)).filter((one) => one.startsWith(hash));
  if (matches.length === 1) return matches[0] as string;
  throw new Error(
    matches.length === 0
      ? `${flag}: no config of ${node} starts with ${hash}`
      : `${flag}: ${hash} is ambiguous: ${matches.map((one) => one.slice(0, 16)).join(', ')}`,
  );
}

/** What differs between two configs of a node: a unified diff per fragment, with a file's content as text. */
export function configDiff(from: Config | null | undefined, to: Config | null | undefined, colours: Colours): string {
  const [before, after] = [byId(from ?? EMPTY_CONFIG), byId(to ?? EMPTY_CONFIG)];
  const ids = [...new Set([...before.keys(), ...after.keys()])].sort();
  return ids
    .map((id) => entryDiff(id, before.get(id), after.get(id), colours))
    .filter((text) => text !== '')
    .join('\n');
}

const byId = ({ fragments }: Config): ReadonlyMap<string, ConfigEntry> =>
  new Map(fragments.map((entry) => [fragmentId(entry), entry]));

function entryDiff(
  id: string,
  before: ConfigEntry | undefined,
  after: ConfigEntry | undefined,
  colours: Colours,
): string {
  const [a, b] = [asText(before), asText(after)];
  if (a === b) return '';
  const patch = createTwoFilesPatch(
    before === undefined ? '/dev/null' : `a/${id}`,
    after === undefined ? '/dev/null' : `b/${id}`,
    a,
    b,
    '',
    '',
    { context: 3 },
  );
  // The first line is a ruler for patches of several files.
  return patch
    .trimEnd()
    .split('\n')
    .filter((line) => !/^={10,}$/.test(line))
    .map((line) => paint(line.replace(/^(---|\+\+\+) (.*?)\t?$/, '$1 $2'), colours))
    .join('\n');
}

/** YAML, whose block scalars show a file's content line by line. */
const asText = (entry: ConfigEntry | undefined): string =>
  entry === undefined ? '' : stringify(entry.spec, { lineWidth: 0, blockQuote: 'literal' });

function paint(line: string, colours: Colours): string {
  if (line.startsWith('+++') || line.startsWith('---')) return colours.bold(line);
  if (line.startsWith('@@')) return colours.cyan(line);
  if (line.startsWith('+')) return colours.green(line);
  return line.startsWith('-') ? colours.red(line) : line;
}
