import type { KubeConnection } from './connection.js';
import { outcomeOf } from './errors.js';
import type { RawObject } from './objects.js';

/** A custom resource, as it was read. */
export interface CustomObject {
  readonly name: string;
  readonly uid: string;
  readonly revision: string;
  readonly generation: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly finalizers: readonly string[];
  readonly deleting: boolean;
  readonly spec: unknown;
  readonly status: unknown;
}

/** `overtaken`: it was changed since it was read, or replaced by another one with the same name. */
export type ObjectOutcome = CustomObject | 'overtaken' | 'gone';

export interface RawCustomObject extends RawObject {
  readonly spec?: unknown;
  readonly status?: unknown;
}

/** The path of a cluster-scoped collection. */
export const kindPath = (groupVersion: string, plural: string): string => `/apis/${groupVersion}/${plural}`;

export function customObjectOf({ metadata = {}, spec, status }: RawCustomObject): CustomObject {
  const {
    name = '',
    uid = '',
    resourceVersion = '',
    generation = 0,
    labels = {},
    annotations = {},
    finalizers = [],
    deletionTimestamp,
  } = metadata;
  return {
    name,
    uid,
    revision: resourceVersion,
    generation,
    labels,
    annotations,
    finalizers,
    deleting: deletionTimestamp !== undefined,
    spec,
    status,
  };
}

const outcomeOfWrite = (write: Promise<unknown>): Promise<ObjectOutcome> =>
  outcomeOf(write.then((raw) => customObjectOf(raw as RawCustomObject)));

/** Sets the finalizers of an object, unless it was changed since it was read. */
export const writeFinalizers = (
  connection: KubeConnection,
  path: string,
  { uid, revision }: Pick<CustomObject, 'uid' | 'revision'>,
  finalizers: readonly string[],
  manager: string,
): Promise<ObjectOutcome> =>
  outcomeOfWrite(connection.patch(path, { metadata: { uid, resourceVersion: revision, finalizers } }, manager));

/** Writes the status of the object with that uid. */
export const applyStatus = (
  connection: KubeConnection,
  path: string,
  {
    name,
    uid,
    ...body
  }: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly name: string;
    readonly uid: string;
    readonly status: object;
  },
  manager: string,
): Promise<ObjectOutcome> =>
  outcomeOfWrite(connection.apply(`${path}/status`, { ...body, metadata: { name, uid } }, manager));

/** Creates an object, unless it exists. */
export const makeObject = (
  connection: KubeConnection,
  collection: string,
  body: object,
  manager: string,
): Promise<ObjectOutcome> =>
  outcomeOfWrite(connection.ask({ method: 'POST', path: `${collection}?fieldManager=${manager}`, body }));

/** Deletes the object with that uid and no other. It is fine if it is already gone. */
export async function deleteObject(connection: KubeConnection, path: string, uid: string): Promise<void> {
  const body = { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid } };
  await outcomeOf(connection.ask({ method: 'DELETE', path, body }));
}
