import { byAge, fragmentId, type FactOf, type Fragment } from '#libs/contracts';
import { Violation, type Oracle } from '../world/world.js';
import { leaveTo } from './passed-changes.js';

/** A committed fragment. */
interface CommittedFragment {
  readonly fragment: Fragment;
  readonly source: string;
}

/**
 * A source changes and deletes only fragments that it created or was allowed to take over. A change that it publishes
 * again with the same id is accepted once. A rollback restores what was committed before a change, with the source that
 * it belonged to, and only if nothing has touched it since. No change puts its version of a fragment over a newer one.
 */
export function ownedFragments(): Oracle {
  const accepted = new Map<string, FactOf<'config.accepted'>>();
  const replaced = new Map<string, readonly string[]>();
  const committed = new Map<string, CommittedFragment>();
  /** What was committed before each change, and the last change that touched each fragment. */
  const found = new Map<string, ReadonlyMap<string, CommittedFragment | undefined>>();
  const last = new Map<string, string>();
  const uses = new Map<string, string>();
  const idsOf = (change: string): readonly string[] => {
    const fact = accepted.get(change);
    return fact === undefined ? [] : [...fact.apply, ...fact.delete].map(fragmentId);
  };
  const takesOver = (change: string, id: string): boolean =>
    (accepted.get(change)?.takeOver === true && idsOf(change).includes(id)) ||
    (replaced.get(change) ?? []).some((older) => takesOver(older, id));

  function judge({ change, source, rollbackOf, apply }: FactOf<'config.accepted'>): void {
    for (const id of idsOf(change)) {
      const owner = committed.get(id)?.source;
      if (owner !== undefined && owner !== source && !takesOver(change, id))
        throw new Violation(`${change} of ${source} changes ${id}, which belongs to ${owner}`);
    }
    const applied = new Map(apply.map((fragment) => [fragmentId(fragment), JSON.stringify(fragment)]));
    for (const [id, before] of (rollbackOf !== undefined && found.get(rollbackOf)) || []) {
      if (last.get(id) !== rollbackOf)
        throw new Violation(`${change} rolls back ${rollbackOf}, but ${last.get(id)} touched ${id} since`);
      if (applied.get(id) !== (before && JSON.stringify(before.fragment)))
        throw new Violation(`${change} rolls back ${rollbackOf}, and makes ${id} something else than it was`);
    }
  }

  function commit(fact: FactOf<'config.accepted'>): void {
    const { change, source, rollbackOf = '', apply } = fact;
    const before = new Map<string, CommittedFragment | undefined>();
    found.set(change, before);
    for (const id of idsOf(change)) {
      const fragment = apply.find((other) => fragmentId(other) === id);
      // A change may delete a fragment that does not exist. While it is rolled back, any source may create that
      // fragment.
      if (fragment === undefined && !committed.has(id)) continue;
      if (byAge(last.get(id) ?? change, change) > 0)
        throw new Violation(`${change} puts its version of ${id} over that of ${last.get(id)}, which is newer`);
      before.set(id, committed.get(id));
      last.set(id, change);
      const owner = found.get(rollbackOf)?.get(id)?.source ?? source;
      if (fragment === undefined) committed.delete(id);
      else committed.set(id, { fragment, source: owner });
    }
  }

  return {
    name: 'owned fragments',
    onFact(_world, fact) {
      if (fact.type === 'rollout.started') replaced.set(fact.change, fact.replaces);
      if (fact.type === 'config.accepted') {
        accepted.set(fact.change, fact);
        if (fact.messageId === undefined) return;
        const use = `${fact.source}/${fact.messageId.id}`;
        if (uses.has(use)) throw new Violation(`${fact.change} and ${uses.get(use)} are accepted with the id ${use}`);
        uses.set(use, fact.change);
      }
      const change = fact.type === 'config.committed' ? accepted.get(fact.change) : undefined;
      if (change === undefined) return;
      judge(change);
      commit(change);
      leaveTo(accepted, change.change);
    },
  };
}
