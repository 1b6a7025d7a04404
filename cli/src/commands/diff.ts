import { createTwoFilesPatch } from 'diff';
import { stringify } from 'yaml';
import type { FleetClient } from '#libs/client';
import { EMPTY_CONFIG, EMPTY_HASH, fragmentId, isHash, type Config, type ConfigEntry } from '#libs/contracts';
import type { Session } from '../connection/session.js';
import { hashPrefixOf, nodeNameOf } from '../input/arguments.js';
import { EXIT, type ExitCode } from '../output/exit.js';
import type { Colours, Io } from '../output/io.js';

export interface DiffFlags {
  readonly from?: string;
  readonly to?: string;
}
interface ConfigPair {
  readonly node: string;
  /** Hashes. */
  readonly from: string;
  readonly to: string;
  readonly fromConfig: Config;
  readonly toConfig: Config;
}

/**
 * `sluice diff NODE`: how the node differs from its active config, as last reported, and what differs between that
 * config and the committed one. With `--from` or `--to`: what differs between two configs.
 */
export async function diff(session: Session, name: string, flags: DiffFlags): Promise<ExitCode> {
  const node = nodeNameOf(name);
  const { from, to } = flags;
  for (const [flag, hash] of Object.entries({ from, to }))
    if (hash !== undefined) hashPrefixOf(hash, `--${flag}: `, 'sluice get leases');
  const fleet = await session.fleet();
  const status = await fleet.get('status', node);
  if (status === undefined) throw new Error(`node ${node} not found: list nodes with sluice get nodes`);
  const pair = await readPair(fleet, node, {
    from: from === undefined ? status.hash : await wholeHash(fleet, node, '--from', from),
    to: to === undefined ? status.desired : await wholeHash(fleet, node, '--to', to),
  });
  const { io } = session;
  const drift = from === undefined && to === undefined ? status.drifted : [];
  if (session.isJson) io.out(JSON.stringify({ ...pair, drift }));
  else show(pair, drift, io);
  return EXIT.done;
}

function show(pair: ConfigPair, drift: readonly string[], io: Io): void {
  const { node, from, to } = pair;
  if (drift.length > 0) io.out(driftText(drift, pair, io.colours));
  if (from !== to) io.out(configDiff(pair.fromConfig, pair.toConfig, io.colours));
  else if (drift.length === 0) io.say(`${node} is up to date (config ${short(to)})`);
  else io.say(`${node} has the committed config (${short(to)}), except for this drift`);
}

/** Read one by one from their bucket: both together may not fit into one answer of a service. */
async function readPair(
  fleet: FleetClient,
  node: string,
  { from, to }: Pick<ConfigPair, 'from' | 'to'>,
): Promise<ConfigPair> {
  const [fromConfig, toConfig] = await Promise.all([readConfig(fleet, node, from), readConfig(fleet, node, to)]);
  return { node, from, to, fromConfig, toConfig };
}

async function readConfig(fleet: FleetClient, node: string, hash: string): Promise<Config> {
  if (hash === '') throw new Error(`node ${node} has no config yet: see sluice why ${node}`);
  const config = hash === EMPTY_HASH ? EMPTY_CONFIG : await fleet.config(node, hash);
  if (config !== undefined) return config;
  throw new Error(
    `the config ${short(hash)} of ${node} is not in the bucket configs: it was deleted, because nothing referred to it for days`,
  );
}

const short = (hash: string): string => hash.slice(0, 12);

/** Only the node knows its files: of what differs, it reports the place and how. */
function driftText(drift: readonly string[], { node, from }: ConfigPair, colours: Colours): string {
  const heads = [colours.bold(`--- config ${short(from)}`), colours.bold(`+++ ${node}, as last reported`)];
  return [...heads, ...drift.map((difference) => colours.red(`! ${difference}`))].join('\n');
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
  const names = [
    before === undefined ? '/dev/null' : `a/${id}`,
    after === undefined ? '/dev/null' : `b/${id}`,
  ] as const;
  const patch = createTwoFilesPatch(...names, a, b, '', '', { context: 3, maxEditLength: MOST_EDITS });
  // The first line is a ruler for patches of several files.
  const lines =
    patch === undefined
      ? [
          `--- ${names[0]}`,
          `+++ ${names[1]}`,
          `! ${lineCount(a)} became ${lineCount(b)}, most of them different; -o json has both`,
        ]
      : patch
          .trimEnd()
          .split('\n')
          .filter((line) => !/^={10,}$/.test(line))
          .map((line) => line.replace(/^(---|\+\+\+) (.*?)\t?$/, '$1 $2'));
  const shown = lines.slice(0, MOST_LINES).map((line) => paint(cut(line), colours));
  const more = lines.length - shown.length;
  return [...shown, ...(more === 0 ? [] : [colours.dim(`… ${more} more lines; -o json has both configs`)])].join('\n');
}

/** Comparing takes time by how much differs, and more lines than these nobody reads. */
const MOST_EDITS = 5_000;
const MOST_LINES = 500;
const MOST_COLUMNS = 500;

const cut = (line: string): string =>
  line.length <= MOST_COLUMNS ? line : `${line.slice(0, MOST_COLUMNS)}… (${line.length} characters)`;
const lineCount = (text: string): string => `${text.split('\n').length - 1} lines`;

/** YAML, whose block scalars show a file's content line by line. */
const asText = (entry: ConfigEntry | undefined): string =>
  entry === undefined ? '' : stringify(entry.spec, { lineWidth: 0, blockQuote: 'literal' });

function paint(line: string, colours: Colours): string {
  if (line.startsWith('+++') || line.startsWith('---')) return colours.bold(line);
  if (line.startsWith('@@')) return colours.cyan(line);
  if (line.startsWith('+')) return colours.green(line);
  return line.startsWith('-') ? colours.red(line) : line;
}
