import { fragmentId, nodeToken, type Fragment } from '#libs/contracts';
import { Violation, type Oracle, type World } from '../world/world.js';
import { leaveTo, type Touching } from './passed-changes.js';

/**
 * When nothing is in progress, a node that has all of its config has each service with the addresses that were
 * committed last, whichever of the two came first.
 */
export function hostNames(): Oracle {
  const published = new Map<string, Touching>();
  const committed = new Map<string, Fragment>();
  return {
    name: 'host names',
    onFact(_world, fact) {
      if (fact.type === 'config.accepted') published.set(fact.change, fact);
      if (fact.type !== 'config.committed') return;
      const { apply, delete: gone } = published.get(fact.change) ?? { apply: [], delete: [] };
      for (const ref of gone) committed.delete(fragmentId(ref));
      for (const fragment of apply) committed.set(fragmentId(fragment), fragment);
      leaveTo(published, fact.change);
    },
    atEnd(world) {
      if (world.bus.views('rollouts').some(({ phase }) => IN_PROGRESS.includes(phase))) return;
      for (const fragment of committed.values()) if (fragment.kind === 'CNFService') check(world, fragment, committed);
    },
  };
}

const IN_PROGRESS: readonly string[] = ['rolling', 'complete', 'reverting'];

function check(world: World, { name, spec }: Fragment, committed: ReadonlyMap<string, Fragment>): void {
  const { addresses } = (committed.get(`ResolvedName/${String(spec?.['fullname'])}`)?.spec ?? {}) as {
    readonly addresses?: readonly string[];
  };
  const { matchLabels = {} } = (spec?.['nodeSelector'] ?? {}) as { readonly matchLabels?: Record<string, string> };
  for (const { node, state, labels } of world.bus.views('nodes')) {
    if (state === 'gone' || Object.entries(matchLabels).some(([key, value]) => labels[key] !== value)) continue;
    const status = world.bus.view('status', nodeToken(node));
    const machine = world.nodes.get(node);
    if (status === undefined || machine?.alive !== true) continue;
    if (status.incompatible || status.hash === '' || status.hash !== status.desired) continue;
    const config = world.bus.everConfig({ node, hash: machine.journal.inForce });
    const nat = config?.fragments.find((entry) => entry.kind === 'CNFNAT' && entry.name === `${name}nat`);
    if (nat?.spec['dest_ip'] !== addresses?.[0])
      throw new Violation(
        `${node} sends CNFService/${name} to ${String(nat?.spec['dest_ip'])}, and not to ${String(addresses?.[0])}`,
      );
  }
}
