import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { nkeys } from '@nats-io/nats-core';
import { SettingsError } from '#libs/process';
import type { ConnectionOptions } from './connection-options.js';

type FileOption = 'creds' | 'nkey' | 'passwordFile' | 'tokenFile' | 'tlsCa' | 'tlsCert' | 'tlsKey';

interface FileKind {
  /** The name in errors. */
  readonly what: string;
  /** What is wrong with its content, if anything, without the content. */
  readonly fault: (content: string) => string | undefined;
}

const secret = (content: string): string | undefined => (secretIn(content) === '' ? 'it is empty' : undefined);

const KINDS: Readonly<Record<FileOption, FileKind>> = {
  creds: {
    what: 'credentials file',
    fault: (content) =>
      areCredentials(content) ? undefined : 'it must contain a JWT and an nkey seed, as nsc generate creds writes them',
  },
  nkey: {
    what: 'nkey file',
    fault: (content) => (seedIn(content) === undefined ? 'it must contain the nkey seed of a user (SU…)' : undefined),
  },
  passwordFile: { what: 'password file', fault: secret },
  tokenFile: { what: 'token file', fault: secret },
  tlsCa: { what: 'CA file', fault: (content) => faultOf(() => new X509Certificate(content), 'certificates') },
  tlsCert: {
    what: 'client certificate',
    fault: (content) => faultOf(() => new X509Certificate(content), 'a certificate'),
  },
  tlsKey: { what: 'private key', fault: (content) => faultOf(() => createPrivateKey(content), 'a private key') },
};

/** Throws SettingsError if a file is missing, unreadable, or invalid. Returns the options. */
export function checkFiles<Options extends ConnectionOptions>(options: Options): Options {
  for (const [name, { what, fault }] of Object.entries(KINDS)) {
    const path = options[name as FileOption];
    if (path === undefined) continue;
    const reason = fault(readOption(path, what));
    if (reason !== undefined) throw new SettingsError(`${what} ${path} cannot be used: ${reason}`);
  }
  if (options.tlsCert !== undefined && options.tlsKey !== undefined)
    requirePair(readFileSync(options.tlsCert, 'utf8'), readFileSync(options.tlsKey, 'utf8'), options);
  return options;
}

/** Whether a file has both parts of credentials. */
export const areCredentials = (content: string): boolean =>
  content.includes('BEGIN NATS USER JWT') && seedIn(content) !== undefined;

/** A password or token. Editors and shells end files with a newline. */
export const secretIn = (content: string): string => content.replace(/[\r\n]+$/, '');

/** The nkey seed of a user, alone or between decorations. */
export function seedIn(content: string): Uint8Array | undefined {
  const [seed] = /\bSU[A-Z2-7]{56}\b/.exec(content) ?? [];
  if (seed === undefined) return undefined;
  try {
    const bytes = new TextEncoder().encode(seed);
    nkeys.fromSeed(bytes);
    return bytes;
  } catch {
    return undefined;
  }
}

function readOption(path: string, what: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new SettingsError(
      code === 'ENOENT'
        ? `${what} ${path} not found: check the flag, variable or nats context that names it`
        : `${what} ${path} cannot be read: ${message}`,
    );
  }
}

function faultOf(parse: () => unknown, must: string): string | undefined {
  try {
    parse();
    return undefined;
  } catch {
    return `it must contain ${must} in PEM${must === 'a private key' ? ', without a passphrase' : ''}`;
  }
}

function requirePair(certificate: string, key: string, { tlsCert, tlsKey }: ConnectionOptions): void {
  if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)))
    throw new SettingsError(`the private key ${tlsKey} does not belong to the client certificate ${tlsCert}`);
}
