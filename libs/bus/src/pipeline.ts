/** Runs a piece of work for each item, at most `width` of them at once; ends at the first failure, when what was under way has ended. */
export async function pipelined<T>(items: Iterable<T>, width: number, work: (item: T) => Promise<void>): Promise<void> {
  const source = items[Symbol.iterator]();
  let failure: { readonly error: unknown } | undefined;
  const lane = async (): Promise<void> => {
    for (let next = source.next(); next.done !== true && failure === undefined; next = source.next()) {
      await work(next.value).catch((error: unknown) => (failure ??= { error }));
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
  if (failure !== undefined) throw failure.error;
}
