import type { JsMsg } from '@nats-io/jetstream';
import type { Msg } from '@nats-io/nats-core';
import type { ServiceIdentity } from '@nats-io/services';
import { changeId, CHANGES, changeSequence, LEDGER, OBJECTS, SERVICES } from '#libs/contracts';
import { usable } from '#libs/engine';
import {
  compareTopology,
  isDeletion,
  kvStream,
  listViews,
  newestViews,
  POISON,
  readAll,
  type Bus,
  type JetStreamLack,
  type ServiceNote,
  type PoisonRecord,
} from '#libs/nats/lean';

export interface Inspection {
  readonly server: {
    readonly url: string;
    readonly version: string;
    readonly lacksJetStream: JetStreamLack | undefined;
  };
  /** Differences from what Sluice needs: missing or different streams and buckets. */
  readonly topology: readonly string[];
  /** `ageMs`: the age of the oldest fact, by the server's clock. */
  readonly ledger: {
    readonly first: number;
    readonly last: number;
    readonly messages: number;
    readonly bytes: number;
    readonly ageMs: number;
  };
  /** How full the stream of changes is. */
  readonly changes: { readonly bytes: number; readonly maxBytes: number };
  /** The changes that were published, and that no service has read yet. */
  readonly unread: readonly string[];
  /** How full the object store is. */
  readonly objects: { readonly bytes: number; readonly maxBytes: number };
  /** How many snapshots of each service it can start from; the ledger is trimmed behind the older of two. */
  readonly snapshots: Readonly<Record<string, number>>;
  /** The services that answered `$SRV.PING`, and why they stopped appending, if they did. */
  readonly services: readonly {
    readonly name: string;
    readonly copies: number;
    readonly halted: string;
    readonly notes: readonly ServiceNote[];
  }[];
  /** Buckets whose values are ahead of the ledger, because it was restored from a backup. */
  readonly viewsAhead: readonly string[];
  readonly poison: readonly Omit<PoisonRecord, 'at'>[];
}

/** How long a service may take to answer. A service on a busy machine may be slow and still be running. */
const PING_MS = 3_000;
/** How long to wait for further copies after every service has answered. */
const PING_STALL_MS = 250;

/** Checks everything that a person would check first. What is missing is part of the result, not an error. */
export async function inspect(bus: Bus, server: string): Promise<Inspection> {
  const { nc } = bus;
  const lacksJetStream = await bus.whyNoJetStream();
  // Without JetStream there are no streams to compare, and that is the problem to report.
  const topology = lacksJetStream === undefined ? await compareTopology(bus) : [];
  const ledger = await ledgerOf(bus);
  const views = await newestViews(bus).catch(() => new Map<string, number>());
  return {
    server: { url: server, version: nc.info?.version ?? '', lacksJetStream },
    topology,
    ledger,
    changes: await fullness(bus, CHANGES),
    unread: await unreadChanges(bus).catch(() => []),
    objects: await fullness(bus, OBJECTS),
    snapshots: await snapshotsOf(bus, ledger.last).catch(() => ({})),
    services: await pingServices(bus),
    viewsAhead: [...views].filter(([, sequence]) => sequence > ledger.last).map(([bucket]) => bucket),
    poison: await readPoison(bus).catch(() => []),
  };
}

async function ledgerOf(bus: Bus): Promise<Inspection['ledger']> {
  try {
    const { state, ts } = await bus.streamInfo(LEDGER);
    const ageMs = state.messages === 0 ? 0 : Date.parse(ts ?? state.first_ts) - Date.parse(state.first_ts);
    return { first: state.first_seq, last: state.last_seq, messages: state.messages, bytes: state.bytes, ageMs };
  } catch {
    return { first: 0, last: 0, messages: 0, bytes: 0, ageMs: 0 };
  }
}

async function fullness(bus: Bus, stream: string): Promise<Inspection['changes']> {
  try {
    const { state, config } = await bus.streamInfo(stream);
    return { bytes: state.bytes, maxBytes: config.max_bytes };
  } catch {
    return { bytes: 0, maxBytes: -1 };
  }
}

async function snapshotsOf(bus: Bus, last: number): Promise<Inspection['snapshots']> {
  // Only `sluice doctor` needs them.
  const { Snapshots } = await import('#libs/nats');
  const snapshots = new Snapshots(bus);
  const counts = await Promise.all(
    SERVICES.map(
      async (service) =>
        [service, usable((await snapshots.list(service)).filter(({ sequence }) => sequence <= last)).length] as const,
    ),
  );
  return Object.fromEntries(counts);
}

/** The changes that were published, and that no service has read yet, oldest first. The merger reads them in order. */
export async function unreadChanges(bus: Bus): Promise<readonly string[]> {
  const { state } = await bus.streamInfo(CHANGES);
  let read = Math.max(0, state.first_seq - 1);
  for (const change of (await listViews(bus, 'changes')).keys()) read = Math.max(read, changeSequence(change));
  return Array.from({ length: Math.max(0, state.last_seq - read) }, (_, i) => changeId(read + 1 + i));
}

/**
 * The services that do not answer. Resolves as soon as all of them have answered. Throws if the connection is closed
 * before that, because then nobody knows.
 */
export async function missingServices(bus: Bus): Promise<readonly string[]> {
  const answered = new Set((await identities(bus, { waitMs: PING_MS, furtherMs: 0 })).map(({ name }) => name));
  if (bus.nc.isClosed()) throw new Error('the connection was closed while services were answering');
  return SERVICES.filter((name) => !answered.has(name));
}

/** Every copy answers, not only the leader. */
export async function pingServices(bus: Bus): Promise<Inspection['services']> {
  const found = new Map<string, { copies: number; halted: string; notes: readonly ServiceNote[] }>();
  for (const { name, metadata } of await identities(bus, { waitMs: PING_MS, furtherMs: PING_STALL_MS })) {
    const row = found.get(name) ?? { copies: 0, halted: '', notes: [] };
    found.set(name, {
      copies: row.copies + 1,
      halted: row.halted || (metadata?.['halted'] ?? ''),
      notes: merged(row.notes, metadata?.['notes']),
    });
  }
  return [...found].map(([name, row]) => ({ name, ...row })).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Ends `furtherMs` after every service has answered, at once if there is no listener, and otherwise after `waitMs`. A
 * pause between two answers does not end it, because a slow service would then look as if it were not running.
 */
function identities(
  bus: Bus,
  { waitMs, furtherMs }: { readonly waitMs: number; readonly furtherMs: number },
): Promise<readonly ServiceIdentity[]> {
  return new Promise((resolve) => {
    const answers: ServiceIdentity[] = [];
    const missing = new Set<string>(SERVICES);
    const { nc } = bus;
    const inbox = bus.inbox();
    const finish = (): void => {
      clearTimeout(timer);
      if (!nc.isClosed()) subscription.unsubscribe();
      resolve(answers);
    };
    let timer = setTimeout(finish, waitMs);
    const subscription = nc.subscribe(inbox, {
      callback: (error, message) => {
        if (error !== null || message.headers?.code === 503) return finish();
        const identity = identityOf(message);
        if (identity === undefined) return;
        answers.push(identity);
        missing.delete(identity.name);
        if (missing.size > 0) return;
        clearTimeout(timer);
        timer = setTimeout(finish, furtherMs);
      },
    });
    void nc.closed().then(finish);
    nc.publish('$SRV.PING', '', { reply: inbox });
  });
}

/** Undefined if it is not an answer to a ping. */
function identityOf(message: Msg): ServiceIdentity | undefined {
  try {
    const identity = message.json<Partial<ServiceIdentity> | null>();
    return typeof identity?.name === 'string' ? (identity as ServiceIdentity) : undefined;
  } catch {
    return undefined;
  }
}

function merged(notes: readonly ServiceNote[], text = '[]'): readonly ServiceNote[] {
  return [...notes, ...notesIn(text).filter(({ words }) => !notes.some((note) => note.words === words))];
}

/** Empty if the service published something else under this name. */
function notesIn(text: string): readonly ServiceNote[] {
  try {
    const all = JSON.parse(text) as readonly Partial<ServiceNote>[];
    return all.flatMap(({ state, words, todo = '' }) =>
      (state === 'bad' || state === 'note') && typeof words === 'string' ? [{ state, words, todo: String(todo) }] : [],
    );
  } catch {
    return [];
  }
}

/** Undefined if something other than Sluice wrote the value. */
function setAsideOf(message: JsMsg): PoisonRecord | undefined {
  try {
    const { stream, sequence, subject, reason, at = '' } = message.json<Partial<PoisonRecord>>();
    const isOne =
      typeof stream === 'string' &&
      typeof sequence === 'number' &&
      typeof subject === 'string' &&
      typeof reason === 'string';
    return isOne ? { stream, sequence, subject, reason, at } : undefined;
  } catch {
    return undefined;
  }
}

async function readPoison(bus: Bus): Promise<PoisonRecord[]> {
  const found: PoisonRecord[] = [];
  await readAll(bus, { stream: kvStream(POISON), lastPerSubject: true }, (message) => {
    const entry = isDeletion(message) ? undefined : setAsideOf(message);
    if (entry !== undefined) found.push(entry);
  });
  return found;
}
