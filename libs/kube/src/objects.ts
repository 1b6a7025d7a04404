import type { V1ObjectMeta } from '@kubernetes/client-node';

/** An object as the API server sends it. The types are those of the client, but times are texts: it is plain JSON. */
export interface RawObject {
  readonly metadata?: V1ObjectMeta;
}

export interface RawList<T extends RawObject> {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly T[];
}
