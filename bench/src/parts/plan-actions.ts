import { effectivePolicy, planActions, type EffectivePolicy } from '#libs/rules';
import type { Config, ConfigEntry, Fragment } from '#libs/contracts';
import { median } from '../harness/figures.js';
import { contentOf } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';

const FILES = 200;
/**
 * Reads and then compares a few at a time, like a service that reads the configs of one lease after another. No entry
 * occurs twice.
 */
const AT_ONCE = 5;
const RUNS = 3;
const RULES = 30;
const GOAL_PER_SECOND = 10_000;

/** The cases of a comparison: how many of the files differ. */
const CASES = [
  { name: 'plan-actions', changed: 5 },
  { name: 'plan-actions/same', changed: 0 },
  { name: 'plan-actions/all', changed: FILES },
] as const;

/** Comparisons of two configs. The floor only looks up each file by its path and compares content and mode. */
export const planActionsPart: Part = {
  name: 'plan-actions',
  what: `plan the actions between two configs of ${FILES} files ÷ building one map of the paths, with a lookup and a comparison for each`,
  run,
};

async function run({ size, say }: PartContext): Promise<readonly Result[]> {
  const policy = policyOf();
  return CASES.map(({ name, changed }) => {
    const runs = Array.from({ length: RUNS }, () => measure(size, changed, policy));
    const value = median(runs.map(({ ours }) => ours));
    say(`${name}: ${value.toFixed(0)} per second`);
    const note = `${size} pairs, ${changed} of ${FILES} files differ, ${RULES} rules; median of ${RUNS}, one core, each pair seen for the first time`;
    const figure = { name, unit: 'per s', value, floor: median(runs.map(({ floor }) => floor)), note };
    return changed === FILES ? result(figure) : result(figure, { of: 'value', least: GOAL_PER_SECOND });
  });
}

function measure(
  pairs: number,
  changed: number,
  policy: EffectivePolicy,
): { readonly ours: number; readonly floor: number } {
  const before = JSON.stringify(configOf(0));
  const after = JSON.stringify(configOf(changed));
  const total = { ours: 0, floor: 0 };
  for (let done = 0; done < pairs; done += AT_ONCE) {
    const read = Array.from(
      { length: Math.min(AT_ONCE, pairs - done) },
      () => [JSON.parse(before) as Config, JSON.parse(after) as Config] as const,
    );
    let startMs = performance.now();
    const plans = read.map(([from, to]) => planActions(from, to, policy).changed.length);
    total.ours += performance.now() - startMs;
    startMs = performance.now();
    const floors = read.map(([from, to]) => differing(from, to));
    total.floor += performance.now() - startMs;
    if ([...plans, ...floors].some((count) => count !== changed)) throw new Error('a plan and its floor differ');
  }
  return { ours: (pairs * 1_000) / total.ours, floor: (pairs * 1_000) / total.floor };
}

function differing(from: Config, to: Config): number {
  const files = new Map(from.fragments.map(({ spec }) => [spec['path'], spec]));
  return to.fragments.filter(({ spec }) => {
    const old = files.get(spec['path']);
    return old === undefined || old['content'] !== spec['content'] || old['mode'] !== spec['mode'];
  }).length;
}

function configOf(changed: number): Config {
  const fragments = Array.from({ length: FILES }, (_, i): ConfigEntry => ({
    kind: 'File',
    name: `f${String(i).padStart(3, '0')}`,
    spec: { path: `/etc/bench/d${i % 20}/f${i}`, content: `${contentOf(i)}${i < changed ? 'new' : ''}`, mode: '0644' },
  }));
  return { fragments };
}

function policyOf(): EffectivePolicy {
  const files = Array.from({ length: RULES }, (_, i) => ({
    path: `/etc/bench/d${i}`,
    actions: [{ kind: 'reload', unit: `u${i % 7}.service` }],
  }));
  return effectivePolicy(
    [{ kind: 'DisruptionPolicy', name: 'bench', labels: {}, spec: { nodeSelector: {}, files } } as unknown as Fragment],
    {},
  );
}
