import { State } from './state.js';

const TABLES = [
  'capabilities',
  'labels',
  'committed',
  'inForce',
  'policies',
  'carried',
  'touches',
  'candidates',
  'rollouts',
  'unjudged',
  'invalids',
  'knownBad',
  'badRecipes',
  'forgiven',
  'unreviewed',
  'reviews',
] as const;

/** The whole fold as JSON. */
export function dump(state: State): unknown {
  const tables = Object.fromEntries(TABLES.map((name) => [name, [...state[name].entries()]]));
  return { ...tables, lastInvalid: state.lastInvalid.get() };
}

/** A fold from its JSON. */
export function load(dumped: unknown): State {
  const source = dumped as Record<(typeof TABLES)[number], [string, never][]> & { lastInvalid: number };
  const state = new State();
  for (const name of TABLES)
    for (const [key, value] of source[name])
      (state[name] as { set(key: string, value: unknown): void }).set(key, value);
  for (const change of state.candidates.keys()) state.openCandidates.add(change);
  state.lastInvalid.set(source.lastInvalid);
  return state;
}
