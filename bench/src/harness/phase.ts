import type { PartContext } from './part.js';

/** Runs one phase of a part with its own cleanup, so that what it started does not disturb the next. */
export async function phase<T>(context: PartContext, run: (inner: PartContext) => Promise<T>): Promise<T> {
  const ends: (() => Promise<void> | void)[] = [];
  try {
    return await run({ ...context, atEnd: (undo) => void ends.unshift(undo) });
  } finally {
    for (const undo of ends) await undo();
  }
}
