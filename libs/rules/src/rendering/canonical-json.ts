import canonicalize from 'canonicalize';

/** The RFC 8785 form of a JSON value. Throws on anything else, because that would be a bug of the caller. */
export function canonicalJson(value: unknown): string {
  refuseForeign(value, '$');
  return canonicalize(value) as string;
}

/** `canonicalize` would accept Dates, Maps and objects with `toJSON`, and convert each to something else. */
function refuseForeign(value: unknown, at: string): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return;
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError(`${at}: ${value} is not JSON`);
    return;
  }
  if (typeof value !== 'object') throw new TypeError(`${at}: ${typeof value} is not JSON`);
  if (Array.isArray(value)) {
    // Not forEach, which would skip holes.
    for (let i = 0; i < value.length; i++) refuseForeign(value[i], `${at}[${i}]`);
    return;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype && Object.getPrototypeOf(prototype) !== null) {
    throw new TypeError(`${at}: an object of a class is not JSON`);
  }
  // A field with that name is data, unless it is a function, which is refused below.
  for (const [key, item] of Object.entries(value)) refuseForeign(item, `${at}.${key}`);
}
