import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { Config, Fragment } from '#libs/contracts';
import { compileFragments, renderNode, type TemplateNode } from '#libs/rules';
import { labelsOf, nodeName } from '../fleet/protocol.js';
import { median } from '../harness/figures.js';
import { contentOf } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';

const FRAGMENTS = 200;
/** Every tenth file has templates, so that it differs on each node. */
const TEMPLATED_EVERY = 10;
const AT_ONCE = 250;
const RUNS = 3;
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Rendering and hashing a fleet. The floor only canonicalizes and hashes the result. */
export const render: Part = {
  name: 'render',
  what: `render and hash each node's ${FRAGMENTS} fragments ÷ canonicalize + sha256 of the results alone`,
  run,
};

async function run({ size, say }: PartContext): Promise<readonly Result[]> {
  const fragments = Array.from({ length: FRAGMENTS }, (_, i) => fragmentOf(i));
  const [ours, floors]: [number[], number[]] = [[], []];
  for (let i = 0; i < RUNS; i += 1) {
    const times = measure(fragments, size);
    say(`run ${i + 1}: ${times.ours.toFixed(0)} ms, floor ${times.floor.toFixed(0)} ms`);
    ours.push(times.ours);
    floors.push(times.floor);
  }
  const note = `${size} nodes × ${FRAGMENTS} fragments, every ${TEMPLATED_EVERY}th with templates; median of ${RUNS}; parts that nodes share are canonicalized once`;
  return [
    result({ name: 'render', unit: 'ms', value: median(ours), floor: median(floors), note }, { of: 'ratio', most: 2 }),
  ];
}

/** In turns of a few hundred nodes, so that both run under the same conditions and not all texts stay in memory. */
function measure(fragments: readonly Fragment[], size: number): { readonly ours: number; readonly floor: number } {
  const total = { ours: 0, floor: 0 };
  let startMs = performance.now();
  const index = compileFragments(fragments);
  total.ours += performance.now() - startMs;
  for (let n = 0; n < size; n += AT_ONCE) {
    const nodes = Array.from({ length: Math.min(AT_ONCE, size - n) }, (_, i): TemplateNode => ({
      name: nodeName(n + i),
      labels: labelsOf(n + i),
    }));
    startMs = performance.now();
    const rendered = nodes.map((node) => renderNode(index.forNode(node.labels), node, sha256));
    total.ours += performance.now() - startMs;
    const configs = rendered.map(({ config }) => config);
    startMs = performance.now();
    const hashes = configs.map((config: Config) => sha256(canonicalize(config) as string));
    total.floor += performance.now() - startMs;
    if (hashes.some((hash, i) => hash !== rendered[i]?.hash)) throw new Error('the rendering and its floor differ');
  }
  return total;
}

function fragmentOf(i: number): Fragment {
  const template = i % TEMPLATED_EVERY === 0 ? '# {{ node.name }} in {{ node.labels.zone }}\n' : '';
  return {
    kind: 'File',
    name: `f${i}`,
    labels: {},
    spec: { nodeSelector: {}, path: `/etc/bench/f${i}`, content: template + contentOf(i), mode: '0644' },
  } as Fragment;
}
