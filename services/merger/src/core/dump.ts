import { State } from './state.js';

const TABLES = [
  'nodes',
  'changes',
  'fragments',
  'goneFragments',
  'desired',
  'targets',
  'owed',
  'condemned',
  'toRender',
] as const;

/** The whole fold as JSON. */
export function dump(state: State): unknown {
  const tables = Object.fromEntries(TABLES.map((name) => [name, [...state[name].entries()]]));
  const { cursor, generation, nodesVersion } = state;
  return {
    ...tables,
    openChanges: [...state.openChanges],
    cursor: cursor.get(),
    generation: generation.get(),
    nodesVersion: nodesVersion.get(),
  };
}

/** A fold from its JSON. */
export function load(dumped: unknown): State {
  const source = dumped as Record<(typeof TABLES)[number], [string, never][]> & {
    openChanges: string[];
    cursor: number;
    generation: number;
    nodesVersion: number;
  };
  const state = new State();
  for (const name of TABLES)
    for (const [key, value] of source[name])
      (state[name] as { set(key: string, value: unknown): void }).set(key, value);
  for (const change of source.openChanges) state.openChanges.add(change);
  state.cursor.set(source.cursor);
  state.generation.set(source.generation);
  state.nodesVersion.set(source.nodesVersion);
  return state;
}
