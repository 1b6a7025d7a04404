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
  'read-references'(): (key: string) => boolean;
  /** Rewrites values with a time to live, or without one. Returns how many had not been changed meanwhile. */
  'rewrite-blobs'(args: { readonly blobs: readonly B[]; readonly liveMs: number | undefined }): number;
}

export interface SweepTimes {
  /** How long an unreferenced value is kept. */
  readonly unreferencedMs: number;
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
 * Lets unreferenced values expire. The sweep rewrites them with a time to live, and the server deletes them later.
 * Nothing else is recorded: writing the value again removes the time to live, and so does a later sweep that finds a
 * reference. References are read after the bucket, so that they include what was written before.
 */
export function* sweep<B extends StoredBlob>({
  unreferencedMs,
  settledMs,
}: SweepTimes): Program<Effects<SweepPort<B>>, SweepResult> {
  const ask = asker<SweepPort<B>>();
  const { blobs, nowMs } = yield* ask({ do: 'list-blobs' });
  const isReferenced = yield* ask({ do: 'read-references' });
  const unreferenced = blobs.filter(
    (blob) => !blob.marked && !isReferenced(blob.key) && blob.storedMs <= nowMs - settledMs,
  );
  const used = blobs.filter((blob) => blob.marked && isReferenced(blob.key));
  const marked = yield* ask({ do: 'rewrite-blobs', blobs: unreferenced, liveMs: unreferencedMs });
  const unmarked = yield* ask({ do: 'rewrite-blobs', blobs: used, liveMs: undefined });
  return { marked, unmarked, looked: blobs.length };
}

/** An object of the object store. */
export interface StoredObject {
  readonly sha256: string;
  /** When it was uploaded, or last found to be needed. */
  readonly storedMs: number;
}

/**
 * Which objects of the store to delete: nothing has referred to them for `unreferencedMs`. Objects that something
 * refers to are renewed from time to time, so that this time counts from the last reference, and not from the upload.
 */
export function sortObjects<O extends StoredObject>(
  objects: readonly O[],
  isReferenced: (sha256: string) => boolean,
  { nowMs, unreferencedMs }: { readonly nowMs: number; readonly unreferencedMs: number },
): { readonly renewed: readonly O[]; readonly due: readonly O[] } {
  const olderThan = (ms: number) => objects.filter(({ storedMs }) => storedMs <= nowMs - ms);
  return {
    renewed: olderThan(unreferencedMs / 2).filter(({ sha256 }) => isReferenced(sha256)),
    due: olderThan(unreferencedMs).filter(({ sha256 }) => !isReferenced(sha256)),
  };
}
