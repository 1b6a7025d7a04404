import type { ChangeView, FragmentRef, FragmentView } from '#libs/contracts';
import { viewKey, type ViewBody, type ViewKey } from '#libs/engine';
import { bindingsKey, bindingsView } from './bindings.js';
import { leftOn, reachedBy } from './counts.js';
import type { State } from './state.js';

/** Limits the size of a view value, which must fit into a message. The ledger has all reasons. */
const SHOWN_REASONS = 100;

/** Every key of the merger's views. */
export function* viewKeys(state: State): Iterable<string> {
  for (const change of state.changes.keys()) yield viewKey('changes', change);
  for (const id of [...state.fragments.keys(), ...state.goneFragments.keys()])
    yield viewKey('fragments', id.replace('/', '.'));
  for (const node of state.nodes.keys()) yield bindingsKey(node);
}

/** The value of one key; undefined if there is nothing to show. */
export function view(state: State, { bucket, key }: ViewKey): ViewBody | undefined {
  if (bucket === 'bindings') return bindingsView(state, key);
  return bucket === 'changes' ? changeView(state, key) : fragmentView(state, key.replace('.', '/'));
}

function changeView(state: State, name: string): Omit<ChangeView, 'ledger'> | undefined {
  const change = state.changes.get(name);
  if (change === undefined) return undefined;
  const {
    open: _,
    rollout: __,
    aborted: ___,
    outdated: ____,
    replaces: _____,
    strategy: ______,
    takeOver: _______,
    incompatible: ________,
    ...view
  } = change;
  return {
    ...view,
    apply: change.apply.map(refOf),
    delete: change.delete.map(refOf),
    reasons: change.reasons.slice(0, SHOWN_REASONS),
    warnings: change.warnings.slice(0, SHOWN_REASONS),
  };
}

const refOf = ({ kind, name }: FragmentRef): FragmentRef => ({ kind, name });

function fragmentView(state: State, id: string): Omit<FragmentView, 'ledger'> | undefined {
  const committed = state.fragments.get(id);
  const found = committed ?? state.goneFragments.get(id);
  if (found === undefined) return undefined;
  const { fragment, change, source } = found;
  const reached = committed === undefined ? leftOn(state, found) : reachedBy(state, id, committed);
  return { fragment, change, source, gone: committed === undefined, ...reached };
}
