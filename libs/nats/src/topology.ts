import { DiscardPolicy, RetentionPolicy, StorageType, StoreCompression, type StreamConfig } from '@nats-io/jetstream';
import { nanos } from '@nats-io/nats-core';
import {
  CHANGES,
  CONFIGS,
  LEADERS,
  LEDGER,
  LEDGER_SUBJECTS,
  REPORT_FILTERS,
  REPORTS,
  SNAPSHOTS,
  TARGETS,
  VIEW_BUCKETS,
} from '#libs/contracts';
import type { Bus } from './connection.js';
import { isMissingStream, TopologyError } from './errors.js';
import { growingMs, pause } from './signal.js';

/** Input that could not be read, kept for a person to look at. */
export const POISON = 'poison';
/** The names of the streams behind a key-value bucket and an object store. */
export const kvStream = (bucket: string): string => `KV_${bucket}`;
export const kvSubject = (bucket: string, key: string): string => `$KV.${bucket}.${key}`;

export interface TopologyOptions {
  /** Copies of every stream in a cluster. Left as it is when not said; 1 where a stream is made. */
  readonly replicas?: number | undefined;
  /** After so long without a sign of life another copy of a service leads. */
  readonly leaderTtlMs?: number | undefined;
}

/** Ids of facts that are appended one by one are remembered for so long; each costs memory. */
const LEDGER_WINDOW_MS = 5_000;
const DAY_MS = 24 * 3_600_000;
export const DEFAULT_LEADER_TTL_MS = 6_000;
/** A server that is busy making the others' streams may be asked again. */
const TRIES = 5;

type StreamSpec = Partial<StreamConfig> & { readonly name: string };

/** Creates or updates every stream and bucket. Throws TopologyError where the server keeps it different. */
export async function ensureTopology(bus: Bus, options: TopologyOptions = {}): Promise<void> {
  const differences = (await Promise.all(askedStreams(options).map((asked) => ensureStream(bus, asked)))).flat();
  if (differences.length > 0) throw new TopologyError(differences);
}

/** Every stream or bucket that is missing or other than Sluice asks for, in words. */
export async function compareTopology(bus: Bus, options: TopologyOptions = {}): Promise<string[]> {
  const found = await Promise.all(
    askedStreams(options).map(async (asked) => {
      const config = await configOf(bus, asked.name);
      return config === undefined ? [`${asked.name} is missing`] : differencesOf(asked, config);
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
      duplicate_window: nanos(DAY_MS),
      deny_purge: true,
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
    ...VIEW_BUCKETS.map((bucket) =>
      bucketStream(base, bucket, bucket === 'leases' || bucket === 'status' ? republished(bucket) : {}),
    ),
    // What nothing names any more is written once more with a time to live.
    bucketStream(base, CONFIGS, { allow_msg_ttl: true }),
    bucketStream(base, TARGETS, { allow_msg_ttl: true }),
    bucketStream(base, LEADERS, {
      max_age: nanos(leaderTtlMs),
      duplicate_window: nanos(Math.min(leaderTtlMs, 120_000)),
    }),
    bucketStream(base, POISON, { max_age: nanos(7 * DAY_MS) }),
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

async function ensureStream(bus: Bus, asked: StreamSpec): Promise<readonly string[]> {
  for (let tries = 1; ; tries += 1) {
    try {
      const found = await configOf(bus, asked.name);
      if (found === undefined) return differencesOf(asked, (await bus.jsm.streams.add({ ...asked })).config);
      if (differencesOf(asked, found).length === 0) return [];
      return differencesOf(asked, (await bus.jsm.streams.update(asked.name, { ...asked })).config);
    } catch (error) {
      const found = await configOf(bus, asked.name).catch(() => undefined);
      if (found !== undefined) {
        const differences = differencesOf(asked, found);
        if (differences.length === 0) return [];
        if (tries >= TRIES) return differences.map((difference) => `${difference} (${(error as Error).message})`);
      } else if (tries >= TRIES) throw error;
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

/** A server that does not know an option drops it silently: so every asked one is compared. */
function differencesOf(asked: StreamSpec, found: StreamConfig): readonly string[] {
  return Object.entries(asked).flatMap(([option, value]) => {
    const have = found[option as keyof StreamConfig];
    return isSame(value, have)
      ? []
      : [`${asked.name}: ${option} is ${JSON.stringify(have)}, but should be ${JSON.stringify(value)}`];
  });
}

function isSame(asked: unknown, found: unknown): boolean {
  if (Array.isArray(asked) && Array.isArray(found))
    return JSON.stringify([...asked].sort()) === JSON.stringify([...found].sort());
  if (asked !== null && typeof asked === 'object') {
    return Object.entries(asked).every(([key, value]) =>
      isSame(value, (found as Readonly<Record<string, unknown>> | undefined)?.[key]),
    );
  }
  return asked === found || (asked === false && found === undefined);
}
