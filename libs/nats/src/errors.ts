import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream';
import { errors } from '@nats-io/nats-core';

/** The nats-server is older than what the ledger needs. */
export class ServerTooOldError extends Error {
  override readonly name = 'ServerTooOldError';
}

/** A server answers, but credentials, certificates or TLS settings are wrong: waiting does not help. */
export class AccessError extends Error {
  override readonly name = 'AccessError';
}

/** What has no JetStream: the server, or the account of the user. A leaf node without its hub looks like a server. */
export type JetStreamLack = 'server' | 'account';

/** There is no JetStream, which is required here. The message says how to get it. */
export class NoJetStreamError extends Error {
  override readonly name = 'NoJetStreamError';
  constructor(server: string, lacking: JetStreamLack, options?: ErrorOptions) {
    super(
      lacking === 'server'
        ? `the nats-server at ${server} has no JetStream: start it with -js, or with jetstream {} in its config; if it is a leaf node, check its link to the hub`
        : `the nats-server at ${server} has no JetStream for the account of this user: ` +
            "set jetstream: enabled in that account in the server's config, or connect as a user of another account",
      options,
    );
  }
}

/** A stream or bucket differs from what Sluice needs, and could not be changed. */
export class TopologyError extends Error {
  override readonly name = 'TopologyError';
  constructor(readonly differences: readonly string[]) {
    super(`the server's streams and buckets differ from what Sluice asks for: ${differences.join('; ')}`);
  }
}

/** A stream or bucket does not exist, and nothing works that needs it. */
export class MissingStreamError extends Error {
  override readonly name = 'MissingStreamError';
  readonly code = JetStreamApiCodes.StreamNotFound;
  constructor(
    readonly stream: string,
    options: ErrorOptions,
  ) {
    super(`NATS has no stream ${stream}: restart the services, which create it when they start`, options);
  }
}

/** The server's JetStream storage has no room for a stream that Sluice needs. */
export class NoStorageError extends Error {
  override readonly name = 'NoStorageError';
  constructor(stream: string, bytes: number, options: ErrorOptions) {
    super(
      `NATS has too little JetStream storage for the stream ${stream}, which reserves ${bytes / 2 ** 20} MiB: ` +
        'raise max_file_store in its config, or give its store_dir a larger disk',
      options,
    );
  }
}

/** Not now, but later or elsewhere: this copy does not lead. The request may be repeated. */
export class UnavailableError extends Error {
  override readonly name: string = 'UnavailableError';
}

/** This copy must not decide any more until a person acts. The message says why. */
export class HaltedError extends UnavailableError {
  override readonly name = 'HaltedError';
}

/** The stream of changes has no room: the server refuses a change rather than delete one that nobody has read. */
export class ChangesFullError extends UnavailableError {
  override readonly name = 'ChangesFullError';
  constructor(options: ErrorOptions) {
    super(
      'the stream CHANGES is full: the merger has not read what was published, or max_bytes of the stream is too small. See sluice doctor, and publish again',
      options,
    );
  }
}

/** A request that does not match the schema of its subject, with every reason. */
export class BadRequestError extends Error {
  override readonly name = 'BadRequestError';
}

/**
 * The connection was lost before an answer arrived, or does not exist. The request may or may not have been carried
 * out.
 */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';
}

/**
 * The server or the account has no JetStream, or the stream of a publisher does not exist. `Bus.whyNoJetStream` tells
 * them apart.
 */
export const isWithoutJetStream = (error: unknown): boolean => (error as Error).name === 'JetStreamNotEnabled';

/** The subject of a request has no subscriber. */
export function isNoResponders(error: unknown): boolean {
  return error instanceof errors.NoRespondersError || (error instanceof errors.RequestError && error.isNoResponders());
}

/** A stream of a cluster has no leader with a majority: the server that answers may have missed something. */
export class NoLeaderError extends Error {
  override readonly name = 'NoLeaderError';
}

/** A server answered for a cluster that has no majority, or for a stream that has no leader yet. */
export const isWithoutLeader = (error: unknown): boolean =>
  error instanceof NoLeaderError || (error instanceof JetStreamApiError && error.status === 503);

/** The stream or bucket does not exist. On a new server, the services create them when they start. */
export const isMissingStream = (error: unknown): boolean =>
  (error as Partial<JetStreamApiError>).code === MISSING_STREAM;
export const MISSING_STREAM = JetStreamApiCodes.StreamNotFound;

/** The account of the user has no JetStream. Anyone else would get another answer from the same server. */
export const isAccountWithoutJetStream = ({ cause }: Error): boolean =>
  cause instanceof JetStreamApiError && cause.code === JetStreamApiCodes.JetStreamNotEnabledForAccount;

/** The stream has as many bytes as it may, and refuses new messages. The server's code is that of any failing store. */
export const isStreamFull = (error: unknown): boolean =>
  error instanceof JetStreamApiError && error.code === STORE_FAILED && error.message.includes('maximum bytes exceeded');
const STORE_FAILED = 10077;

/** Whether the server may or may not have carried out a request: it was away, or did not answer in time. */
export function isConnectionTrouble(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof AccessError || error instanceof NoJetStreamError) return false;
  if (error.cause !== undefined && isConnectionTrouble(error.cause)) return true;
  if (error instanceof JetStreamApiError) return isWithoutLeader(error);
  return (
    error instanceof ConnectionLostError ||
    error instanceof NoLeaderError ||
    error instanceof errors.TimeoutError ||
    error instanceof errors.RequestError ||
    error instanceof errors.NoRespondersError ||
    error instanceof errors.ConnectionError ||
    error instanceof errors.ClosedConnectionError ||
    error instanceof errors.DrainingConnectionError ||
    /disconnect|timeout|no responders/i.test(error.message)
  );
}

/** The server's codes for wrong last message, wrong last sequence, incomplete batch: nothing was appended. */
export const REFUSALS: ReadonlySet<number> = new Set([10070, 10071, 10164, 10176]);
