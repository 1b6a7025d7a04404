import { createColors } from 'picocolors';
import { OpsError, type FleetClient, type FleetEvent, type Inspection } from '#libs/client';
import type { ChangeView, RolloutView, ViewBucket } from '#libs/contracts';
import type { Io } from './output/io.js';
import { runCli } from './run-cli.js';
import { openSession } from './connection/session.js';

export const NOW = new Date('2026-11-21T10:00:00.000Z');
export const ago = (seconds: number): string => new Date(NOW.getTime() - seconds * 1_000).toISOString();
export const PLAIN = createColors(false);

/** What a command wrote, and how it ended. */
export interface CliResult {
  readonly exit: number | undefined;
  readonly out: string;
  readonly err: string;
}

export interface FakeFleet {
  /** Per bucket, the values that a watcher sees one after the other; readers see the last. */
  readonly views?: { readonly [bucket: string]: Readonly<Record<string, readonly object[]>> };
  readonly answers?: Readonly<Record<string, (body: Record<string, unknown>) => unknown>>;
  readonly events?: readonly FleetEvent[];
  readonly inspection?: Inspection;
  /** Services that do not answer. */
  readonly missing?: readonly string[];
  /** Published, and read by no service yet. */
  readonly unread?: readonly string[];
  /** By hash. */
  readonly configs?: Readonly<Record<string, object>>;
  readonly published?: { source: string; body: Record<string, unknown>; id: string | undefined }[];
}

/** Runs a command line against a fleet that only answers, with no terminal. */
export async function cli(
  argv: readonly string[],
  fleet: FakeFleet | undefined = undefined,
  env: NodeJS.ProcessEnv = {},
  stdin = '',
): Promise<CliResult> {
  const written = { out: '', err: '' };
  const io: Io = {
    out: (text) => void (written.out += `${text}\n`),
    say: (text) => void (written.err += `${text}\n`),
    write: (text, stream) => void (written[stream] += text),
    stdin: () => Promise.resolve(stdin),
    colours: PLAIN,
    isTerminal: false,
    isErrTerminal: false,
    columns: 120,
    rows: 40,
    env: { USER: 'ada', HOME: '/nowhere', ...env },
    interrupted: new AbortController().signal,
    now: () => NOW,
  };
  const exit = await runCli(argv, io, (...args) => {
    const session = openSession(...args);
    return fleet === undefined ? session : { ...session, fleet: () => Promise.resolve(fakeFleet(fleet)) };
  });
  return { exit, ...written };
}

function fakeFleet({
  views = {},
  answers = {},
  events = [],
  inspection,
  missing = [],
  unread = [],
  configs = {},
  published = [],
}: FakeFleet): FleetClient {
  const last = (bucket: string): Map<string, object> =>
    new Map(Object.entries(views[bucket] ?? {}).map(([key, values]) => [key, values.at(-1) as object]));
  const client = {
    server: 'nats://fake:4222',
    publishChange: (source: string, body: string, id?: string) => {
      published.push({ source, body: JSON.parse(body) as Record<string, unknown>, id });
      return Promise.resolve({ change: 'c7', duplicate: false });
    },
    request: (subject: string, body: Record<string, unknown>) => {
      const answer = answers[subject];
      if (answer === undefined) return Promise.reject(new OpsError('not-found', `nothing answers ${subject}`));
      return Promise.resolve(answer(body));
    },
    missingServices: () => Promise.resolve(missing),
    isUnread: (change: string) => Promise.resolve(unread.includes(change)),
    get: (bucket: string, key: string) => Promise.resolve(last(bucket).get(key)),
    list: (bucket: string) => Promise.resolve(last(bucket)),
    async *watch(bucket: string, key: string, signal: AbortSignal) {
      for (const value of views[bucket]?.[key] ?? []) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        if (signal.aborted) return;
        yield { key, value };
      }
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    },
    config: (_node: string, hash: string) => Promise.resolve(configs[hash]),
    async *events() {
      yield* events;
    },
    inspect: () => Promise.resolve(inspection),
    close: () => Promise.resolve(),
  };
  return client as unknown as FleetClient & Record<ViewBucket, never>;
}

/** A change that is rolling, unless told otherwise. */
export const changeView = (part: Partial<ChangeView> = {}): ChangeView => ({
  ledger: 9,
  change: 'c7',
  phase: 'rolling',
  source: 'cli',
  message: 'Greet',
  author: 'ada',
  waitsFor: [],
  apply: [],
  delete: [],
  attempt: 1,
  nodes: 6,
  unchanged: 0,
  pools: {},
  reasons: [],
  warnings: [],
  outcome: '',
  reason: '',
  generation: 0,
  retryOf: '',
  acceptedAt: ago(75),
  endedAt: '',
  ...part,
});

/** Its rollout, under way. */
export const rolloutView = (part: Partial<RolloutView> = {}): RolloutView => ({
  ledger: 9,
  change: 'c7',
  phase: 'rolling',
  paused: false,
  nodes: 6,
  applied: 2,
  failed: 0,
  unknown: 0,
  deferred: 0,
  pending: 4,
  maxFailures: 0,
  reason: '',
  pools: {},
  worst: [],
  stalledBy: [],
  startedAt: ago(70),
  endedAt: '',
  supersededBy: '',
  aborted: false,
  ...part,
});
