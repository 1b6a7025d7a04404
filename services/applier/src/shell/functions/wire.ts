import { FUNCTION_KINDS, type Field, type FunctionKind } from '#libs/manifests/lean';
import { isReturnedAs } from './certificates.js';

/** An object of a function, as it is sent and received. */
export type WireObject = Readonly<Record<string, unknown>>;

/** Every object of a function has it. */
const NAME = 'name';
/** What nobody should see in a report. */
const SECRET: ReadonlySet<string> = new Set(['secret', 'certificates']);

/** The object that a fragment becomes: all numbers are texts, and nothing is empty. */
export function wireOf(kind: FunctionKind, name: string, spec: WireObject): WireObject {
  return { [NAME]: name, ...kind.fixed, ...sentFields(kind.fields, spec) };
}

/** The part of a received object that Sluice knows. Functions add names and values that they derived. */
export const knownOf = (kind: FunctionKind, name: string, found: WireObject): WireObject => ({
  [NAME]: name,
  ...normalFields(shapeOf(kind), found),
});

/** How an object differs from the wanted one; undefined if it does not. */
export function difference(kind: FunctionKind, wanted: WireObject, found: WireObject): string | undefined {
  const shape = shapeOf(kind);
  return fieldDifference(shape, normalFields(shape, wanted), normalFields(shape, found), '');
}

/** Whether the object has certificates, which a function does not return as they were. */
export const hasCertificates = (kind: FunctionKind, object: WireObject): boolean =>
  certificatesOf(kind, object).length > 0;

/** The certificates of an object. */
export const certificatesOf = (kind: FunctionKind, object: WireObject): readonly string[] =>
  Object.entries(shapeOf(kind)).flatMap(([key, field]) => {
    const value = object[key];
    return formOf(field) === 'certificates' && typeof value === 'string' && value !== '' ? [value] : [];
  });

type Shape = Readonly<Record<string, Field>>;

function sentFields(fields: Shape, spec: WireObject): WireObject {
  const sent = Object.entries(fields).flatMap(([key, field]) => {
    if (field.isDropped === true) return [];
    const value = sentValue(field, spec[key]);
    return value === undefined ? [] : [[field.wire ?? key, value] as const];
  });
  return Object.fromEntries(sent);
}

function sentValue(field: Field, value: unknown): unknown {
  if (value === undefined || value === null || value === '') return undefined;
  if (Array.isArray(value)) {
    if (value.length === 0) return undefined;
    if (field.isJoined === true) return value.map(String).join(',');
    return 'fields' in field ? value.map((item) => sentFields(field.fields, item as WireObject)) : value.map(String);
  }
  return 'flag' in field ? value : String(value);
}

/**
 * The fields of the objects in a collection, by their names on the wire. Kinds that share a collection are compared
 * with all of its fields, because one may take over an object of the other.
 */
function shapeOf(kind: FunctionKind): Shape {
  const known = SHAPES.get(kind.path);
  if (known !== undefined) return known;
  const shape = mergedShape(FUNCTION_KINDS.filter(({ path }) => path === kind.path).map(({ fields }) => fields));
  const fixed = Object.keys(kind.fixed ?? {}).map((key) => [key, FIXED] as const);
  const added = Object.entries(kind.added ?? {}).map(([key, otherwise]) => [key, { ...FIXED, otherwise }] as const);
  const whole: Shape = { ...shape, ...Object.fromEntries([...fixed, ...added]) };
  SHAPES.set(kind.path, whole);
  return whole;
}

const SHAPES = new Map<string, Shape>();
const FIXED: Field = { words: [], about: '' };

function mergedShape(all: readonly Shape[]): Shape {
  const merged = new Map<string, Field>();
  for (const [key, field] of all.flatMap((fields) => Object.entries(fields))) {
    if (field.isDropped === true) continue;
    const wire = field.wire ?? key;
    const before = merged.get(wire);
    const nested = [before, field].flatMap((one) => (one !== undefined && 'fields' in one ? [one.fields] : []));
    merged.set(wire, nested.length === 0 ? field : { ...field, fields: mergedShape(nested) });
  }
  return Object.fromEntries(merged);
}

/** Without what means nothing: unknown fields, empty values, and values that the function fills in. */
function normalFields(shape: Shape, object: WireObject): WireObject {
  const fields = Object.entries(shape).flatMap(([key, field]) => {
    const value = normalValue(field, object[key]);
    return value === undefined || value === field.otherwise ? [] : [[key, value] as const];
  });
  return Object.fromEntries(fields);
}

function normalValue(field: Field, value: unknown): unknown {
  if (value === undefined || value === null || value === '') return undefined;
  if ('flag' in field) return value === true || value === 'true' || value === '1';
  if (field.isJoined === true)
    return (Array.isArray(value) ? value : String(value).split(',')).map((one) => String(one).trim()).join(',');
  if (field.list !== true) return typeof value === 'object' ? JSON.stringify(value) : String(value).trim();
  const items: readonly unknown[] = Array.isArray(value)
    ? value
    : typeof value === 'object'
      ? Object.values(value)
      : [value];
  if (items.length === 0) return undefined;
  if (!('fields' in field)) return items.map(String);
  const objects = items.map((item) => normalFields(field.fields, (item ?? {}) as WireObject));
  return field.isUnordered === true
    ? objects.toSorted((a, b) => compareText(String(a[NAME]), String(b[NAME])))
    : objects;
}

function fieldDifference(shape: Shape, wanted: WireObject, found: WireObject, place: string): string | undefined {
  for (const [key, field] of Object.entries(shape)) {
    const [want, have] = [wanted[key], found[key]];
    const at = `${place}${key}`;
    if (formOf(field) === 'certificates' && typeof want === 'string' && typeof have === 'string') {
      if (!isReturnedAs(want, have)) return `${at} differs`;
    } else if ('fields' in field && Array.isArray(want) && Array.isArray(have) && want.length === have.length) {
      const [wants, haves] = [want as readonly WireObject[], have as readonly WireObject[]];
      for (const [i, item] of wants.entries()) {
        const inside = fieldDifference(field.fields, item, haves[i] ?? {}, `${at}[${i}].`);
        if (inside !== undefined) return inside;
      }
    } else if (JSON.stringify(want) !== JSON.stringify(have)) {
      return SECRET.has(formOf(field)) ? `${at} differs` : `${at} is ${words(have)} instead of ${words(want)}`;
    }
  }
  return undefined;
}

const formOf = (field: Field): string => ('form' in field ? field.form : '');
/** What a report shows of a value. */
const MOST_WORDS = 80;
const words = (value: unknown): string =>
  value === undefined ? 'not set' : JSON.stringify(value).slice(0, MOST_WORDS);
const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
