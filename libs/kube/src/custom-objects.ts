import type { KubeConnection } from './connection.js';
import { isKubeStatus } from './errors.js';
import type { RawObject } from './objects.js';

/** An object of a kind that a definition brought along, as it was read. */
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

/** `overtaken`: it was changed since it was read, or is another one of that name by now. */
export type ObjectOutcome = CustomObject | 'overtaken' | 'gone';

export interface RawCustomObject extends RawObject {
  readonly spec?: unknown;
  readonly status?: unknown;
}

/** Where objects of a kind are, cluster-wide. */
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

const APPLY = 'application/apply-patch+yaml';
const MERGE = 'application/merge-patch+json';

/** Sets the finalizers of an object if it still is as it was read. */
export const writeFinalizers = (
  connection: KubeConnection,
  path: string,
  { uid, revision }: Pick<CustomObject, 'uid' | 'revision'>,
  finalizers: readonly string[],
  manager: string,
): Promise<ObjectOutcome> =>
  outcomeOf(
    connection.ask({
      method: 'PATCH',
      path: `${path}?fieldManager=${manager}`,
      type: MERGE,
      body: { metadata: { uid, resourceVersion: revision, finalizers } },
    }),
  );

/** Writes the status by server-side apply: what this manager said before and does not say now goes. */
export const applyStatus = (
  connection: KubeConnection,
  path: string,
  body: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly name: string;
    readonly uid: string;
    readonly status: object;
  },
  manager: string,
): Promise<ObjectOutcome> => {
  const { name, uid, ...rest } = body;
  return outcomeOf(
    connection.ask({
      method: 'PATCH',
      path: `${path}/status?fieldManager=${manager}&force=true`,
      type: APPLY,
      body: { ...rest, metadata: { name, uid } },
    }),
  );
};

/** Makes an object, or finds it made. */
export const makeObject = async (
  connection: KubeConnection,
  collection: string,
  body: object,
  manager: string,
): Promise<ObjectOutcome> =>
  outcomeOf(connection.ask({ method: 'POST', path: `${collection}?fieldManager=${manager}`, body }));

/** Deletes the object of that uid and no other; what is gone already is fine. */
export async function deleteObject(connection: KubeConnection, path: string, uid: string): Promise<void> {
  await outcomeOf(
    connection.ask({
      method: 'DELETE',
      path,
      body: { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid } },
    }),
  );
}

async function outcomeOf(asked: Promise<unknown>): Promise<ObjectOutcome> {
  try {
    return customObjectOf((await asked) as RawCustomObject);
  } catch (error) {
    if (isKubeStatus(error, 409)) return 'overtaken';
    if (isKubeStatus(error, 404)) return 'gone';
    throw error;
  }
}
