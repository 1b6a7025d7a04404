import { changeId, EMPTY_HASH, fragmentId, type Fragment, type FragmentRef } from '#libs/contracts';
import { isPolicyKind } from '#libs/manifests';
import { Violation, type Oracle, type World } from '../world/world.js';
import { idsOf, leaveTo } from './passed-changes.js';

/** A fragment, or its entry in the config of a node. */
interface Entry extends FragmentRef {
  readonly spec?: Readonly<Record<string, unknown>> | undefined;
}

interface Published {
  readonly source: string;
  readonly rollbackOf?: string;
  readonly takeOver?: boolean;
  readonly apply: readonly Fragment[];
  readonly delete: readonly FragmentRef[];
}

/**
 * No change that reaches nodes leaves a network without the VRF that it refers to, and no node gets a network without
 * its VRF. In the end, a change waits only for what does not exist, no longer than it may. It holds up no change of
 * other fragments, and of the same source not even one of some of its own. One that has waited too long ends with a
 * reason that names what it waited for.
 */
export function missingReferences(): Oracle {
  const published = new Map<string, Published>();
  let committed: ReadonlyMap<string, Fragment> = new Map();
  /** What an open change waits for. */
  const blocked = new Map<string, { readonly needs: readonly string[]; readonly untilMs: number }>();
  const contentOf = (change: string): Published => published.get(change) ?? { source: '', apply: [], delete: [] };
  /** The committed fragments after a change. */
  const after = (change: string): ReadonlyMap<string, Fragment> => {
    const state = new Map(committed);
    for (const ref of contentOf(change).delete) state.delete(fragmentId(ref));
    for (const fragment of contentOf(change).apply) state.set(fragmentId(fragment), fragment);
    return state;
  };
  /** What was in force on each node. */
  const inForce = new Map<string, string>();
  return {
    name: 'missing references',
    onJournal(world, { name: node }, { inForce: hash, work, sound }) {
      if (work !== undefined || !sound) return;
      const before = inForce.get(node) ?? EMPTY_HASH;
      inForce.set(node, hash);
      // Nothing checks a change that reaches no nodes: they get it when they join.
      if (before === hash || withoutVrf(committed).length > 0) return;
      const [old, found] = [before, hash].map((one) => lackingIn(world, node, one));
      const lost = found?.find((id) => old?.includes(id) !== true);
      if (lost !== undefined) throw new Violation(`${node} has got ${lost} without its VRF`);
    },
    onFact(_world, fact) {
      if (fact.type === 'config.accepted') published.set(fact.change, fact);
      if (fact.type === 'config.rejected') {
        const text = JSON.stringify(fact.reasons);
        const unsaid = blocked.get(fact.change)?.needs.find((need) => !text.includes(need));
        if (unsaid !== undefined) throw new Violation(`${fact.change} has waited for ${unsaid}, and ends with ${text}`);
      }
      if (fact.type === 'config.blocked') blocked.set(fact.change, fact);
      else if ('change' in fact && fact.type.startsWith('config.')) blocked.delete(fact.change ?? '');
      // A change that reaches no nodes is not checked: references are missing on nodes.
      if (fact.type === 'rollout.started' && fact.pending > 0) {
        const before = new Set(withoutVrf(committed));
        const lost = withoutVrf(after(fact.change)).find((id) => !before.has(id));
        if (lost !== undefined) throw new Violation(`${fact.change} starts, and the VRF of ${lost} does not exist`);
      }
      if (fact.type !== 'config.committed') return;
      committed = after(fact.change);
      leaveTo(published, fact.change);
    },
    atEnd(world) {
      for (const { sequence } of world.bus.changes) {
        const change = changeId(sequence);
        const holders = world.bus.view('changes', change)?.waitsFor ?? [];
        const isHeld = holders.some((one) => !blocked.has(one) || mayHoldUp(contentOf(one), contentOf(change)));
        if (holders.length > 0 && !isHeld)
          throw new Violation(`${change} waits for ${holders.join()}, which wait for what does not exist`);
        const { needs, untilMs } = blocked.get(change) ?? { needs: [], untilMs: 0 };
        const there = needs.find((need) => vrfsIn(committed).has(need.slice('Vrf/'.length)));
        if (there !== undefined) throw new Violation(`${change} waits for ${there}, which exists`);
        if (needs.length > 0 && world.clock.nowMs > untilMs + PATIENCE_MS)
          throw new Violation(`${change} still waits for ${needs.join()}, although its time is over`);
      }
    },
  };
}

/** Whether a change that waits for what does not exist may hold up this newer one. */
function mayHoldUp(holder: Published, newer: Published): boolean {
  const own = new Set(idsOf(newer));
  const shared = idsOf(holder).filter((id) => own.has(id));
  const isLate = holder.rollbackOf !== undefined || shared.some((id) => isPolicyKind(id.split('/')[0] ?? ''));
  const isOther = holder.source !== newer.source && newer.takeOver !== true;
  return shared.length > 0 && (isOther || isLate);
}

/** The networks of a config that lack their VRF. */
const lackingIn = ({ bus }: World, node: string, hash: string): readonly string[] =>
  withoutVrf(new Map((bus.everConfig({ node, hash })?.fragments ?? []).map((entry) => [fragmentId(entry), entry])));

/** The wall clocks of two machines differ by up to this. */
const PATIENCE_MS = 20 * 60_000;

const vrfIn = ({ spec }: Entry): unknown => spec?.['vrf'];

const vrfsIn = (state: ReadonlyMap<string, Entry>): ReadonlySet<unknown> =>
  new Set([...state.values()].filter(({ kind }) => kind === 'Vrf').map(vrfIn));

/** The networks whose VRF does not exist. */
function withoutVrf(state: ReadonlyMap<string, Entry>): readonly string[] {
  const vrfs = vrfsIn(state);
  return [...state.values()]
    .filter((fragment) => fragment.kind === 'Layer2Network' && !vrfs.has(vrfIn(fragment)))
    .map(fragmentId);
}
