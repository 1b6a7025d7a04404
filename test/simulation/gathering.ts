import { effectivePolicy, planActions } from '#libs/actions';
import { configKey, EMPTY_CONFIG, type Config } from '#libs/contracts';
import { atOnce } from '#libs/kernel';
import * as merger from '../../services/merger/src/core/index.js';
import type { Plan, PlanNeed } from '../../services/scheduler/src/core/index.js';
import * as validator from '../../services/validator/src/core/index.js';
import { policiesOf } from '#libs/policy';
import { emptyHash } from '#libs/rendering';
import type { SimBus } from './bus.js';
import { sha256 } from './digest.js';

export const EMPTY_HASH = emptyHash(sha256);

/** What the merger's shell does for its core: render, and write blobs before the fact that names them. */
export function gatherForMerger(
  bus: SimBus,
  needs: readonly merger.RenderNeed[],
  state: merger.State,
): Map<string, merger.Gathered> {
  return new Map(needs.map((need) => [need.key, gatherOne(bus, need, state)]));
}

function gatherOne(bus: SimBus, need: merger.RenderNeed, state: merger.State): merger.Gathered {
  switch (need.do) {
    case 'render-change': {
      const change = state.changes.get(need.change);
      if (change === undefined) throw new Error(`no ${need.change}`);
      const { texts, ...rendering } = atOnce(merger.renderChange(state, change, need.replaces, sha256));
      for (const [node, text] of texts) bus.putConfig(node, rendering.targets[node]?.to ?? '', text);
      const key = `${need.change}.${sha256(JSON.stringify(rendering.targets))}`;
      bus.targets.set(key, rendering.targets);
      return { did: 'render-change', rendering, blobs: [key], targets: rendering.targets };
    }
    case 'render-nodes': {
      const nodes = merger.renderNodes(state, need.nodes, sha256);
      for (const { node, hash, text } of nodes) if (hash !== '') bus.putConfig(node, hash, text);
      return { did: 'render-nodes', nodes };
    }
    case 'plan':
      return { did: 'plan', plan: atOnce(merger.planChange(state, need.body, sha256)) };
  }
}

export function gatherForValidator(
  bus: SimBus,
  needs: readonly validator.ReviewNeed[],
  state: validator.State,
): Map<string, validator.Reviewed> {
  const materialFor = (change: string): validator.Material => ({
    config: (node, hash) => configOf(bus, node, hash),
    capabilities: (node) => state.capabilities.get(node) ?? [],
    labels: (node) => state.labels.get(node) ?? {},
    policies: policiesOf('DisruptionPolicy', state.policies.values(), state.carried.get(change)),
  });
  return new Map(needs.map((need) => [need.key, reviewed(need, materialFor)]));
}

const reviewed = (
  need: validator.ReviewNeed,
  materialFor: (change: string) => validator.Material,
): validator.Reviewed =>
  need.do === 'review-change'
    ? atOnce(validator.reviewTargets(need.targets, materialFor(need.change)))
    : validator.reviewNodes(need.nodes, materialFor(''));

export function gatherForScheduler(bus: SimBus, needs: readonly PlanNeed[]): Map<string, Plan> {
  return new Map(needs.map((need) => [need.key, planFor(bus, need)]));
}

function planFor(bus: SimBus, { node, from, to, policies, labels }: PlanNeed): Plan {
  const target = configOf(bus, node, to);
  if (target === undefined)
    return { ok: false, only: node, reason: `the config ${to.slice(0, 12)} is not in the bucket configs` };
  const before = configOf(bus, node, from);
  const { actions } = planActions(before ?? EMPTY_CONFIG, target, effectivePolicy(policies, labels));
  return { ok: true, actions, ...(before === undefined ? { only: node } : {}) };
}

export function configOf(bus: SimBus, node: string, hash: string): Config | undefined {
  if (hash === EMPTY_HASH) return EMPTY_CONFIG;
  const text = bus.config(node, hash);
  return text === undefined ? undefined : parsed(bus, text);
}

/** For oracles: also one that is gone by now. */
export function everConfigOf(bus: SimBus, node: string, hash: string): Config | undefined {
  if (hash === EMPTY_HASH) return EMPTY_CONFIG;
  const text = bus.everConfigs.get(configKey(node, hash));
  return text === undefined ? undefined : parsed(bus, text);
}

function parsed(bus: SimBus, text: string): Config {
  const known = bus.parsed.get(text) ?? (JSON.parse(text) as Config);
  bus.parsed.set(text, known);
  return known;
}
