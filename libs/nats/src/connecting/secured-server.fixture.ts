import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { nkeys } from '@nats-io/nats-core';
import { Guard, prepareNatsServer, type ConnectFlags } from '#libs/process';
import { startNatsServer, testAuthority, until, type TestAuthority } from '#libs/testing';
import { testOperator } from './operator.fixture.js';

/** A nats-server that requires credentials, and valid and invalid ones. */
export interface SecuredServer {
  readonly url: string;
  /** Valid options. */
  readonly right: ConnectFlags;
  /** The same without secrets on the command line. */
  readonly rightInFiles: ConnectFlags;
  /** Invalid options. */
  readonly wrong: ConnectFlags;
  /** The error for those. */
  readonly refusal: RegExp;
  /** None of these may be in a log. */
  readonly secrets: readonly string[];
  stop(): Promise<void>;
}

type Way = Omit<SecuredServer, 'url' | 'stop'> & {
  readonly config: string;
  readonly scheme?: 'tls';
  readonly isTlsFirst?: boolean;
};

const CREDENTIALS_REFUSED = /the server 127\.0\.0\.1:\d+ refused the credentials \(.+\): /;

/** The ways to secure a server, by name. */
export const WAYS: Readonly<Record<string, (folder: string) => Promise<Way>>> = {
  'a token': async (folder) => ({
    config: 'authorization { token: "right-t0ken" }',
    right: { token: 'right-t0ken' },
    rightInFiles: { tokenFile: await written(folder, 'token', 'right-t0ken\n') },
    wrong: { token: 'wrong-t0ken' },
    refusal: CREDENTIALS_REFUSED,
    secrets: ['right-t0ken', 'wrong-t0ken'],
  }),
  'user and password': async (folder) => ({
    config: 'authorization { users: [{ user: ada, password: "right-passw0rd" }] }',
    right: { user: 'ada', password: 'right-passw0rd' },
    rightInFiles: { user: 'ada', passwordFile: await written(folder, 'password', 'right-passw0rd') },
    wrong: { user: 'ada', password: 'wrong-passw0rd' },
    refusal: CREDENTIALS_REFUSED,
    secrets: ['right-passw0rd', 'wrong-passw0rd'],
  }),
  'a user who may only use an inbox prefix': async () => {
    const right = { user: 'ada', password: 'right-passw0rd', inboxPrefix: '_INBOX_ada' };
    return {
      config:
        'authorization { users: [{ user: ada, password: "right-passw0rd", permissions: { publish: ">", subscribe: { allow: ">", deny: "_INBOX.>" } } }] }',
      right,
      rightInFiles: right,
      wrong: { ...right, password: 'wrong-passw0rd' },
      refusal: CREDENTIALS_REFUSED,
      secrets: ['right-passw0rd', 'wrong-passw0rd'],
    };
  },
  'an nkey': async (folder) => {
    const [user, stranger] = [nkeys.createUser(), nkeys.createUser()];
    const [seed, strangeSeed] = [user, stranger].map((pair) => new TextDecoder().decode(pair.getSeed())) as [
      string,
      string,
    ];
    const right = { nkey: await written(folder, 'ada.nk', `${seed}\n`) };
    return {
      config: `authorization { users: [{ nkey: ${user.getPublicKey()} }] }`,
      right,
      rightInFiles: right,
      wrong: { nkey: await written(folder, 'stranger.nk', strangeSeed) },
      refusal: CREDENTIALS_REFUSED,
      secrets: [seed, strangeSeed],
    };
  },
  'a credentials file': async (folder) => {
    const [operator, other] = [testOperator(), testOperator()];
    const [user, stranger] = [operator.user(), other.user()];
    const right = { creds: await written(folder, 'ada.creds', user.creds) };
    return {
      config: operator.config,
      right,
      rightInFiles: right,
      wrong: { creds: await written(folder, 'stranger.creds', stranger.creds) },
      refusal: CREDENTIALS_REFUSED,
      secrets: [user.seed, user.jwt, stranger.seed, stranger.jwt],
    };
  },
  'TLS with its own CA': async (folder) => {
    const authority = await testAuthority();
    const right = { tlsCa: await written(folder, 'ca.crt', authority.ca) };
    return {
      config: `tls { ${await serverFiles(folder, authority)} }`,
      scheme: 'tls',
      right,
      rightInFiles: right,
      wrong: { tlsCa: await written(folder, 'other.crt', (await testAuthority()).ca) },
      refusal: /the certificate of the server 127\.0\.0\.1:\d+ is not signed by the CA in \S+other\.crt/,
      secrets: [],
    };
  },
  'mutual TLS': async (folder) => {
    const authority = await testAuthority();
    const tlsCa = await written(folder, 'ca.crt', authority.ca);
    const right = { tlsCa, ...(await clientFiles(join(folder, 'ada'), authority)) };
    return {
      config: `tls { ${await serverFiles(folder, authority)}, ca_file: ${JSON.stringify(tlsCa)}, verify: true }`,
      scheme: 'tls',
      right,
      rightInFiles: right,
      wrong: { tlsCa, ...(await clientFiles(join(folder, 'stranger'), await testAuthority())) },
      refusal:
        /the server 127\.0\.0\.1:\d+ refused the client certificate \S+: (unknown ca|bad certificate|it closed the connection)/,
      secrets: [],
    };
  },
  'the TLS handshake first': async (folder) => {
    const authority = await testAuthority();
    const right = { tlsCa: await written(folder, 'ca.crt', authority.ca), tlsFirst: true };
    return {
      config: `tls { ${await serverFiles(folder, authority)}, handshake_first: true }`,
      scheme: 'tls',
      isTlsFirst: true,
      right,
      rightInFiles: right,
      wrong: { ...right, tlsCa: await written(folder, 'other.crt', (await testAuthority()).ca) },
      refusal: /the certificate of the server 127\.0\.0\.1:\d+ is not signed by the CA in \S+other\.crt/,
      secrets: [],
    };
  },
};

/** Starts a server that is secured in one of these ways. */
export async function startSecured(way: string, folder: string): Promise<SecuredServer> {
  const { config, scheme = 'nats', isTlsFirst = false, ...rest } = await (WAYS[way] as (typeof WAYS)[string])(folder);
  const options = { dataDir: join(folder, 'data'), config };
  const server = isTlsFirst ? await startTlsFirst(options) : await startNatsServer(options);
  return { ...rest, url: server.url.replace('nats://', `${scheme}://`), stop: server.stop };
}

/** Such a server sends no plain text that would show that it is ready. */
async function startTlsFirst(options: {
  readonly dataDir: string;
  readonly config: string;
}): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const { command, args, url, port } = await prepareNatsServer(options);
  const child = spawn(command, [...args], { stdio: 'ignore', detached: true });
  const guard = new Guard();
  guard.watch([child.pid as number]);
  const answers = (): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
      socket.once('error', () => resolve(false));
      socket.once('data', (info: Buffer) => {
        socket.destroy();
        resolve(info.toString().startsWith('INFO'));
      });
    });
  await until(answers, 'the server answers after a TLS handshake');
  return {
    url,
    stop: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill();
      await ended;
      guard.close();
    },
  };
}

async function written(folder: string, name: string, content: string): Promise<string> {
  await writeFile(join(folder, name), content, { mode: 0o600 });
  return join(folder, name);
}

async function serverFiles(folder: string, authority: TestAuthority): Promise<string> {
  const { certFile, keyFile } = await authority.write(folder);
  return `cert_file: ${JSON.stringify(certFile)}, key_file: ${JSON.stringify(keyFile)}`;
}

async function clientFiles(
  folder: string,
  authority: TestAuthority,
): Promise<{ readonly tlsCert: string; readonly tlsKey: string }> {
  await mkdir(folder);
  const { certFile, keyFile } = await authority.write(folder);
  return { tlsCert: certFile, tlsKey: keyFile };
}
