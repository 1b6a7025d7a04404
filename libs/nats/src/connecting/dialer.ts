import { setTimeout as sleep } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/nats-core';
import { NatsConnectionImpl } from '@nats-io/nats-core/internal';
import type { Logger } from '#libs/process';
import { AccessError } from '../errors.js';
import { growingMs } from '../signal.js';
import { accessProblem, plainReason, type DialFailure } from './access-problem.js';
import { authenticators } from './authenticator.js';
import { needsTls, type ConnectionOptions } from './connection-options.js';
import { useCheckedTransport, type CheckedOptions } from './checked-transport.js';

export interface DialOptions extends ConnectionOptions {
  /** Shown in the server's list of connections. */
  readonly name: string;
  /** Whether to wait at the start for a server that is away; otherwise that is an error. */
  readonly waitOnFirstConnect: boolean;
  /** For one server. */
  readonly timeoutMs: number;
  readonly logger: Logger;
}

/** A connection that is restored whenever it is lost. */
export interface LastingConnection {
  readonly nc: NatsConnection;
  /** Makes the next warning about missing servers come as late as the first. */
  reset(): void;
}

const RECONNECT_LEAST_MS = 100;
const RECONNECT_MOST_MS = 5_000;

/**
 * Connects to the first server that can be used. Throws AccessError if a server answers, but credentials, certificates
 * or TLS settings are wrong. Without `waitOnFirstConnect`, also throws an error that says why no server can be reached.
 */
export async function dial(options: DialOptions): Promise<LastingConnection> {
  const attempts = new Attempts(options);
  for (;;) {
    try {
      const nc = await connectOnce(options, attempts);
      attempts.reset();
      return { nc, reset: () => attempts.reset() };
    } catch (error) {
      attempts.threw(error as Error);
      const problem = attempts.problem();
      if (problem !== undefined) throw new AccessError(problem, { cause: error });
      if (!options.waitOnFirstConnect) throw new Error(attempts.reason(), { cause: error });
      await sleep(attempts.next());
    }
  }
}

function connectOnce(options: DialOptions, attempts: Attempts): Promise<NatsConnection> {
  const { tlsCa, tlsCert, tlsKey, tlsFirst, logger } = options;
  useCheckedTransport();
  attempts.forget();
  const tls = { caFile: tlsCa, certFile: tlsCert, keyFile: tlsKey, handshakeFirst: tlsFirst };
  const checked: CheckedOptions = {
    servers: [options.servers].flat(),
    name: options.name,
    authenticator: authenticators(options, logger),
    tls: needsTls(options) ? tls : undefined,
    inboxPrefix: options.inboxPrefix,
    timeout: options.timeoutMs,
    maxReconnectAttempts: -1,
    // Credentials may be corrected in their file or on the server, so a client that was once connected never gives up.
    ignoreAuthErrorAbort: true,
    // Before that, each server is tried once, and `dial` waits between the rounds.
    reconnectDelayHandler: () => (attempts.hasConnected ? attempts.next() : RECONNECT_LEAST_MS),
    // Stack traces for requests would double their cost.
    noAsyncTraces: true,
    dialFailed: (failure) => attempts.failed(failure),
  };
  return NatsConnectionImpl.connect(checked);
}

/** Counts attempts, remembers why they failed, and logs it from time to time. */
class Attempts {
  private count = 0;
  /** The first connection was established. */
  hasConnected = false;
  /** The last failure of each address: one for each server of a cluster and each of its few addresses. */
  private readonly failures = new Map<string, DialFailure>();

  constructor(private readonly options: DialOptions) {}

  failed(failure: DialFailure): void {
    this.failures.set(failure.address, failure);
  }

  /** The client's error: usually the last failure of the transport again, or that a host has no address. */
  threw(error: Error): void {
    const isKnown = [...this.failures.values()].some((failure) => failure.error === error);
    const servers = [this.options.servers].flat().join(',');
    if (!isKnown) this.failed({ server: servers, address: servers, error });
  }

  /** What a person must fix, on any of the servers. */
  problem(): string | undefined {
    for (const failure of this.failures.values()) {
      const problem = accessProblem(failure, this.options);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  reason(): string {
    return [...new Set([...this.failures.values()].map((failure) => plainReason(failure, this.options)))].join('; ');
  }

  /** Milliseconds until the next attempt. */
  next(): number {
    const waitMs = growingMs(this.count++, RECONNECT_LEAST_MS, RECONNECT_MOST_MS);
    if (this.count % 10 === 3) {
      const problem = this.problem();
      const fields = { servers: this.options.servers, tries: this.count, reason: problem ?? this.reason() };
      this.options.logger.warn(
        fields,
        `${problem === undefined ? 'no server answers' : 'cannot connect'}; trying again`,
      );
    }
    return waitMs;
  }

  forget(): void {
    this.failures.clear();
  }

  reset(): void {
    this.hasConnected = true;
    this.count = 0;
    this.forget();
  }
}
