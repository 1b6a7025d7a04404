import type { FactOf } from '#libs/contracts';
import { labelsOf, nodeName } from '../fleet/protocol.js';
import { median } from '../harness/figures.js';
import { contentOf, file } from '../harness/manifests.js';
import { MemoryServices } from '../harness/memory-services.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';

const FRAGMENTS = 10;
const RUNS = 3;
const NONE = {
  reason: '',
  attempt: 1,
  replaces: [],
  maxFailures: 0,
  maxUnavailable: 0,
  by: '',
  nodes: [],
  applied: 0,
  failed: 0,
  unknown: 0,
  deferred: 0,
  pending: 0,
};

/** The cost of a change should depend only on what it touches. */
export const smallChange: Part = {
  name: 'small-change',
  what: 'a change of a thousandth of the nodes ÷ a change of all nodes: merger and validator, in memory',
  run,
};

async function run(context: PartContext): Promise<readonly Result[]> {
  return [
    measure(context, 'small-change', '{{ node.name }}\n', 'every node has its own config'),
    measure(
      context,
      'small-change/shared',
      '',
      'all nodes have the same config, so that a change of all is as cheap as it can be',
    ),
  ];
}

function measure({ size, say }: PartContext, name: string, head: string, how: string): Result {
  const services = new MemoryServices();
  join(services, size);
  for (let i = 0; i < FRAGMENTS; i += 1) change(services, [file(`f${i}`, (i === 0 ? head : '') + contentOf(i))]);
  const [small, large]: [Measurement[], Measurement[]] = [[], []];
  for (let i = 0; i < RUNS; i += 1) {
    small.push(change(services, [file(`rack-${i}`, head + contentOf(i), { matchLabels: { rack: `r${i}` } })]));
    large.push(change(services, [file(`all-${i}`, head + contentOf(i))]));
    say(
      `run ${i + 1}: ${small[i]?.ms.toFixed(2)} ms for ${small[i]?.nodes} nodes, ${large[i]?.ms.toFixed(1)} ms for ${large[i]?.nodes}`,
    );
  }
  const [ours, all] = [small, large].map((times) => median(times.map(({ ms }) => ms))) as [number, number];
  const [few, every] = [small[0]?.nodes ?? 0, large[0]?.nodes ?? 0];
  const note = `${how}: ${few} of ${every} nodes ${ours.toFixed(2)} ms, all ${all.toFixed(0)} ms; ${FRAGMENTS} fragments are committed, medians of ${RUNS}; floor: the ratio of the nodes. From published to committed, without the rollout`;
  return result({ name, unit: '× all', value: ours / all, floor: few / every, note }, { of: 'value', most: 0.02 });
}

function join(services: MemoryServices, size: number): void {
  for (let n = 0; n < size; n += 1) {
    services.append([
      {
        type: 'node.joined',
        node: nodeName(n),
        labels: labelsOf(n),
        capabilities: ['kind:File'],
        fresh: false,
        version: '',
        incarnation: 1,
        nonce: n,
        seq: 1,
        kubernetesLabels: {},
      },
    ]);
  }
  services.settle();
}

interface Measurement {
  readonly ms: number;
  readonly nodes: number;
}

/**
 * The time of both services from publishing until committed, in ms. The facts of the scheduler are inserted in between.
 */
function change(services: MemoryServices, apply: readonly object[]): Measurement {
  const name = services.publish({ apply });
  const startMs = performance.now();
  services.settle();
  let ms = performance.now() - startMs;
  const rendered = services.facts.findLast(({ fact }) => fact.type === 'config.rendered')
    ?.fact as FactOf<'config.rendered'>;
  if (services.facts.at(-1)?.fact.type !== 'config.validated')
    throw new Error(`${name} was not validated: ${JSON.stringify(services.facts.at(-1)?.fact).slice(0, 300)}`);
  services.append([
    { type: 'rollout.started', change: name, ...NONE },
    { type: 'rollout.complete', change: name, ...NONE },
  ]);
  const againMs = performance.now();
  services.settle();
  ms += performance.now() - againMs;
  return { ms, nodes: rendered.nodes };
}
