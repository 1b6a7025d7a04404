import { readFileSync } from 'node:fs';
import {
  credsAuthenticator,
  jwtAuthenticator,
  nkeyAuthenticator,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
  type Authenticator,
} from '@nats-io/nats-core';
import type { Logger } from '#libs/process';
import { areCredentials, secretIn, seedIn } from './connection-files.js';
import type { Credentials } from './connection-options.js';

/** Answers each challenge of a server. Files are read again each time, so that a replaced secret needs no restart. */
export function authenticators(credentials: Credentials, logger: Logger): Authenticator[] {
  const { creds, nkey, user, password = '', passwordFile, token, tokenFile, userJwt, userSeed } = credentials;
  const fromFile = <T>(path: string, read: (content: string) => T | undefined): (() => T) => latest(path, read, logger);
  const all: Authenticator[] = [];
  if (creds !== undefined)
    all.push(credsAuthenticator(fromFile(creds, (text) => (areCredentials(text) ? encode(text) : undefined))));
  if (nkey !== undefined) all.push(nkeyAuthenticator(fromFile(nkey, seedIn)));
  if (userJwt !== undefined) all.push(jwtAuthenticator(userJwt, userSeed === undefined ? undefined : seedIn(userSeed)));
  if (user !== undefined)
    all.push(
      usernamePasswordAuthenticator(user, passwordFile === undefined ? password : fromFile(passwordFile, secretOf)),
    );
  if (token !== undefined) all.push(tokenAuthenticator(token));
  if (tokenFile !== undefined) all.push(tokenAuthenticator(fromFile(tokenFile, secretOf)));
  return all;
}

/** The name of the credentials in errors, without secrets. Undefined: there are none. */
export function nameOfCredentials(credentials: Credentials): string | undefined {
  const { creds, nkey, user, password, passwordFile, token, tokenFile, userJwt } = credentials;
  if (creds !== undefined) return `the credentials file ${creds}`;
  if (nkey !== undefined) return `the nkey seed in ${nkey}`;
  if (userJwt !== undefined) return 'the user JWT';
  const name = JSON.stringify(user);
  if (user !== undefined && (password ?? passwordFile) !== undefined) return `the user ${name} with its password`;
  if (tokenFile !== undefined) return `the token in ${tokenFile}`;
  if (token !== undefined) return 'the token';
  // A password from another source than the user is not used: it may belong to another server.
  return user === undefined
    ? undefined
    : `the user ${name} without a password: use --password-file with --user, or set SLUICE_NATS_PASSWORD with SLUICE_NATS_USER`;
}

/** The content of the file, or its previous content while it is being replaced. */
function latest<T>(path: string, read: (content: string) => T | undefined, logger: Logger): () => T {
  let before: T | undefined;
  return () => {
    try {
      const now = read(readFileSync(path, 'utf8'));
      if (now === undefined) throw new Error('it has no valid content');
      before = now;
    } catch (error) {
      if (before === undefined)
        throw new Error(`${path} cannot be used: ${(error as Error).message}`, { cause: error });
      logger.warn(
        { file: path, error: (error as Error).message },
        'credentials cannot be read; using the previous ones',
      );
    }
    return before;
  };
}

const secretOf = (content: string): string | undefined => secretIn(content) || undefined;
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
