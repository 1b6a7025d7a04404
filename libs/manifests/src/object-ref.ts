import { isHash } from '#libs/contracts';

/** Content in the object store, as a File refers to it. */
export interface ObjectRef {
  /** A name for people. */
  readonly object: string;
  readonly sha256: string;
}

interface Entry {
  readonly kind: string;
  readonly spec?: Readonly<Record<string, unknown>> | undefined;
}

/** The content in the object store that an entry or fragment needs; undefined if it needs none. Accepts any spec. */
export function objectRefOf({ kind, spec }: Entry): ObjectRef | undefined {
  if (kind !== 'File' || spec === undefined) return undefined;
  const { object, sha256 } = (spec['contentFrom'] ?? {}) as Partial<Record<keyof ObjectRef, unknown>>;
  return typeof sha256 === 'string' && isHash(sha256)
    ? { object: typeof object === 'string' ? object : '', sha256 }
    : undefined;
}
