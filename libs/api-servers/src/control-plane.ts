import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '#libs/process';
import type { KubeBinaries } from './binaries.js';
import { KubeApi, type KubeAccess } from './kube-api.js';
import { Program } from './program.js';

/** Another process may take the port between finding it and listening on it. */
const PORT_TRIES = 5;
/** A server on a busy machine takes seconds to say that it is ready. */
const READY_CALL_MS = 10_000;

/** etcd on a socket, so that no other process can take its port, and other users cannot reach it. */
export const etcdIn = (folder: string, { etcd }: KubeBinaries): Program =>
  new Program(folder, etcd, [
    '--name=t',
    `--data-dir=${join(folder, 'etcd')}`,
    '--unsafe-no-fsync',
    '--logger=zap',
    '--log-level=warn',
    `--listen-client-urls=unix://${socketIn(folder)}`,
    '--advertise-client-urls=http://127.0.0.1:2379',
    '--listen-peer-urls=http://127.0.0.1:0',
    '--initial-advertise-peer-urls=http://127.0.0.1:2380',
    '--initial-cluster=t=http://127.0.0.1:2380',
  ]);

export const socketIn = (folder: string): string => join(folder, 'e.sock');

export interface ApiServerOptions {
  readonly binaries: KubeBinaries;
  /** That of etcd and of the secrets. */
  readonly folder: string;
  /** Its own: it signs its own certificate there. */
  readonly own: string;
  readonly token: string;
  readonly args: readonly string[];
  /** Called as soon as it has a process. */
  readonly onStart?: (program: Program) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Starts an API server on a free port. Resolves when it is ready; otherwise it is ended. */
export async function startApiServer(options: ApiServerOptions): Promise<{
  readonly program: Program;
  readonly access: KubeAccess;
}> {
  const { own, token, signal } = options;
  let lastAnswer = 'nothing';
  for (let tries = 1; ; tries += 1) {
    const port = await freePort();
    const program = apiServerOn(port, options).start();
    options.onStart?.(program);
    try {
      // It writes the certificate first: once the key exists, the certificate is complete.
      await program.untilReady(() => existsSync(join(own, 'apiserver.key')), signal);
      const ca = readFileSync(join(own, 'apiserver.crt'), 'utf8');
      const access = { server: `https://127.0.0.1:${port}`, token, ca };
      await program.untilReady(() => isReady(access, (answer) => (lastAnswer = answer)), signal);
      return { program, access };
    } catch (error) {
      await program.end();
      const { message } = error as Error;
      if (tries < PORT_TRIES && message.includes('already in use')) continue;
      throw new Error(`${message}\n/readyz last answered: ${lastAnswer}`, { cause: error });
    }
  }
}

const apiServerOn = (port: number, { binaries, folder, own, args }: ApiServerOptions): Program =>
  new Program(own, binaries.apiServer, [
    `--etcd-servers=unix://${socketIn(folder)}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    `--cert-dir=${own}`,
    '--endpoint-reconciler-type=none',
    '--service-cluster-ip-range=10.0.0.0/24',
    '--authorization-mode=RBAC',
    '--anonymous-auth=false',
    `--token-auth-file=${join(folder, 'tokens.csv')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${join(folder, 'sa.key')}`,
    `--service-account-signing-key-file=${join(folder, 'sa.key')}`,
    ...args,
  ]);

/** Passes on each answer, which names what is not ready. */
export async function isReady(
  access: KubeAccess,
  onAnswer: (answer: string) => void = () => undefined,
): Promise<boolean> {
  const api = new KubeApi(access, READY_CALL_MS);
  try {
    const { code, body } = await api.call('GET', '/readyz');
    onAnswer(`${code} ${JSON.stringify(body)}`);
    return code === 200;
  } catch (error) {
    onAnswer((error as Error).message);
    return false;
  } finally {
    api.close();
  }
}

/** The key of service accounts, and the tokens of two users. Returns that of the administrator. */
export async function writeSecrets(folder: string): Promise<string> {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  await writeFile(join(folder, 'sa.key'), privateKey, { mode: 0o600 });
  const token = randomBytes(16).toString('hex');
  // The second user may only read.
  const lines = [`${token},admin,1,system:masters`, `${token}-viewer,viewer,2,viewers`];
  await writeFile(join(folder, 'tokens.csv'), `${lines.join('\n')}\n`, { mode: 0o600 });
  return token;
}

/** A kubeconfig that contains everything itself. JSON is YAML too. */
export function kubeconfigText({ server, ca, token }: KubeAccess): string {
  // The client accepts plain HTTP, which a gate uses, only if no certificate is given.
  const trust = server.startsWith('https')
    ? { 'certificate-authority-data': Buffer.from(ca).toString('base64') }
    : { 'insecure-skip-tls-verify': true };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 't',
    clusters: [{ name: 't', cluster: { server, ...trust } }],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 't', context: { cluster: 't', user: 'u' } }],
  });
}
