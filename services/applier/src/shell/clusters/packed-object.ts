import { gunzipSync, gzipSync } from 'node:zlib';
import type { KubeManifest } from '#libs/manifests/lean';
import type { LiveObject, ManagedFields } from '#libs/kube/lean';
import type { Json } from '../../core/index.js';
import { RefusedError } from '../ports.js';

/** What an object of a cluster was like. */
export interface PackedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  /** The object as gzip in base64; null if there was none. Journals are stored in NATS, and messages are limited. */
  readonly gzip: string | null;
}

/** All originals and the state before a change must fit into one journal. */
const MOST_CHARACTERS = 200_000;

export function packedObject(
  { apiVersion, kind, metadata: { name, namespace } }: Pick<KubeManifest, 'apiVersion' | 'kind' | 'metadata'>,
  found: LiveObject | undefined,
): Json {
  const gzip = found === undefined ? null : gzipSync(JSON.stringify(withoutServerFields(found))).toString('base64');
  if (gzip !== null && gzip.length > MOST_CHARACTERS)
    throw new RefusedError(
      'node',
      `the object that is there now has ${gzip.length} characters when compressed, and could not be restored: the limit is ${MOST_CHARACTERS}. Delete it first, or choose another name`,
    );
  return { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }), gzip };
}

export interface FormerObject {
  readonly object: KubeManifest;
  readonly managers: readonly ManagedFields[];
}

export const packedOf = (was: Json): PackedObject => was as unknown as PackedObject;

/** The object as it was; undefined if there was none. */
export function formerObject({ gzip }: PackedObject): FormerObject | undefined {
  if (gzip === null) return undefined;
  const object = JSON.parse(gunzipSync(Buffer.from(gzip, 'base64')).toString('utf8')) as LiveObject;
  const { managedFields = [], ...metadata } = object.metadata;
  return { object: { ...object, metadata } as unknown as KubeManifest, managers: managedFields };
}

const SERVER_FIELDS = ['uid', 'resourceVersion', 'generation', 'creationTimestamp', 'selfLink'];

/** What can be written again. */
function withoutServerFields({ status: _, ...object }: LiveObject): object {
  const metadata = Object.entries(object.metadata).filter(([field]) => !SERVER_FIELDS.includes(field));
  return { ...object, metadata: Object.fromEntries(metadata) };
}
