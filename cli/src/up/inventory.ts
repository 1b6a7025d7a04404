import {
  isObject,
  LabelMap,
  NestedList,
  NODE_NAME,
  Optional,
  readShape,
  Ruled,
  Text,
  type Problem,
} from '#libs/manifests';
import { readBounded, textOf } from '../input/bounded-file.js';
import { UsageError } from '../output/exit.js';

/** One node of a local fleet. */
export class InventoryNode {
  @Text(NODE_NAME) readonly name!: string;
  @Optional() @LabelMap() readonly labels: Readonly<Record<string, string>> = {};
}

/** The nodes of a local fleet; each name once. */
@Ruled({ problems: ({ nodes }) => (Array.isArray(nodes) ? nodes.flatMap(problemsOfName) : []), schema: {} })
class Inventory {
  @NestedList(() => InventoryNode) readonly nodes!: readonly InventoryNode[];
}

/** How many appliers one process can serve well. More are split over the cores. */
const NODES_OF_A_PROCESS = 50;
const EXAMPLE = '{"nodes": [{"name": "w-1", "labels": {"role": "edge"}}]}';
/** The limit for one machine. */
const MOST_NODES = 10_000;

/** Reads `{"nodes": [{"name", "labels"}]}`. Throws UsageError with every reason. */
export function readInventory(file: string): readonly InventoryNode[] {
  return parseInventory(textOf(readBounded(file, `--inventory ${file}`), file), file);
}

/** The nodes of an inventory's text. */
export function parseInventory(text: string, file: string): readonly InventoryNode[] {
  const place = `--inventory ${file}`;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${place} is not valid JSON: ${(error as Error).message}`);
  }
  const { value, problems } = readShape(Inventory, json);
  if (problems.length === 0) return value.nodes;
  const lines = problems.map(({ at, message }) => `${place}: ${at === '' ? '' : `${at}: `}${message}`);
  throw new UsageError([...lines, `An inventory looks like ${EXAMPLE}`].join('\n'));
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

/** The shards, such as `1/2` and `2/2`, in which the appliers of these nodes run. */
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

function problemsOfName(node: unknown, index: number, all: readonly unknown[]): readonly Problem[] {
  const name = isObject(node) ? node['name'] : undefined;
  const isTwice = name !== undefined && all.findIndex((other) => isObject(other) && other['name'] === name) !== index;
  return isTwice
    ? [{ at: `nodes[${index}].name`, code: 'twice', message: `${JSON.stringify(name)} is defined twice` }]
    : [];
}
