import { createTwoFilesPatch } from 'diff';
import { stringify } from 'yaml';
import type { FleetClient } from '#libs/client';
import {
  driftOutlook,
  EMPTY_CONFIG,
  EMPTY_HASH,
  fragmentId,
  isHash,
  type Config,
  type ConfigEntry,
  type StatusView,
} from '#libs/contracts';
import { objectRefOf } from '#libs/manifests/lean';
import type { Session } from '../connection/session.js';
import { hashPrefixOf, nodeNameOf } from '../input/arguments.js';
import { EXIT, type ExitCode } from '../output/exit.js';
import { doubts } from './get-drift.js';
import { objectSizes, objectText, type ObjectSizes } from './get-objects.js';
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
  /** Null if the node has no committed config that it can run; `to` is empty then. */
  readonly toConfig: Config | null;
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
  const [status, view] = await Promise.all([fleet.get('status', node), fleet.get('nodes', node)]);
  if (status === undefined) throw new Error(`node ${node} not found: list nodes with sluice get nodes`);
  const pair = await readPair(fleet, node, {
    from: from === undefined ? status.hash : await wholeHash(fleet, node, '--from', from),
    to: to === undefined ? status.desired : await wholeHash(fleet, node, '--to', to),
  });
  const { io } = session;
  const isOfNode = from === undefined && to === undefined;
  const drift = isOfNode ? status.drifted : [];
  const outlook = drift.length === 0 ? '' : await outlookOf(fleet, status);
  const unsure = isOfNode ? doubts({ node, state: view?.state ?? 'ready', degraded: !status.restored }) : [];
  const notes = [...(pair.to === '' ? [whyNoDesired(status, view?.state === 'gone')] : []), ...unsure];
  if (session.isJson) io.out(JSON.stringify({ ...pair, drift }));
  else {
    const fragments = [...pair.fromConfig.fragments, ...(pair.toConfig?.fragments ?? [])];
    show(pair, { isOfNode, drift, outlook, notes }, await objectSizes(fleet, fragments), io);
  }
  return EXIT.done;
}

/** Why the node has no desired config. */
function whyNoDesired({ node, hash, incompatible, incompatibleReasons }: StatusView, isGone: boolean): string {
  if (isGone) return `${node} has left the fleet; its last report named the config ${short(hash)}`;
  if (!incompatible)
    return `${node} has the config ${short(hash)}; the committed one is not ready: see sluice why ${node}`;
  const reasons = incompatibleReasons.map(({ message }) => message).join('; ');
  return `${node} keeps the config ${short(hash)}: the committed config is incompatible with it: ${reasons}`;
}

/** What happens next to the drift of the node. */
async function outlookOf(fleet: FleetClient, { pool, restored, drifted }: StatusView): Promise<string> {
  const setting = (await fleet.get('pools', pool))?.drift as 'report' | 'overwrite' | 'repair' | undefined;
  // Any lease may repair a degraded node.
  return driftOutlook(restored ? (setting ?? 'report') : 'overwrite', drifted);
}

interface Report {
  /** False if it compares configs that somebody named: then it says nothing about what the node has. */
  readonly isOfNode: boolean;
  readonly drift: readonly string[];
  /** What happens next to the drift. */
  readonly outlook: string;
  /** Why there is no desired config, and why the report may not say what the node has now. */
  readonly notes: readonly string[];
}

function show(pair: ConfigPair, { isOfNode, drift, outlook, notes }: Report, sizes: ObjectSizes, io: Io): void {
  const { node, from, to, fromConfig, toConfig } = pair;
  if (drift.length > 0) io.out(driftText(drift, pair, io.colours));
  if (from !== to && toConfig !== null) {
    io.out(configDiff(fromConfig, toConfig, io.colours, sizes));
    if (drift.length > 0) io.say(`drift of ${node}: ${outlook}`);
  }
  if (from === to && !isOfNode) io.say(`no differences: both are the config ${short(to)}`);
  else if (from === to && notes.length > 0) io.say(`${node} last reported the committed config (${short(to)})`);
  else if (from === to && drift.length === 0) io.say(`${node} is up to date (config ${short(to)})`);
  else if (from === to) io.say(`${node} has the committed config (${short(to)}), except for this drift: ${outlook}`);
  for (const text of notes) io.say(text);
}

/** Read one by one from their bucket, because both together may not fit into one answer of a service. */
async function readPair(
  fleet: FleetClient,
  node: string,
  { from, to }: Pick<ConfigPair, 'from' | 'to'>,
): Promise<ConfigPair> {
  const fromConfig = await readConfig(fleet, node, from);
  const toConfig = to === '' ? null : await readConfig(fleet, node, to);
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

/** Only the node knows its files, so its report has only the path and the kind of each difference. */
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

/** The differences between two configs of a node: a unified diff per fragment, with a file's content as text. */
export function configDiff(
  from: Config | null | undefined,
  to: Config | null | undefined,
  colours: Colours,
  sizes: ObjectSizes = new Map(),
): string {
  const [before, after] = [byId(from ?? EMPTY_CONFIG), byId(to ?? EMPTY_CONFIG)];
  const ids = [...new Set([...before.keys(), ...after.keys()])].sort();
  return ids
    .map((id) => entryDiff(id, asText(before.get(id), sizes), asText(after.get(id), sizes), colours))
    .filter((text) => text !== '')
    .join('\n');
}

const byId = ({ fragments }: Config): ReadonlyMap<string, ConfigEntry> =>
  new Map(fragments.map((entry) => [fragmentId(entry), entry]));

function entryDiff(id: string, a: string, b: string, colours: Colours): string {
  if (a === b) return '';
  const names = [a === '' ? '/dev/null' : `a/${id}`, b === '' ? '/dev/null' : `b/${id}`] as const;
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
  const output = lines.slice(0, MOST_LINES).map((line) => paint(cut(line), colours));
  const more = lines.length - output.length;
  return [...output, ...(more === 0 ? [] : [colours.dim(`… ${more} more lines; -o json has both configs`)])].join('\n');
}

/** The time to compare grows with the number of differences, and longer diffs are not useful. */
const MOST_EDITS = 5_000;
const MOST_LINES = 500;
const MOST_COLUMNS = 500;

const cut = (line: string): string =>
  line.length <= MOST_COLUMNS ? line : `${line.slice(0, MOST_COLUMNS)}… (${line.length} characters)`;
const lineCount = (text: string): string => `${text.split('\n').length - 1} lines`;

/** YAML, because its block scalars show a file's content line by line. */
function asText(entry: ConfigEntry | undefined, sizes: ObjectSizes): string {
  if (entry === undefined) return '';
  const ref = objectRefOf(entry);
  const spec = ref === undefined ? entry.spec : { ...entry.spec, contentFrom: objectText(ref, sizes) };
  return stringify(spec, { lineWidth: 0, blockQuote: 'literal' });
}

function paint(line: string, colours: Colours): string {
  if (line.startsWith('+++') || line.startsWith('---')) return colours.bold(line);
  if (line.startsWith('@@')) return colours.cyan(line);
  if (line.startsWith('+')) return colours.green(line);
  return line.startsWith('-') ? colours.red(line) : line;
}
