import type { Manifest } from '../manifest.js';
import { isObject } from '../shape/reader.js';

/** The API server sets at least one of these in every object that it stores. */
const SET_BY_SERVER = ['uid', 'resourceVersion', 'creationTimestamp', 'managedFields'];
/** What a person says in the metadata. The rest is for Kubernetes and its clients. */
const WRITTEN = ['name', 'labels'];

/** A manifest as `kubectl get -o yaml` prints it, without what Kubernetes added. Any other is returned as it is. */
export function withoutServerFields(manifest: Manifest): Manifest {
  const { status: _, ...written } = manifest as Manifest & { readonly status?: unknown };
  const { metadata } = manifest;
  if (!isObject(metadata) || !SET_BY_SERVER.some((field) => Object.hasOwn(metadata, field))) return manifest;
  return {
    ...written,
    metadata: Object.fromEntries(Object.entries(metadata).filter(([key]) => WRITTEN.includes(key))),
  };
}
