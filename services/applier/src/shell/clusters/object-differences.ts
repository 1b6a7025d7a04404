type Fields = Readonly<Record<string, unknown>>;

/** How what is there differs from what is wanted, field by field. Fields that are not wanted do not count. */
export function missingFrom(wanted: unknown, found: unknown, secret: boolean): string | undefined {
  return firstDifference(wanted, found, '', secret, true);
}

/** The first difference between two objects, whichever of them has a field. */
export function differenceBetween(wanted: Fields, found: Fields, secret: boolean): string | undefined {
  return firstDifference(comparable(wanted), comparable(found), '', secret, false);
}

const CHANGES_ALWAYS = ['managedFields', 'resourceVersion', 'generation'];

/** Without what a controller or the server writes at any time. */
function comparable({ status: _, ...object }: Fields): Fields {
  const metadata = Object.entries(object['metadata'] as Fields).filter(([field]) => !CHANGES_ALWAYS.includes(field));
  return { ...object, metadata: Object.fromEntries(metadata) };
}

/** The same text for objects that do not differ in what Sluice could have set. */
export const shapeOf = (object: Fields): string => JSON.stringify(comparable(object));

function firstDifference(
  wanted: unknown,
  found: unknown,
  at: string,
  secret: boolean,
  partly: boolean,
): string | undefined {
  if (wanted === found) return undefined;
  if (isFields(wanted) && isFields(found)) {
    const keys = partly ? Object.keys(wanted) : [...new Set([...Object.keys(wanted), ...Object.keys(found)])];
    for (const key of keys) {
      // Applying null removes a field.
      if (partly && wanted[key] === null && found[key] === undefined) continue;
      const how = firstDifference(wanted[key], found[key], at === '' ? key : `${at}.${key}`, secret, partly);
      if (how !== undefined) return how;
    }
    return undefined;
  }
  if (Array.isArray(wanted) && Array.isArray(found)) {
    if (wanted.length !== found.length) return `${at} has ${found.length} items instead of ${wanted.length}`;
    for (const [i, item] of wanted.entries()) {
      const how = firstDifference(item, found[i], `${at}[${i}]`, secret, partly);
      if (how !== undefined) return how;
    }
    return undefined;
  }
  if (found === undefined) return `${at} is missing`;
  if (wanted === undefined) return `${at} was added`;
  return secret ? `${at} differs` : `${at} is ${shown(found)} instead of ${shown(wanted)}`;
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const MOST_SHOWN = 60;
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length <= MOST_SHOWN ? text : `${text.slice(0, MOST_SHOWN)}…`;
}
