import { errors } from '@nats-io/nats-core';
import { nameOfCredentials } from './authenticator.js';
import { needsTls, type ConnectionOptions } from './connection-options.js';

/** Why a connection to one server failed. */
export interface DialFailure {
  /** host:port, as it was configured or announced. */
  readonly server: string;
  /** The same with the IP address, because a host may have several. */
  readonly address: string;
  readonly error: Error;
}

/** The server checks client certificates, and got none, or closed the connection over the one that it got. */
export class ClientCertificateError extends Error {
  override readonly name = 'ClientCertificateError';
}

const NOT_TRUSTED = [
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'INVALID_CA',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
];

/**
 * What is wrong with credentials, certificates or TLS, for people; undefined if waiting may help, for example because
 * no server answers. Contains no secret.
 */
export function accessProblem({ server, error }: DialFailure, options: ConnectionOptions): string | undefined {
  const { code = '', reason } = error as NodeJS.ErrnoException & { readonly reason?: string };
  const { tlsCa, tlsCert, tlsFirst } = options;
  if (error instanceof errors.AuthorizationError || error instanceof errors.UserAuthenticationExpiredError) {
    const name = nameOfCredentials(options);
    if (name !== undefined) return `the server ${server} refused the credentials (${name}): ${error.message}`;
    return tlsCert === undefined
      ? `the server ${server} refused the connection without credentials: set --creds, --nkey, --user or --token, or their variables, or use a nats context`
      : `the server ${server} refused the client certificate ${tlsCert}: no user belongs to it`;
  }
  if (NOT_TRUSTED.includes(code))
    return tlsCa === undefined
      ? `the certificate of the server ${server} is not signed by a CA that this machine trusts: set its CA with --tls-ca, SLUICE_NATS_CA or ca of the nats context`
      : `the certificate of the server ${server} is not signed by the CA in ${tlsCa}`;
  if (code === 'CERT_HAS_EXPIRED') return `the certificate of the server ${server}, or its CA, has expired`;
  if (code === 'CERT_NOT_YET_VALID')
    return `the certificate of the server ${server} is not valid yet: check the clocks`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `the certificate of the server ${server} is for other names: ${reason ?? error.message}`;
  if (error.message.startsWith("server does not support 'tls'") && needsTls(options))
    return `the server ${server} offers no TLS, and Sluice never falls back to an unencrypted connection: configure TLS in the server, or use nats:// without certificates`;
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' && tlsFirst === true)
    return `the server ${server} does not start with the TLS handshake: set handshake_first in its configuration, or do not use --tls-first`;
  const alert = alertIn(code);
  const isOverCertificate = error instanceof ClientCertificateError || /certificate|unknown ca/.test(alert ?? '');
  if (isOverCertificate)
    return tlsCert === undefined
      ? `the server ${server} requires a client certificate: set --tls-cert and --tls-key, or their variables, or cert and key of the nats context`
      : `the server ${server} refused the client certificate ${tlsCert}: ${alert ?? error.message}`;
  return alert === undefined ? undefined : `the TLS handshake with the server ${server} failed: ${alert}`;
}

/** Why a connection failed that may work later. */
export function plainReason({ server, error }: DialFailure, { tlsFirst }: ConnectionOptions): string {
  const { message } = error;
  const isSilent = /undefined error|timeout/.test(message);
  return isSilent && tlsFirst !== true
    ? `${server}: no answer; if handshake_first is set in the configuration of the server, use --tls-first`
    : `${server}: ${message}`;
}

/** OpenSSL's name for the server's alert: `unknown ca`. */
const alertIn = (code: string): string | undefined => code.split('ALERT_')[1]?.replaceAll('_', ' ').toLowerCase();
