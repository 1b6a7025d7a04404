import { changeSequence, fragmentId, type FactOf, type Fragment } from '#libs/contracts';
import { addressesIn, hostNamesIn, kindOf, resolvedNameId } from '#libs/manifests';
import { committedFragments } from './committed.js';
import type { Change, Published, State } from './state.js';

/** The source of the changes with the addresses of host names. */
export const NAMES_SOURCE = 'names';

/** A host name that fragments refer to. */
export interface WantedName {
  readonly name: string;
  /** The addresses that were published for it last; undefined if none were. */
  readonly published: Published | undefined;
}

/** The host names to look up, and those whose addresses nobody needs any more. */
export interface WantedNames {
  readonly wanted: readonly WantedName[];
  readonly unused: readonly WantedName[];
}

/**
 * What the committed state and the open changes need. Names whose addresses another source has published are left out:
 * they are what that source says.
 */
export function wantedNames(state: State): WantedNames {
  const open = [...state.openChanges].flatMap((name) => state.changes.get(name) ?? []);
  const fragments = [...committedFragments(state), ...open.flatMap(({ apply }) => apply)];
  const names = new Set(fragments.flatMap((fragment) => hostNamesIn(fragment).map(({ name }) => name)));
  const isForeign = (name: string): boolean => {
    const id = resolvedNameId(name);
    const owners = [
      state.fragments.get(id),
      ...open.filter(({ apply }) => apply.some((one) => fragmentId(one) === id)),
    ];
    return owners.some((owner) => owner !== undefined && owner.source !== NAMES_SOURCE);
  };
  const withPublished = (name: string): WantedName => ({ name, published: state.published.get(name) });
  const isOwn = (name: string): boolean => state.fragments.get(resolvedNameId(name))?.source === NAMES_SOURCE;
  const unused = [...state.published.entries()].filter(
    ([name, { addresses }]) => !names.has(name) && addresses.length > 0 && isOwn(name),
  );
  return {
    wanted: [...names].filter((name) => !isForeign(name)).map(withPublished),
    unused: unused.map(([name, published]) => ({ name, published })),
  };
}

/** Remembers what was published, also if it is never committed: the same is not published again. */
export function notePublished(state: State, { change, source, apply, delete: gone, rollbackOf }: Accepted): void {
  // A person rolls back an address that does no good, and the name still has it.
  if (source !== NAMES_SOURCE || rollbackOf !== undefined) return;
  for (const fragment of apply)
    if (isInput(fragment)) state.published.set(fragment.name, { addresses: addressesIn(fragment), change });
  for (const ref of gone) if (isInput(ref)) state.published.set(ref.name, { addresses: [], change });
  if (state.published.size > MOST_PUBLISHED) forgetPublished(state);
}

type Accepted = Pick<FactOf<'config.accepted'>, 'change' | 'source' | 'apply' | 'delete' | 'rollbackOf'>;

/** Of names that are in use, all are kept: there is a fragment for each. */
const MOST_PUBLISHED = 10_000;

function forgetPublished(state: State): void {
  const left = [...state.published.entries()].filter(([name]) => !state.fragments.has(resolvedNameId(name)));
  const oldest = left.sort(([, a], [, b]) => changeSequence(a.change) - changeSequence(b.change));
  for (const [name] of oldest.slice(0, MOST_PUBLISHED / 2)) state.published.delete(name);
}

/** Forgets the names that this change has deleted. */
export function forgetNames(state: State, { delete: gone }: Pick<Change, 'delete'>): void {
  for (const ref of gone)
    if (isInput(ref) && state.published.get(ref.name)?.addresses.length === 0) state.published.delete(ref.name);
}

type Content = Pick<Change, 'apply' | 'delete'>;

/** The committed fragments that look up a name whose addresses the change contains. It changes them too. */
export const usersOf = (state: State, change: Content): readonly Fragment[] =>
  using(change, () => committedFragments(state));

/** The same for the fragments of open changes, which may be committed before this one. */
export const openUsersOf = (state: State, change: Content): readonly Fragment[] =>
  using(change, () => [...state.openChanges].flatMap((name) => state.changes.get(name)?.apply ?? []));

function using({ apply, delete: gone }: Content, fragments: () => readonly Fragment[]): readonly Fragment[] {
  const names = new Set([...apply, ...gone].filter(isInput).map(({ name }) => name));
  if (names.size === 0) return [];
  return fragments().filter((fragment) => hostNamesIn(fragment).some(({ name }) => names.has(name)));
}

const isInput = ({ kind }: { readonly kind: string }): boolean => kindOf(kind)?.role === 'input';
