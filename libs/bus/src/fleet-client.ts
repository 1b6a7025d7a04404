import type { Config, ViewBucket, ViewValues } from '#libs/contracts';
import type { ServiceNote } from './nest/service-notes.js';

/** One message of a stream, as `sluice events` shows it. */
export interface FleetEvent {
  readonly stream: string;
  readonly sequence: number;
  readonly subject: string;
  /** RFC 3339, when the server stored it. */
  readonly time: string;
  /** The parsed JSON body, or the text when it is not JSON. */
  readonly body: unknown;
}

/** A refusal by a service: `code` is stable, `message` is for people. */
export class OpsError extends Error {
  override readonly name = 'OpsError';
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** No server, no service, or no answer in time. The message names the URL and the way out. */
export class NoConnectionError extends Error {
  override readonly name = 'NoConnectionError';
}

/** What tools need of the bus: documented subjects, buckets and `ops.*`, nothing secret. */
export interface FleetClient {
  /** Publishes to config.desired.<source>; the id follows from the acknowledged sequence. */
  publishChange(
    source: string,
    body: string,
    messageId?: string,
  ): Promise<{ readonly change: string; readonly duplicate: boolean }>;
  /** Asks a service. Throws OpsError when it refuses, NoConnectionError when none answers. */
  request<T>(subject: string, body: object): Promise<T>;
  get<B extends ViewBucket>(bucket: B, key: string): Promise<ViewValues[B] | undefined>;
  list<B extends ViewBucket>(bucket: B): Promise<ReadonlyMap<string, ViewValues[B]>>;
  /** Current values first, then every change, until the signal aborts. */
  watch<B extends ViewBucket>(
    bucket: B,
    keys: string,
    signal: AbortSignal,
  ): AsyncIterable<{ readonly key: string; readonly value: ViewValues[B] }>;
  config(node: string, hash: string): Promise<Config | undefined>;
  /** The hashes of every config that is kept for a node. */
  configHashes(node: string): Promise<readonly string[]>;
  /** Messages of LEDGER, REPORTS and CHANGES in order of time; ends when the signal aborts, or at the end if `follow` is false. */
  events(options: {
    readonly since?: Date;
    readonly subject?: string;
    readonly follow: boolean;
    readonly signal: AbortSignal;
  }): AsyncIterable<FleetEvent>;
  /** Facts for `sluice doctor`: server, streams, services that answer, views against the ledger's end, set-aside poison. */
  inspect(): Promise<Inspection>;
  readonly server: string;
  close(): Promise<void>;
}

export interface Inspection {
  readonly server: { readonly url: string; readonly version: string; readonly jetstream: boolean };
  /** What differs from what Sluice asks for: missing or different streams and buckets. */
  readonly topology: readonly string[];
  /** `ageMs`: of the oldest fact, by the server's clock. */
  readonly ledger: {
    readonly first: number;
    readonly last: number;
    readonly messages: number;
    readonly bytes: number;
    readonly ageMs: number;
  };
  /** How many snapshots of each service it can start from; the ledger is trimmed behind the older of two. */
  readonly snapshots: Readonly<Record<string, number>>;
  /** Services that answered `$SRV.PING`, how many copies of each, a complaint of theirs if they stopped appending, and what else a person should know of them. */
  readonly services: readonly {
    readonly name: string;
    readonly copies: number;
    readonly halted: string;
    readonly notes: readonly ServiceNote[];
  }[];
  /** Buckets whose values are above the end of the ledger: a restored backup. */
  readonly viewsAhead: readonly string[];
  readonly poison: readonly {
    readonly stream: string;
    readonly sequence: number;
    readonly subject: string;
    readonly reason: string;
  }[];
}
