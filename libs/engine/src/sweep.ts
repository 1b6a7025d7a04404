import { asker, type Effects, type Program } from './steps.js';

/** A value of a bucket, without its content. */
export interface StoredBlob {
  readonly key: string;
  readonly storedMs: number;
  /** It has a time to live. */
  readonly marked: boolean;
}

export interface SweepPort<B extends StoredBlob> {
  /** All values of the bucket, and the server's time before they were listed. */
  'list-blobs'(): { readonly blobs: readonly B[]; readonly nowMs: number };
  /** The keys that something refers to. */
  'read-names'(): (key: string) => boolean;
  /** Rewrites values with a time to live, or without one. Returns how many had not been changed meanwhile. */
  'rewrite-blobs'(asked: { readonly blobs: readonly B[]; readonly liveMs: number | undefined }): number;
}

export interface SweepTimes {
  /** How long a value stays that nothing refers to. */
  readonly unnamedMs: number;
  /** Younger values are left alone, because the fact that names them may not be appended yet. */
  readonly settledMs: number;
}
export interface SweepResult {
  /** How many values got a time to live, and how many lost it. */
  readonly marked: number;
  readonly unmarked: number;
  readonly looked: number;
}

/**
 * Lets values expire that nothing refers to. The sweep rewrites them with a time to live, and the server deletes them
 * later. Nothing else is recorded: writing the value again removes the time to live, and so does a later sweep that
 * finds a reference. References are read after the bucket, so that they include what was written before.
 */
export function* sweep<B extends StoredBlob>({
  unnamedMs,
  settledMs,
}: SweepTimes): Program<Effects<SweepPort<B>>, SweepResult> {
  const ask = asker<SweepPort<B>>();
  const { blobs, nowMs } = yield* ask({ do: 'list-blobs' });
  const isNamed = yield* ask({ do: 'read-names' });
  const unnamed = blobs.filter((blob) => !blob.marked && !isNamed(blob.key) && blob.storedMs <= nowMs - settledMs);
  const named = blobs.filter((blob) => blob.marked && isNamed(blob.key));
  const marked = yield* ask({ do: 'rewrite-blobs', blobs: unnamed, liveMs: unnamedMs });
  const unmarked = yield* ask({ do: 'rewrite-blobs', blobs: named, liveMs: undefined });
  return { marked, unmarked, looked: blobs.length };
}
