import { isDeepStrictEqual } from 'node:util';
import type { TargetModule } from '#libs/nats';
import { RefusedError, UnreachableError } from '../ports.js';
import type { FunctionAnswer, FunctionClient } from './function-client.js';

/** What a replica says about itself, or why that cannot be read. */
export interface FunctionStatusReport {
  readonly modules: readonly TargetModule[];
  readonly failure: string;
}

export interface StatusOptions {
  readonly client: Pick<FunctionClient, 'call'>;
  readonly report: (status: FunctionStatusReport) => Promise<void>;
  /** In milliseconds. */
  readonly clock: () => number;
}

/** What every replica says about its modules. */
export const STATUS = 'sdewan/v1/status';

/** Connections come and go all the time: this module is shown as it was when another one changed. */
const RESTLESS = 'conntrack';
/** What has not changed is reported again, so that a report that is older is known to be outdated. */
const AGAIN_MS = 6 * 3_600_000;
/** Larger than any module of a function that works; a value of a bucket must fit into a message. */
const MOST_BYTES = 256 * 1024;
/** What people see of a module that fails. */
const MOST_WORDS = 300;

/** Reads what a replica says about itself, and reports it when it has changed. */
export class FunctionStatus {
  private last: FunctionStatusReport | undefined;
  private lastMs = -Infinity;
  private reading: Promise<void> | undefined;

  constructor(private readonly options: StatusOptions) {}

  /** Reads it once. Never rejects: nothing depends on it. */
  look(): Promise<void> {
    this.reading ??= this.read()
      .catch(() => undefined)
      .finally(() => (this.reading = undefined));
    return this.reading;
  }

  private async read(): Promise<void> {
    const found = await this.ask();
    if (found === undefined) return;
    const nowMs = this.options.clock();
    const isKnown = this.last !== undefined && isDeepStrictEqual(atRest(this.last), atRest(found));
    if (isKnown && nowMs - this.lastMs < AGAIN_MS) return;
    await this.options.report(found);
    this.last = found;
    this.lastMs = nowMs;
  }

  /** Undefined if the replica does not answer: that is known of its node. */
  private async ask(): Promise<FunctionStatusReport | undefined> {
    try {
      const { status, body, message } = await this.options.client.call('GET', STATUS);
      if (status !== 200 || !Array.isArray(body)) return { modules: [], failure: refusal(STATUS, { status, message }) };
      return { modules: modulesIn(body as readonly unknown[]), failure: '' };
    } catch (error) {
      if (error instanceof UnreachableError) return undefined;
      if (error instanceof RefusedError) return { modules: [], failure: error.message };
      throw error;
    }
  }
}

const atRest = ({ modules, failure }: FunctionStatusReport): unknown => [
  modules.filter(({ name }) => name !== RESTLESS),
  failure,
];

/** As many of them as fit; of the others, only the names. */
function modulesIn(all: readonly unknown[]): readonly TargetModule[] {
  let leftBytes = MOST_BYTES;
  return all.flatMap((value): TargetModule[] => {
    const { name, status } = (value ?? {}) as Partial<TargetModule>;
    if (typeof name !== 'string') return [];
    const bytes = JSON.stringify([name, status ?? null]).length;
    if (bytes > leftBytes) return name.length < leftBytes ? [{ name }] : [];
    leftBytes -= bytes;
    return [{ name, ...(status === undefined ? {} : { status }) }];
  });
}

/** Why a module of a function does not work, as it says itself; undefined if it works. */
export async function whyModuleFails(
  client: Pick<FunctionClient, 'call'>,
  module: string,
  timeoutMs: number,
): Promise<string | undefined> {
  const path = `${STATUS}/${module}`;
  const { status, body, message } = await client.call('GET', path, undefined, timeoutMs);
  if (status !== 200) return refusal(path, { status, message });
  const found = ((body ?? {}) as { readonly status?: unknown }).status;
  const { InitConnection: connection, details } = (found ?? {}) as Readonly<Record<string, unknown>>;
  if (connection === 'success') return undefined;
  if (connection !== 'fail') return `GET ${path} says neither success nor fail`;
  const words = JSON.stringify(details ?? []).slice(0, MOST_WORDS);
  return `not all connections of ${module} are up: ${words}`;
}

const refusal = (path: string, { status, message }: Pick<FunctionAnswer, 'status' | 'message'>): string =>
  `GET ${path} is answered ${status}${message === '' ? '' : ` (${message})`}`;
