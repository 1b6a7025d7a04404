import { createColors } from 'picocolors';
import {
  OpsError,
  type FleetClient,
  type FleetEvent,
  type Inspection,
  type ListedObject,
  type NewObject,
} from '#libs/client';
import type { ChangeView, FoundPath, NodeView, PathQuery, RolloutView, ViewBucket } from '#libs/contracts';
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
  readonly objects?: readonly ListedObject[];
  /** Per bucket, the values that a watcher receives one after another. Reads return the last. */
  readonly views?: { readonly [bucket: string]: Readonly<Record<string, readonly object[]>> };
  readonly answers?: Readonly<Record<string, (body: Record<string, unknown>) => unknown>>;
  readonly events?: readonly FleetEvent[];
  readonly inspection?: Inspection;
  /** Services that do not answer. */
  readonly missing?: readonly string[];
  /** Published, and not read by any service yet. */
  readonly unread?: readonly string[];
  /** By hash. */
  readonly configs?: Readonly<Record<string, object>>;
  /** What was uploaded, and how many changes had been published before. */
  readonly uploads?: { object: string; content: string; publishedBefore: number }[];
  /** What nodes find at their paths, if anything. */
  readonly paths?: Readonly<Record<string, readonly FoundPath[] | 'busy' | 'silent'>>;
  /** The nodes that were asked for it. */
  readonly askedNodes?: string[];
  readonly published?: { source: string; body: Record<string, unknown>; id: string | undefined }[];
}

/** Runs a command line without a terminal, against a fake fleet. */
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
  uploads = [],
  objects = [],
  paths = {},
  askedNodes = [],
  published = [],
}: FakeFleet): FleetClient {
  const last = (bucket: string): Map<string, object> =>
    new Map(Object.entries(views[bucket] ?? {}).map(([key, values]) => [key, values.at(-1) as object]));
  const client = {
    server: 'nats://fake:4222',
    publishChange: (source: string, body: string, id?: string) => {
      published.push({ source, body: JSON.parse(body) as Record<string, unknown>, id });
      return Promise.resolve('c7');
    },
    request: (subject: string, body: Record<string, unknown>) => {
      const answer = answers[subject];
      if (answer === undefined) return Promise.reject(new OpsError('not-found', `nothing answers ${subject}`));
      return Promise.resolve(answer(body));
    },
    missingServices: () => Promise.resolve(missing),
    unreadChanges: () => Promise.resolve(unread),
    get: (bucket: string, key: string) => Promise.resolve(last(bucket).get(key)),
    list: (bucket: string) => Promise.resolve(last(bucket)),
    async *watch(bucket: string, key: string, signal: AbortSignal) {
      // A change that was published is reviewed at once.
      const published = bucket === 'changes' && views[bucket] === undefined ? [changeView()] : [];
      for (const value of views[bucket]?.[key] ?? published) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        if (signal.aborted) return;
        yield { key, value };
      }
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    },
    look: (node: string, { paths: asked }: PathQuery) => {
      askedNodes.push(node);
      const here = paths[node] ?? [];
      if (here === 'silent') return Promise.resolve(undefined);
      if (here === 'busy') return Promise.resolve({ found: [], busy: true });
      return Promise.resolve({ found: here.filter(({ path }) => asked.includes(path)), busy: false });
    },
    config: (_node: string, hash: string) => Promise.resolve(configs[hash]),
    upload: async ({ object, chunks }: NewObject) => {
      let content = '';
      for await (const chunk of chunks(4)) content += Buffer.from(chunk).toString();
      uploads.push({ object, content, publishedBefore: published.length });
      return true;
    },
    objects: () => Promise.resolve(objects),
    async *events() {
      yield* events;
    },
    inspect: () => Promise.resolve(inspection),
    close: () => Promise.resolve(),
  };
  return client as unknown as FleetClient & Record<ViewBucket, never>;
}

/** A change whose rollout is running, by default. */
export const changeView = (part: Partial<ChangeView> = {}): ChangeView => ({
  ledger: 9,
  change: 'c7',
  phase: 'rolling',
  source: 'cli',
  message: 'Greet',
  author: 'ada',
  waitsFor: [],
  needs: [],
  needsUntilMs: 0,
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
  paused: '',
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
  maxUnavailable: 0,
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

export const nodeView = (name: string, state: NodeView['state'] = 'ready'): NodeView => ({
  ledger: 1,
  node: name,
  state,
  labels: { role: 'edge', zone: 'a' },
  capabilities: [],
  version: '0.1.0',
  since: ago(3_700),
  because: '',
  unavailable: '',
  uid: '',
  setLabels: {},
});

/** What the view of a pool says about its nodes if all of them are well. */
export const ALL_WELL = {
  silent: 0,
  silentNodes: [],
  unhealthy: 0,
  unhealthyNodes: [],
  targetsUnavailable: 0,
  unavailableTargets: [],
};
