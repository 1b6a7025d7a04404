/** How a client authenticates. Files are read at each connection, so they can be replaced at any time. */
export interface Credentials {
  /** Path of a credentials file. */
  readonly creds?: string | undefined;
  /** Path of a file with an nkey seed. */
  readonly nkey?: string | undefined;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  readonly passwordFile?: string | undefined;
  readonly token?: string | undefined;
  readonly tokenFile?: string | undefined;
  readonly userJwt?: string | undefined;
  /** The nkey seed that belongs to the JWT; a bearer JWT needs none. */
  readonly userSeed?: string | undefined;
}

/** Paths of PEM files, and when the TLS handshake takes place. Any of them requires TLS. */
export interface TlsSettings {
  readonly tlsCa?: string | undefined;
  readonly tlsCert?: string | undefined;
  readonly tlsKey?: string | undefined;
  readonly tlsFirst?: boolean | undefined;
}

/** Where to connect, and with which credentials. */
export interface ConnectionOptions extends Credentials, TlsSettings {
  /** URLs without user information. One with `tls://` requires TLS of all servers, as they belong to one cluster. */
  readonly servers: string | readonly string[];
  /** The prefix of reply subjects, because an account may restrict a client to its own. */
  readonly inboxPrefix?: string | undefined;
}

/** Whether a connection without TLS would be an error. */
export const needsTls = ({ servers, tlsCa, tlsCert, tlsFirst }: ConnectionOptions): boolean =>
  [servers].flat().some((server) => server.startsWith('tls://')) ||
  tlsCa !== undefined ||
  tlsCert !== undefined ||
  tlsFirst === true;
