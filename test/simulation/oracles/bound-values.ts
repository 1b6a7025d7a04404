import { fragmentId, nodeToken, type Fragment } from '#libs/contracts';
import { boundValuesIn } from '#libs/manifests';
import { Violation, type Oracle, type World } from '../world/world.js';
import { leaveTo, type Touching } from './passed-changes.js';

/**
 * Every config that a node has was rendered from values that were in the ledger before. Values replace those that were
 * published last before them. When nothing is in progress, a node that has all of its config has the values that were
 * committed last.
 */
export function boundValues(): Oracle {
  const published = new Map<string, Touching>();
  const committed = new Map<string, Fragment>();
  /** By node. */
  const recorded = new Map<string, Set<string>>();
  /** By node: the change that published its values last. */
  const last = new Map<string, string>();
  return {
    name: 'bound values',
    onFact(_world, fact) {
      if (fact.type === 'config.accepted') {
        published.set(fact.change, fact);
        for (const fragment of fact.apply) {
          const values = recorded.get(fragment.name) ?? new Set();
          for (const { value } of boundValuesIn(fragment)) if (value !== undefined) values.add(value);
          if (fragment.kind === 'BoundValues') recorded.set(fragment.name, values);
        }
        if (fact.source === 'bindings' && fact.rollbackOf === undefined) replace(last, fact);
      }
      if (fact.type !== 'config.committed') return;
      const { apply, delete: gone } = published.get(fact.change) ?? { apply: [], delete: [] };
      for (const ref of gone) committed.delete(fragmentId(ref));
      for (const fragment of apply) committed.set(fragmentId(fragment), fragment);
      leaveTo(published, fact.change);
    },
    onJournal(world, { name: node }, { inForce }) {
      for (const [name, region] of regionsOn(world, node, inForce))
        if (region !== 'default' && recorded.get(node)?.has(region) !== true)
          throw new Violation(`${node} has KubeObjects/${name} with ${region}, which was never read there`);
    },
    atEnd(world) {
      if (world.bus.views('rollouts').some(({ phase }) => IN_PROGRESS.includes(phase))) return;
      for (const { node, state } of world.bus.views('nodes')) if (state !== 'gone') check(world, node, committed);
    },
  };
}

const IN_PROGRESS: readonly string[] = ['rolling', 'complete', 'reverting'];

/** A retry publishes what was published before, and only if nobody has changed it since. */
function replace(
  last: Map<string, string>,
  fact: Touching & { readonly change: string; readonly retryOf: string },
): void {
  for (const { kind, name, spec } of fact.apply) {
    if (kind !== 'BoundValues') continue;
    const [after, before] = [String(spec?.['after'] ?? ''), last.get(name) ?? ''];
    if (fact.retryOf === '' && after !== before)
      throw new Violation(
        `${fact.change} replaces the values of ${name} in ${after}, but the last ones are in ${before}`,
      );
    last.set(name, fact.change);
  }
}

function check(world: World, node: string, committed: ReadonlyMap<string, Fragment>): void {
  const status = world.bus.view('status', nodeToken(node));
  const machine = world.nodes.get(node);
  if (status === undefined || machine?.alive !== true) return;
  if (status.incompatible || status.hash === '' || status.hash !== status.desired) return;
  const values = committed.get(`BoundValues/${node}`);
  const [value] = values === undefined ? [] : boundValuesIn(values);
  for (const [name, region] of regionsOn(world, node, machine.journal.inForce))
    if (region !== (value?.value ?? 'default'))
      throw new Violation(`${node} has KubeObjects/${name} with ${region}, and not with ${String(value?.value)}`);
}

/** What the objects in a config have as the value of the binding. */
function regionsOn(world: World, node: string, hash: string): readonly (readonly [string, string])[] {
  const entries = world.bus.everConfig({ node, hash })?.fragments ?? [];
  return entries
    .filter(({ kind }) => kind === 'KubeObjects')
    .map(({ name, spec }) => {
      const [object] = spec['objects'] as unknown as readonly { readonly data: { readonly region: string } }[];
      return [name, object?.data.region ?? ''] as const;
    });
}
