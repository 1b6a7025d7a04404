import type { FieldSet, ManagedFields } from '#libs/kube/lean';

/** The field manager of everything that Sluice applies. */
export const MANAGER = 'sluice';

const isOwn = ({ manager, operation, subresource = '' }: ManagedFields): boolean =>
  manager === MANAGER && operation === 'Apply' && subresource === '';

/** The fields that Sluice has set. */
export const ownFields = (managed: readonly ManagedFields[] = []): FieldSet =>
  managed.filter(isOwn).reduce((all: FieldSet, { fieldsV1 = {} }) => union(all, fieldsV1), {});

export const isEmpty = (set: FieldSet): boolean => Object.keys(set).length === 0;

/** In `fieldsV1`, an empty node is a field as a whole. `.` is the item itself, next to fields in it. */
const ITEM = '.';

export function union(one: FieldSet, other: FieldSet): FieldSet {
  const all: Record<string, FieldSet> = { ...one };
  for (const [key, below] of Object.entries(other)) {
    const known = all[key];
    all[key] = known === undefined ? below : joined(known, below);
  }
  return all;
}

/** A node that is a field as a whole, and one with parts of it, are both. */
const joined = (one: FieldSet, other: FieldSet): FieldSet =>
  isEmpty(one) && isEmpty(other)
    ? one
    : union(isEmpty(one) ? { [ITEM]: {} } : one, isEmpty(other) ? { [ITEM]: {} } : other);

export function intersection(one: FieldSet, other: FieldSet): FieldSet {
  const both: Record<string, FieldSet> = {};
  for (const [key, below] of Object.entries(one)) {
    const known = other[key];
    if (known === undefined) continue;
    const [leafOne, leafOther] = [isEmpty(below), isEmpty(known)];
    if (leafOne || leafOther) {
      if ((leafOne || ITEM in below) && (leafOther || ITEM in known)) both[key] = {};
      continue;
    }
    const inner = intersection(below, known);
    if (!isEmpty(inner)) both[key] = inner;
  }
  return both;
}

/** The order of the items of a list that a set of fields names: that in the list, or that in the set. */
type ItemOrder = 'list' | 'set';

/** The part of a value that a set of fields names; undefined if it has none of them. */
export function extract(value: unknown, set: FieldSet, order: ItemOrder = 'list'): unknown {
  if (isEmpty(set)) return value;
  if (Array.isArray(value)) return extractItems(value as readonly unknown[], set, order);
  if (typeof value !== 'object' || value === null) return ITEM in set ? value : undefined;
  const object = value as Readonly<Record<string, unknown>>;
  const fields = Object.entries(set).flatMap(([key, below]) => {
    if (!key.startsWith('f:')) return [];
    const name = key.slice(2);
    const found = Object.hasOwn(object, name) ? extract(object[name], below, order) : undefined;
    return found === undefined ? [] : [[name, found] as const];
  });
  return fields.length === 0 && !(ITEM in set) ? undefined : Object.fromEntries(fields);
}

/** `k:` names an item by its key fields, `v:` by its value, `i:` by its place. */
function extractItems(items: readonly unknown[], set: FieldSet, order: ItemOrder): unknown {
  const entries = Object.entries(set);
  const found = items.flatMap((item, i): readonly { readonly place: number; readonly part: unknown }[] => {
    for (const [place, [key, below]] of entries.entries()) {
      if (key.startsWith('k:')) {
        const keys = JSON.parse(key.slice(2)) as Readonly<Record<string, unknown>>;
        if (!hasKeys(item, keys)) continue;
        return [{ place, part: { ...keys, ...(extract(item, below, order) as object | undefined) } }];
      }
      if (key.startsWith('v:') && key.slice(2) === JSON.stringify(item)) return [{ place, part: item }];
      if (key === `i:${i}`) return [{ place, part: extract(item, below, order) }];
    }
    return [];
  });
  if (found.length === 0 && !(ITEM in set)) return undefined;
  const sorted = order === 'list' ? found : found.toSorted((one, other) => one.place - other.place);
  return sorted.map(({ part }) => part);
}

const hasKeys = (item: unknown, keys: Readonly<Record<string, unknown>>): boolean =>
  typeof item === 'object' &&
  item !== null &&
  Object.entries(keys).every(([name, value]) => (item as Readonly<Record<string, unknown>>)[name] === value);

/**
 * Who has set the fields after the fields of Sluice got back what they had before: those who had set them then. What
 * others have set since stays theirs.
 */
export function restoredManagers(
  now: readonly ManagedFields[],
  before: readonly ManagedFields[],
  restored: FieldSet,
): readonly ManagedFields[] {
  const managers = now.filter((one) => !isOwn(one));
  for (const one of before) {
    const given = isOwn(one) ? (one.fieldsV1 ?? {}) : intersection(one.fieldsV1 ?? {}, restored);
    if (isEmpty(given)) continue;
    const at = managers.findIndex((other) => isSame(one, other));
    const known = managers[at];
    if (known === undefined) managers.push({ ...one, fieldsV1: given });
    else managers[at] = { ...known, fieldsV1: union(known.fieldsV1 ?? {}, given) };
  }
  return managers;
}

const isSame = (one: ManagedFields, other: ManagedFields): boolean =>
  one.manager === other.manager &&
  one.operation === other.operation &&
  one.apiVersion === other.apiVersion &&
  (one.subresource ?? '') === (other.subresource ?? '');
