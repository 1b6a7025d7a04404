import { fragmentId, type Fragment } from '#libs/contracts';
import { PAUSE, type Digest, type Steps } from '#libs/engine';
import { canonicalJson } from '#libs/rules';
import type { Change, State } from './state.js';
import type { Spend } from './reach.js';

/** Fragments never change, so each is hashed once per process. There is only one digest function. */
const DIGESTS = new WeakMap<Fragment, string>();

/**
 * The digest of the committed state after a change is committed. It is the sha256 of one line for each fragment:
 * `Kind/name`, a space, the sha256 of its canonical JSON, and a newline, sorted by `Kind/name`. So a commit hashes only
 * the fragments that it changes, and these lines. Returns undefined if a committed fragment is not hashed yet: run
 * `hashFragments` first.
 */
export function digestWith(state: State, change: Change, digest: Digest, spend: Spend): string | undefined {
  const lines: string[] = [];
  const gone = new Set(change.delete.map(fragmentId));
  const added = new Map(change.apply.map((fragment) => [fragmentId(fragment), fragment]));
  for (const id of idsWith(state, gone, added)) {
    const fragment = added.get(id);
    const hash = fragment === undefined ? knownDigest(state, id) : digestOf(fragment, digest, spend);
    if (hash === undefined) return undefined;
    lines.push(`${id} ${hash}\n`);
  }
  const text = lines.join('');
  spend(text.length);
  return digest(text);
}

/** Hashes the committed fragments that are not hashed yet, for example after a start. Pauses per fragment. */
export function* hashFragments(state: State, digest: Digest): Steps<void> {
  for (const { fragment } of [...state.fragments.values()]) {
    if (DIGESTS.has(fragment)) continue;
    digestOf(fragment, digest, () => undefined);
    yield PAUSE;
  }
}

/** Both lists are sorted already, so this sort only merges them. */
function idsWith(state: State, gone: ReadonlySet<string>, added: ReadonlyMap<string, unknown>): readonly string[] {
  const unchanged = [...state.fragmentIds].filter((id) => !gone.has(id) && !added.has(id));
  return [...unchanged, ...[...added.keys()].sort()].sort();
}

function knownDigest(state: State, id: string): string | undefined {
  const committed = state.fragments.get(id);
  return committed === undefined ? undefined : DIGESTS.get(committed.fragment);
}

function digestOf(fragment: Fragment, digest: Digest, spend: Spend): string {
  const cached = DIGESTS.get(fragment);
  if (cached !== undefined) return cached;
  const text = canonicalJson(fragment);
  spend(text.length);
  const result = digest(text);
  DIGESTS.set(fragment, result);
  return result;
}
