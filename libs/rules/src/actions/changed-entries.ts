import { fragmentId, type ConfigEntry } from '#libs/contracts';

/** The entries of two configs, without those that are the same in both. */
export interface ChangedEntries {
  readonly before: readonly ConfigEntry[];
  readonly after: readonly ConfigEntry[];
}

/**
 * Removes entries that are the same in both, in one pass: rendered configs are sorted by kind and name, so equal
 * entries meet. In unsorted lists they may not meet, and are then found by name.
 */
export function changedEntries(before: readonly ConfigEntry[], after: readonly ConfigEntry[]): ChangedEntries {
  const left: ConfigEntry[] = [];
  const right: ConfigEntry[] = [];
  let [i, j] = [0, 0];
  while (i < before.length && j < after.length) {
    const [a, b] = [before[i] as ConfigEntry, after[j] as ConfigEntry];
    const order = compareIds(a, b);
    if (order === 0 && !isSame(a, b)) {
      left.push(a);
      right.push(b);
    }
    if (order < 0) left.push(a);
    if (order > 0) right.push(b);
    if (order <= 0) i += 1;
    if (order >= 0) j += 1;
  }
  for (; i < before.length; i++) left.push(before[i] as ConfigEntry);
  for (; j < after.length; j++) right.push(after[j] as ConfigEntry);
  return withoutMissed(left, right);
}

function withoutMissed(left: readonly ConfigEntry[], right: readonly ConfigEntry[]): ChangedEntries {
  if (left.length === 0 || right.length === 0) return { before: left, after: right };
  const byId = new Map(right.map((entry) => [fragmentId(entry), entry]));
  const same = new Set<ConfigEntry>();
  for (const entry of left) {
    const other = byId.get(fragmentId(entry));
    if (other !== undefined && isSame(entry, other)) same.add(entry).add(other);
  }
  if (same.size === 0) return { before: left, after: right };
  return { before: left.filter((entry) => !same.has(entry)), after: right.filter((entry) => !same.has(entry)) };
}

function compareIds(a: ConfigEntry, b: ConfigEntry): number {
  if (a.kind !== b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  return 0;
}

const isSame = (a: ConfigEntry, b: ConfigEntry): boolean => a === b || isEqual(a.spec, b.spec);

/** Whether two values are equal as JSON, in any order of keys. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (
    typeof a !== 'object' ||
    typeof b !== 'object' ||
    a === null ||
    b === null ||
    Array.isArray(a) !== Array.isArray(b)
  )
    return false;
  const [one, other] = [a as Readonly<Record<string, unknown>>, b as Readonly<Record<string, unknown>>];
  let keys = 0;
  for (const key in one) {
    if (!Object.hasOwn(other, key) || !isEqual(one[key], other[key])) return false;
    keys += 1;
  }
  return keys === Object.keys(other).length;
}
