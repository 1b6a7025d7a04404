/** Computes a result once per object. It must depend on nothing that can change. */
export function oncePerObject<K extends object, V, Rest extends readonly unknown[]>(
  compute: (object: K, ...rest: Rest) => V,
): (object: K, ...rest: Rest) => V {
  const results = new WeakMap<K, V>();
  return (object, ...rest) => {
    const cached = results.get(object);
    if (cached !== undefined) return cached;
    const result = compute(object, ...rest);
    results.set(object, result);
    return result;
  };
}
