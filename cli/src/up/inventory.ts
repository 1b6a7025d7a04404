import { isNodeName } from '#libs/contracts';
import { readBounded, textOf } from '../input/bounded-file.js';
import { UsageError } from '../output/exit.js';

/** One node of a local fleet. */
export interface InventoryNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** How many appliers one process serves well; more are split over the cores. */
const NODES_OF_A_PROCESS = 50;
/** The limit for one machine. */
const MOST_NODES = 10_000;

/** Reads `{"nodes": [{"name", "labels"}]}`. Throws UsageError with every reason. */
export function readInventory(file: string): readonly InventoryNode[] {
  return parseInventory(textOf(readBounded(file, `--inventory ${file}`), file), file);
}

/** The nodes of an inventory's text. */
export function parseInventory(text: string, file: string): readonly InventoryNode[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--inventory ${file} is not valid JSON: ${(error as Error).message}`);
  }
  const nodes = isObject(value) ? value['nodes'] : undefined;
  if (!Array.isArray(nodes))
    throw new UsageError(`--inventory ${file}: must be {"nodes": [{"name": "w-1", "labels": {"role": "edge"}}]}`);
  const problems = nodes.flatMap((node, index) => nodeProblems(node, index, nodes));
  if (problems.length > 0)
    throw new UsageError(problems.map((problem) => `--inventory ${file}: ${problem}`).join('\n'));
  return (nodes as { name: string; labels?: Record<string, string> }[]).map(({ name, labels }) => ({
    name,
    labels: labels ?? {},
  }));
}

/** Nodes `node-01`, `node-02`, … with two roles and three zones. */
export function localNodes(count: string): readonly InventoryNode[] {
  const n = /^\d+$/.test(count) ? Number(count) : Number.NaN;
  if (!(n <= MOST_NODES))
    throw new UsageError(`--nodes: ${JSON.stringify(count)} is not a number from 0 to ${MOST_NODES}`);
  const digits = Math.max(2, String(n).length);
  return Array.from({ length: n }, (_, index) => ({
    name: `node-${String(index + 1).padStart(digits, '0')}`,
    labels: { role: index % 5 < 2 ? 'edge' : 'worker', zone: ['a', 'b', 'c'][index % 3] as string },
  }));
}

/** The shards, such as `1/2` and `2/2`, in which the appliers of so many nodes run. */
export function shardsFor(nodes: number, cores: number): readonly string[] {
  const count = Math.max(1, Math.min(cores, Math.ceil(nodes / NODES_OF_A_PROCESS)));
  return Array.from({ length: count }, (_, index) => `${index + 1}/${count}`);
}

/** The nodes of one shard, as `--shard` names it. Throws UsageError. */
export function nodesOfShard(nodes: readonly InventoryNode[], shard: string): readonly InventoryNode[] {
  const [index, count] = (/^(\d+)\/(\d+)$/.exec(shard)?.slice(1) ?? []).map(Number) as [number?, number?];
  if (index === undefined || count === undefined || index < 1 || index > count)
    throw new UsageError(`--shard: ${JSON.stringify(shard)} is not a shard; use a value like 1/2`);
  return nodes.filter((_, n) => n % count === index - 1);
}

function nodeProblems(node: unknown, index: number, all: readonly unknown[]): string[] {
  const place = `nodes[${index}]`;
  if (!isObject(node)) return [`${place} must be an object with "name" and "labels"`];
  const { name, labels = {}, ...rest } = node;
  const problems = Object.keys(rest).map((key) => `${place}.${key} is unknown; a node has "name" and "labels"`);
  if (typeof name !== 'string' || !isNodeName(name))
    problems.push(`${place}.name is ${JSON.stringify(name)}, but must be a DNS name: a-z, 0-9, "-" and "."`);
  else if (all.findIndex((other) => isObject(other) && other['name'] === name) !== index)
    problems.push(`${place}.name ${name} is defined twice`);
  if (!isObject(labels) || Object.values(labels).some((value) => typeof value !== 'string'))
    problems.push(`${place}.labels must map names to strings`);
  return problems;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
