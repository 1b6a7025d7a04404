import {
  DiscardPolicy,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  StoreCompression,
  type StreamConfig,
} from '@nats-io/jetstream';
import { nanos } from '@nats-io/nats-core';
import {
  CHANGES,
  CONFIGS,
  HUBS,
  BOUND_VALUES_BUCKET,
  JOURNALS,
  TARGET_STATUS,
  LEADERS,
  LEDGER,
  LEDGER_SUBJECTS,
  OBJECT_SUBJECTS,
  OBJECTS,
  REPORT_FILTERS,
  REPORTS,
  SNAPSHOTS,
  TARGETS,
  VIEW_BUCKETS,
} from '#libs/contracts';
import type { Bus } from './connection.js';
import { isMissingStream, NoStorageError, TopologyError } from './errors.js';
import { growingMs, pause } from './signal.js';

/** Inputs that could not be read, stored for a person to inspect. */
export const POISON = 'poison';
/** The names of the streams behind a key-value bucket and an object store. */
export const kvStream = (bucket: string): string => `KV_${bucket}`;
export const kvSubject = (bucket: string, key: string): string => `$KV.${bucket}.${key}`;

export interface TopologyOptions {
  /** The copies of every stream in a cluster. If not set, existing streams keep theirs, and new ones get 1. */
  readonly replicas?: number | undefined;
  /** Without a sign of life for this long, another copy of a service leads. */
  readonly leaderTtlMs?: number | undefined;
}

/** How long the ids of facts that are appended one by one are remembered. Each costs memory. */
const LEDGER_WINDOW_MS = 5_000;
/**
 * The server compares message ids over the whole stream, so one source could swallow the change of another. The merger
 * compares ids per source instead. A server accepts no shorter window.
 */
const CHANGES_WINDOW_MS = 100;
/** Room for what the merger has not read yet. What it has read is deleted long before that (`trimChanges`). */
const MAX_CHANGES_BYTES = 256 * 2 ** 20;
const DAY_MS = 24 * 3_600_000;
export const DEFAULT_LEADER_TTL_MS = 6_000;
/**
 * What OBJECTS gets when it is created, and operators may change later. Without a limit, uploads could fill the disk,
 * and the ledger could not be written any more. The server reserves this, so where it has less, OBJECTS gets less.
 */
const FIRST_OBJECT_BYTES = 2 ** 30;
const LEAST_OBJECT_BYTES = 16 * 2 ** 20;
/** A server that is busy creating streams may be asked again. */
const TRIES = 5;

type StreamSpec = Partial<StreamConfig> & { readonly name: string };

/**
 * Creates or updates every stream and bucket. Throws TopologyError if the server keeps a difference, and NoStorageError
 * if it has no room for a stream.
 */
export async function ensureTopology(bus: Bus, options: TopologyOptions = {}): Promise<void> {
  const all = askedStreams(options);
  const ensure = async (streams: readonly StreamSpec[]): Promise<readonly string[]> =>
    (await Promise.all(streams.map((spec) => ensureStream(bus, spec)))).flat();
  // OBJECTS comes last, so that it takes no storage that the others reserve.
  const differences = [
    ...(await ensure(all.filter(({ name }) => name !== OBJECTS))),
    ...(await ensure(all.filter(({ name }) => name === OBJECTS))),
  ];
  if (differences.length > 0) throw new TopologyError(differences);
}

/** Every stream or bucket that is missing or differs from what Sluice needs, for people. */
export async function compareTopology(bus: Bus, options: TopologyOptions = {}): Promise<string[]> {
  const found = await Promise.all(
    askedStreams(options).map(async (spec) => {
      const config = await configOf(bus, spec.name);
      return config === undefined ? [`${spec.name} is missing`] : differencesOf(spec, config);
    }),
  );
  return found.flat();
}

function askedStreams(options: TopologyOptions): readonly StreamSpec[] {
  const leaderTtlMs = options.leaderTtlMs ?? DEFAULT_LEADER_TTL_MS;
  const base = {
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    allow_direct: true,
    ...(options.replicas === undefined ? {} : { num_replicas: options.replicas }),
  };
  const stream = {
    ...base,
    compression: StoreCompression.S2,
    deny_delete: true,
    discard: DiscardPolicy.Old,
    max_msgs: -1,
    max_bytes: -1,
  };
  return [
    {
      ...stream,
      name: CHANGES,
      subjects: ['config.desired.>'],
      max_age: 0,
      duplicate_window: nanos(CHANGES_WINDOW_MS),
      deny_purge: false,
      // A full stream refuses what is published, so nothing that nobody has read is lost.
      discard: DiscardPolicy.New,
      max_bytes: MAX_CHANGES_BYTES,
    },
    { ...stream, name: REPORTS, subjects: [...REPORT_FILTERS.all], max_age: nanos(7 * DAY_MS), deny_purge: true },
    {
      ...stream,
      name: LEDGER,
      subjects: [...LEDGER_SUBJECTS],
      max_age: 0,
      deny_purge: false,
      allow_atomic: true,
      duplicate_window: nanos(LEDGER_WINDOW_MS),
    },
    // The mark of a deleted key has a time to live.
    ...VIEW_BUCKETS.map((bucket) =>
      bucketStream(base, bucket, {
        allow_msg_ttl: true,
        ...(bucket === 'leases' || bucket === 'status' ? republished(bucket) : {}),
      }),
    ),
    // An unreferenced value is rewritten with a time to live.
    bucketStream(base, CONFIGS, { allow_msg_ttl: true }),
    bucketStream(base, TARGETS, { allow_msg_ttl: true }),
    bucketStream(base, JOURNALS),
    bucketStream(base, HUBS),
    bucketStream(base, BOUND_VALUES_BUCKET),
    // A value that nobody writes again is about a target that nobody serves any more.
    bucketStream(base, TARGET_STATUS, { max_age: nanos(DAY_MS) }),
    bucketStream(base, LEADERS, {
      max_age: nanos(leaderTtlMs),
      duplicate_window: nanos(Math.min(leaderTtlMs, 120_000)),
    }),
    bucketStream(base, POISON, { max_age: nanos(7 * DAY_MS) }),
    {
      ...base,
      name: OBJECTS,
      subjects: [OBJECT_SUBJECTS],
      max_msgs_per_subject: 1,
      discard: DiscardPolicy.New,
    },
    {
      ...base,
      name: `OBJ_${SNAPSHOTS}`,
      subjects: [`$O.${SNAPSHOTS}.C.>`, `$O.${SNAPSHOTS}.M.>`],
      discard: DiscardPolicy.New,
      allow_rollup_hdrs: true,
    },
  ];
}

const bucketStream = (base: Partial<StreamConfig>, bucket: string, more: Partial<StreamConfig> = {}): StreamSpec => ({
  ...base,
  name: kvStream(bucket),
  subjects: [kvSubject(bucket, '>')],
  max_msgs_per_subject: 1,
  discard: DiscardPolicy.New,
  deny_delete: true,
  allow_rollup_hdrs: true,
  ...more,
});

/** So that nodes need one core subscription each and no consumer. */
const republished = (bucket: 'leases' | 'status'): Partial<StreamConfig> => ({
  republish: { src: kvSubject(bucket, '>'), dest: `push.${bucket}.>` },
});

/** The config of a new stream. Throws NoStorageError if the server has no room for it. */
async function created(bus: Bus, spec: StreamSpec): Promise<StreamConfig> {
  const isObjects = spec.name === OBJECTS;
  for (let bytes = isObjects ? FIRST_OBJECT_BYTES : (spec.max_bytes ?? -1); ; bytes /= 2) {
    try {
      return (await bus.jsm.streams.add({ ...spec, max_bytes: bytes })).config;
    } catch (error) {
      if (bytes < 0 || !(error instanceof JetStreamApiError) || !NO_STORAGE.test(error.message)) throw error;
      if (!isObjects || bytes <= LEAST_OBJECT_BYTES) throw new NoStorageError(spec.name, bytes, { cause: error });
    }
  }
}

/** Of a server, an account, and a cluster in which no server has room. */
const NO_STORAGE = /insufficient (storage|resources)|resource limits exceeded|resources exceeded/i;

async function ensureStream(bus: Bus, spec: StreamSpec): Promise<readonly string[]> {
  for (let tries = 1; ; tries += 1) {
    try {
      const config = await configOf(bus, spec.name);
      if (config === undefined) {
        return differencesOf(spec, await created(bus, spec));
      }
      if (differencesOf(spec, config).length === 0) return [];
      return differencesOf(spec, (await bus.jsm.streams.update(spec.name, { ...spec })).config);
    } catch (error) {
      const config = await configOf(bus, spec.name).catch(() => undefined);
      if (config !== undefined) {
        const differences = differencesOf(spec, config);
        if (differences.length === 0) return [];
        if (tries >= TRIES) return differences.map((difference) => `${difference} (${(error as Error).message})`);
      } else if (tries >= TRIES || error instanceof NoStorageError) throw error;
      await pause(growingMs(tries, 100, 2_000));
    }
  }
}

async function configOf(bus: Bus, name: string): Promise<StreamConfig | undefined> {
  try {
    return (await bus.streamInfo(name)).config;
  } catch (error) {
    if (isMissingStream(error)) return undefined;
    throw error;
  }
}

/** A server that does not know an option drops it silently, so every option that was sent is compared. */
function differencesOf(spec: StreamSpec, config: StreamConfig): readonly string[] {
  return Object.entries(spec).flatMap(([option, value]) => {
    const have = config[option as keyof StreamConfig];
    return isSame(value, have)
      ? []
      : [`${spec.name}: ${option} is ${JSON.stringify(have)}, but should be ${JSON.stringify(value)}`];
  });
}

function isSame(spec: unknown, config: unknown): boolean {
  if (Array.isArray(spec) && Array.isArray(config))
    return JSON.stringify([...spec].sort()) === JSON.stringify([...config].sort());
  if (spec !== null && typeof spec === 'object') {
    return Object.entries(spec).every(([key, value]) =>
      isSame(value, (config as Readonly<Record<string, unknown>> | undefined)?.[key]),
    );
  }
  return spec === config || (spec === false && config === undefined);
}
