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

/** The server has no JetStream, and nothing here can be without. */
export class NoJetStreamError extends Error {
  override readonly name = 'NoJetStreamError';
  constructor(server: string) {
    super(`the nats-server at ${server} has no JetStream: start it with -js, or with jetstream {} in its config`);
  }
}

/** What stands on the server is not what Sluice asks for, and could not be made so. */
export class TopologyError extends Error {
  override readonly name = 'TopologyError';
  constructor(readonly differences: readonly string[]) {
    super(`the server's streams and buckets differ from what Sluice asks for: ${differences.join('; ')}`);
  }
}

/** Not now, but later or elsewhere: this copy does not lead. What was asked may be asked again. */
export class UnavailableError extends Error {
  override readonly name: string = 'UnavailableError';
}

/** This copy may not decide any more until somebody acts; the message says why. */
export class HaltedError extends UnavailableError {
  override readonly name = 'HaltedError';
}

/** A request that is not what its subject promises, with every reason. */
export class BadRequestError extends Error {
  override readonly name = 'BadRequestError';
}

/** The connection was lost before an answer came, or is not there: what was asked may have been done or not. */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';
}

/** Nobody answers for the streams: the server has no JetStream, or for a publisher the stream is not there. */
export const isWithoutJetStream = (error: unknown): boolean => (error as Error).name === 'JetStreamNotEnabled';

/** Nobody listens to the subject of a request. */
export function isNoResponders(error: unknown): boolean {
  return error instanceof errors.NoRespondersError || (error instanceof errors.RequestError && error.isNoResponders());
}

/** A stream of a cluster has no leader with a majority: the server that answers may have missed something. */
export class NoLeaderError extends Error {
  override readonly name = 'NoLeaderError';
}

/** The stream or bucket is not there: on a new server, the services make them when they start. */
export const isMissingStream = (error: unknown): boolean =>
  (error as Partial<JetStreamApiError>).code === JetStreamApiCodes.StreamNotFound;

/** Whether the server may or may not have done what it was asked: it was away, or did not answer in time. */
export function isConnectionTrouble(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof AccessError) return false;
  if (error.cause !== undefined && isConnectionTrouble(error.cause)) return true;
  // What a server says whose cluster has no majority, or no leader yet.
  if (error instanceof JetStreamApiError) return error.status === 503;
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
