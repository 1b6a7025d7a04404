/** Computes a result once per object. It must depend on nothing that can change. */
export function oncePerObject<K extends object, V, Rest extends readonly unknown[]>(
  compute: (object: K, ...rest: Rest) => V,
): (object: K, ...rest: Rest) => V {
  const results = new WeakMap<K, V>();
  return (object, ...rest) => {
    const known = results.get(object);
    if (known !== undefined) return known;
    const result = compute(object, ...rest);
    results.set(object, result);
    return result;
  };
}
