import type { Logger } from '#libs/process';
import type { KubeConnection } from './connection.js';
import { Follower } from './follower.js';
import type { RawObject } from './objects.js';

export interface TableOptions<T extends RawObject, K> {
  /** Of the collection, as in `/api/v1/pods`. */
  readonly path: string;
  /** More of the query, as in `labelSelector=…`. */
  readonly query?: string;
  /** What to keep of each object; undefined keeps nothing. */
  readonly pick: (object: T) => K | undefined;
  readonly onChange: () => void;
  /** The API server does not have this collection. It is asked again at growing intervals. */
  readonly onMissing?: () => void;
  readonly logger?: Logger | undefined;
}

/** The objects of a collection as they are now, by `namespace/name`. */
export interface ObjectTable<K> {
  /** Undefined until they were read once. */
  readonly objects: ReadonlyMap<string, K> | undefined;
  stop(): void;
}

/** Follows a collection, and keeps what its objects are. */
export function followTable<T extends RawObject, K>(
  connection: KubeConnection,
  { path, query, pick, onChange, onMissing, logger }: TableOptions<T, K>,
): ObjectTable<K> {
  let objects: Map<string, K> | undefined;
  const put = (object: T): void => {
    const kept = pick(object);
    if (kept === undefined) objects?.delete(keyOf(object));
    else objects?.set(keyOf(object), kept);
  };
  const follower = new Follower<T, readonly [string, K | undefined]>({
    connection,
    path,
    ...(query === undefined ? {} : { query }),
    logger,
    ...(onMissing === undefined ? {} : { onMissing }),
    pick: (object) => [keyOf(object), pick(object)],
    onList: (all) => {
      objects = new Map(all.flatMap(([key, kept]) => (kept === undefined ? [] : [[key, kept] as const])));
      onChange();
    },
    onEvent: (event, object) => {
      if (event === 'set') put(object);
      else objects?.delete(keyOf(object));
      onChange();
    },
  }).start();
  return {
    get objects() {
      return objects;
    },
    stop: () => follower.stop(),
  };
}

const keyOf = ({ metadata }: RawObject): string => `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`;
