import { asker, type Effects, type Program } from './steps.js';

/** A value of a bucket, without its content. */
export interface StoredBlob {
  readonly key: string;
  readonly storedMs: number;
  /** It has a time to live. */
  readonly marked: boolean;
}

export interface SweepPort<B extends StoredBlob> {
  /** All of the bucket, and the server's time before it was looked through. */
  'list-blobs'(): { readonly blobs: readonly B[]; readonly nowMs: number };
  /** Which keys are named. */
  'read-names'(): (key: string) => boolean;
  /** Writes them again, to live so long, or for good; how many nobody had written or deleted meanwhile. */
  'rewrite-blobs'(asked: { readonly blobs: readonly B[]; readonly liveMs: number | undefined }): number;
}

export interface SweepTimes {
  /** For how long a value stays that nothing names. */
  readonly unnamedMs: number;
  /** Younger ones are left alone: the fact that names them may be on its way. */
  readonly settledMs: number;
}
export interface Swept {
  /** So many have a time to live now that had none, and so many have none any more. */
  readonly marked: number;
  readonly unmarked: number;
  readonly looked: number;
}

/**
 * Lets what nothing names run out. A value is marked by being written once more with a time to live, and the server
 * deletes it then. Nothing is recorded: a writer that writes it again, without, takes the mark off, and so does a sweep
 * that finds it named. Names are read after the bucket, so that what was written before is known to them.
 */
export function* sweep<B extends StoredBlob>({
  unnamedMs,
  settledMs,
}: SweepTimes): Program<Effects<SweepPort<B>>, Swept> {
  const ask = asker<SweepPort<B>>();
  const { blobs, nowMs } = yield* ask({ do: 'list-blobs' });
  const isNamed = yield* ask({ do: 'read-names' });
  const unnamed = blobs.filter((blob) => !blob.marked && !isNamed(blob.key) && blob.storedMs <= nowMs - settledMs);
  const named = blobs.filter((blob) => blob.marked && isNamed(blob.key));
  const marked = yield* ask({ do: 'rewrite-blobs', blobs: unnamed, liveMs: unnamedMs });
  const unmarked = yield* ask({ do: 'rewrite-blobs', blobs: named, liveMs: undefined });
  return { marked, unmarked, looked: blobs.length };
}
