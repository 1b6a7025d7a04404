import { SWITCH, text, type Setting } from './setting.js';

/**
 * How every program connects to NATS: the CLI, services and appliers have the same variables and flags. The keys are
 * the names that commander gives to the flags. `orVariable` is the name in the nats CLI. Secrets can be files, so that
 * they need not be on a command line or in an environment.
 */
export const CONNECTION_SETTINGS = {
  server: {
    variable: 'NATS_URL',
    flag: '--server <url>',
    form: text('URLs, separated by commas'),
    fallback: 'nats://127.0.0.1:4222',
    description:
      'NATS servers, separated by commas; tls:// requires TLS; without it, the selected context of the nats CLI',
  },
  context: {
    variable: 'NATS_CONTEXT',
    flag: '--context <name>',
    form: text('text'),
    description: 'context of the nats CLI to connect with, instead of the variables for connecting',
  },
  creds: {
    variable: 'SLUICE_CREDS',
    orVariable: 'NATS_CREDS',
    flag: '--creds <file>',
    form: text('a file'),
    description: 'credentials file for NATS',
  },
  nkey: {
    variable: 'SLUICE_NATS_NKEY',
    orVariable: 'NATS_NKEY',
    flag: '--nkey <file>',
    form: text('a file'),
    description: 'file with the nkey seed of the NATS user',
  },
  user: {
    variable: 'SLUICE_NATS_USER',
    orVariable: 'NATS_USER',
    flag: '--user <name>',
    form: text('text'),
    description: 'NATS user',
  },
  password: {
    variable: 'SLUICE_NATS_PASSWORD',
    orVariable: 'NATS_PASSWORD',
    flag: '--password <password>',
    form: text('text'),
    description: 'password of the NATS user; other users of the machine can see flags, so prefer --password-file',
  },
  passwordFile: {
    variable: 'SLUICE_NATS_PASSWORD_FILE',
    flag: '--password-file <file>',
    form: text('a file'),
    description: 'file with the password of the NATS user',
  },
  token: {
    variable: 'SLUICE_TOKEN',
    orVariable: 'NATS_TOKEN',
    flag: '--token <token>',
    form: text('text'),
    description: 'token for NATS; other users of the machine can see flags, so prefer --token-file',
  },
  tokenFile: {
    variable: 'SLUICE_TOKEN_FILE',
    flag: '--token-file <file>',
    form: text('a file'),
    description: 'file with the token for NATS',
  },
  tlsCa: {
    variable: 'SLUICE_NATS_CA',
    orVariable: 'NATS_CA',
    flag: '--tls-ca <file>',
    form: text('a file'),
    description: 'CA certificates that the NATS servers are checked against, in PEM; requires TLS',
  },
  tlsCert: {
    variable: 'SLUICE_NATS_CERT',
    orVariable: 'NATS_CERT',
    flag: '--tls-cert <file>',
    form: text('a file'),
    description: 'client certificate for NATS, in PEM; requires TLS',
  },
  tlsKey: {
    variable: 'SLUICE_NATS_KEY',
    orVariable: 'NATS_KEY',
    flag: '--tls-key <file>',
    form: text('a file'),
    description: 'private key of the client certificate, in PEM',
  },
  tlsFirst: {
    variable: 'SLUICE_NATS_TLS_FIRST',
    flag: '--tls-first',
    form: SWITCH,
    description: 'start with the TLS handshake, for NATS servers that have handshake_first set',
  },
  inboxPrefix: {
    variable: 'SLUICE_NATS_INBOX_PREFIX',
    flag: '--inbox-prefix <subject>',
    form: text('a subject'),
    description: 'subject prefix for the answers of NATS, if the NATS user may not subscribe to _INBOX',
  },
} as const satisfies Readonly<Record<string, Setting<unknown>>>;

export type ConnectionKey = keyof typeof CONNECTION_SETTINGS;

/** The flags that were given on a command line. */
export type ConnectFlags = { readonly [Key in Exclude<ConnectionKey, 'tlsFirst'>]?: string | undefined } & {
  readonly tlsFirst?: boolean | undefined;
};
