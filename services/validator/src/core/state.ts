import type { Fragment, Reason, Targets } from '#libs/contracts';
import { DEFAULT_NEEDS_TIMEOUT, durationMs } from '#libs/manifests';
import type { CarriedPolicies, KnownBadStory, Touched } from '#libs/rules';
import { Cell, dumpTables, loadTables, SortedSet, Table, UndoLog } from '#libs/engine';

/** A change between its rendering and its start. */
export interface Candidate {
  readonly change: string;
  readonly attempt: number;
  readonly targets: Targets;
  readonly problems: readonly Reason[];
  /** The warnings of rendering. */
  readonly warnings: readonly Reason[];
  /** Whether a warning rejects it. */
  readonly strict: boolean;
  /** Sequence of the last review of this attempt; 0 for none. */
  readonly reviewed: number;
  /** How long it may wait for missing references. */
  readonly needsTimeoutMs: number;
  /** The missing references that the last review found; empty if it does not wait. */
  readonly missing: readonly Reason[];
}

/** A forward lease that ended as `invalid` and must be judged. */
export interface UnjudgedLease extends Omit<Story, 'since' | 'findings' | 'clearedFindings'> {
  readonly sequence: number;
}

/** Why a hash and a recipe are known-bad. */
export interface Story extends KnownBadStory {
  readonly recipe: string;
  readonly lease: string;
  /** The leases that ended as invalid; those of other fleets with the name of the fleet. A clear is for all of them. */
  readonly findings: readonly string[];
  /** Those that were cleared before the last time it became known-bad. */
  readonly clearedFindings: readonly string[];
}

export interface ClearedStory extends Story {
  readonly by: string;
  readonly clearedReason: string;
}

export interface Review {
  readonly change: string;
  readonly attempt: number;
  readonly verdict: 'validated' | 'blocked' | 'rejected';
  readonly reasons: readonly Reason[];
  readonly warnings: readonly Reason[];
}

/** What tells a finding from all others. */
export const findingOf = ({ fleet, lease, change, finding = change }: FindingParts): string =>
  fleet === undefined ? lease : `${fleet} ${finding}`;

interface FindingParts {
  readonly fleet?: string | undefined;
  readonly lease: string;
  readonly change: string;
  readonly finding?: string | undefined;
}

/** The validator's fold. */
export class State {
  readonly undo = new UndoLog();
  readonly touched = new Set<string>();
  readonly capabilities = new Table<string, readonly string[]>(this.undo);
  readonly labels = new Table<string, Readonly<Record<string, string>>>(this.undo);
  /** The hash of each node's config from the committed state. */
  readonly committed = new Table<string, string>(this.undo);
  /** The hash that each node last reported. */
  readonly inForce = new Table<string, string>(this.undo);
  /** Committed policy fragments, by `Kind/name`, and those in open changes. */
  readonly policies = new Table<string, Fragment>(this.undo);
  readonly carried = new Table<string, CarriedPolicies>(this.undo);
  /** The fragments that open changes touch on nodes, by id. */
  readonly touches = new Table<string, Touched>(this.undo);
  /** Changes that wait for missing references → until when, in milliseconds since 1970. */
  readonly blockedUntil = new Table<string, number>(this.undo);
  readonly candidates = new Table<string, Candidate>(this.undo);
  /** Targets of open rollouts, and whether these are complete. */
  readonly rollouts = new Table<string, { readonly targets: Targets; readonly complete: boolean }>(this.undo);
  readonly unjudged = new Table<string, UnjudgedLease>(this.undo);
  /** Hash or recipe → sequence of the last lease with it that ended as `invalid`. */
  readonly invalids = new Table<string, number>(this.undo);
  readonly lastInvalid = new Cell<number>(this.undo, 0);
  /** By hash. */
  readonly knownBad = new Table<string, Story>(this.undo);
  readonly badRecipes = new Table<string, string>(this.undo);
  /** By `<hash>/<recipe>`. */
  readonly cleared = new Table<string, ClearedStory>(this.undo);
  /** Nodes rendered outside rollouts, to be reviewed. */
  readonly unreviewed = new Table<string, { readonly hash: string; readonly problems: readonly Reason[] }>(this.undo);
  readonly reviews = new Table<string, Review>(this.undo);
  readonly openCandidates = new SortedSet(this.undo);
}

const TABLES = [
  'capabilities',
  'labels',
  'committed',
  'inForce',
  'policies',
  'carried',
  'touches',
  'blockedUntil',
  'candidates',
  'rollouts',
  'unjudged',
  'invalids',
  'knownBad',
  'badRecipes',
  'cleared',
  'unreviewed',
  'reviews',
] as const;

/** The whole fold as JSON. */
export const dump = (state: State): unknown => ({
  ...dumpTables(state, TABLES),
  lastInvalid: state.lastInvalid.get(),
});

/** From each version to the next. */
export const MIGRATIONS: Readonly<Record<number, (dumped: unknown) => unknown>> = {
  // Version 3 had no strict changes, which a warning rejects.
  3: (dumped) => {
    const all = dumped as { readonly candidates: readonly (readonly [string, object])[] };
    const candidates = all.candidates.map(([change, row]) => [change, { ...row, warnings: [], strict: false }]);
    return { ...all, candidates };
  },
  // Version 4 had no changes that wait for missing references.
  4: (dumped) => {
    type Rows<T> = readonly (readonly [string, T])[];
    const all = dumped as { readonly candidates: Rows<object>; readonly touches: Rows<readonly string[]> };
    const needsTimeoutMs = durationMs(DEFAULT_NEEDS_TIMEOUT);
    const candidates = all.candidates.map(([change, row]) => [change, { ...row, needsTimeoutMs, missing: [] }]);
    const touches = all.touches.map(([change, applied]) => [change, { applied, deleted: [] }]);
    return { ...all, candidates, touches, blockedUntil: [] };
  },
  // Version 5 did not tell findings of one config apart.
  5: (dumped) => {
    type Rows = readonly (readonly [string, Omit<Story, 'findings' | 'clearedFindings'>])[];
    const all = dumped as { readonly knownBad: Rows; readonly cleared: Rows };
    const withFindings = (rows: Rows) =>
      rows.map(([key, story]) => [key, { ...story, findings: [findingOf(story)], clearedFindings: [] }]);
    return { ...all, knownBad: withFindings(all.knownBad), cleared: withFindings(all.cleared) };
  },
};

/** A fold from its JSON. */
export function load(dumped: unknown): State {
  const state = new State();
  loadTables(state, TABLES, dumped);
  for (const change of state.candidates.keys()) state.openCandidates.add(change);
  state.lastInvalid.set((dumped as { readonly lastInvalid: number }).lastInvalid);
  return state;
}
