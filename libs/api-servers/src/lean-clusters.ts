import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, Guard } from '#libs/process';
import { findKubeBinaries, type KubeBinaries } from './binaries.js';
import { KubeApi, type KubeAccess } from './kube-api.js';
import { Program } from './program.js';

/** Another process may take the port between finding it and listening on it. */
const PORT_TRIES = 5;

/** The groups that are served. An API server without the others starts faster and takes less memory. */
const GROUPS = [
  'v1',
  'apps/v1',
  'batch/v1',
  'rbac.authorization.k8s.io/v1',
  'apiextensions.k8s.io/v1',
  'apiregistration.k8s.io/v1',
  'admissionregistration.k8s.io/v1',
  'authentication.k8s.io/v1',
  'authorization.k8s.io/v1',
  'coordination.k8s.io/v1',
  'scheduling.k8s.io/v1',
  'storage.k8s.io/v1',
  // Without it, the server never finishes starting.
  'discovery.k8s.io/v1',
  'networking.k8s.io/v1',
  'node.k8s.io/v1',
  'policy/v1',
];

/** One API server without controllers: what they would do, its user does. */
export class LeanCluster {
  readonly api: KubeApi;

  constructor(
    readonly access: KubeAccess,
    readonly program: Program,
  ) {
    this.api = new KubeApi(access);
  }

  get port(): number {
    return Number(new URL(this.access.server).port);
  }

  /** The content of an administrator's kubeconfig, or of somebody else's, or through another address. */
  kubeconfig(instead: Partial<KubeAccess> = {}): string {
    const { server, ca, token } = { ...this.access, ...instead };
    return JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 't',
      clusters: [{ name: 't', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
      users: [{ name: 'u', user: { token } }],
      contexts: [{ name: 't', context: { cluster: 't', user: 'u' } }],
    });
  }
}

export interface LeanOptions {
  /** It must not exist. Default: a temporary one. */
  readonly folder?: string;
  /** Ends them while they start. */
  readonly signal?: AbortSignal;
}

/** Several API servers on one etcd, each with its own data. They end when this process does. */
export class LeanClusters {
  private constructor(
    private readonly folder: string,
    private readonly guard: Guard,
    private readonly etcd: Program,
    readonly all: readonly LeanCluster[],
  ) {}

  static async start(count: number, options: LeanOptions = {}): Promise<LeanClusters> {
    const binaries = await findKubeBinaries();
    // The path of etcd's socket may have at most 108 characters.
    const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'sluice-lean-')));
    await mkdir(folder, { recursive: true });
    const guard = new Guard();
    const { signal } = options;
    const etcd = etcdIn(folder, binaries).start();
    guard.watch([etcd.pid]);
    const clusters: LeanCluster[] = [];
    try {
      await etcd.untilReady(() => existsSync(join(folder, 'e.sock')), signal);
      const token = await writeSecrets(folder);
      const starting = Array.from({ length: count }, (_, i) => startServer({ folder, binaries, token, signal }, i));
      for (const one of await Promise.allSettled(starting)) {
        if (one.status === 'rejected') throw one.reason as Error;
        clusters.push(one.value);
        guard.watch([etcd.pid, ...clusters.map(({ program }) => program.pid)]);
      }
      return new LeanClusters(folder, guard, etcd, clusters);
    } catch (error) {
      for (const { program } of clusters) await program.end();
      await etcd.end();
      guard.close();
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  async stop(): Promise<void> {
    for (const { api, program } of this.all) {
      api.close();
      await program.end();
    }
    await this.etcd.end();
    this.guard.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

interface Common {
  readonly folder: string;
  readonly binaries: KubeBinaries;
  readonly token: string;
  readonly signal: AbortSignal | undefined;
}

async function startServer({ folder, binaries, token, signal }: Common, i: number): Promise<LeanCluster> {
  const own = join(folder, `c${i}`);
  await mkdir(own);
  for (let tries = 1; ; tries += 1) {
    const port = await freePort();
    const program = serverIn({ folder, own, binaries, port, i }).start();
    try {
      // It writes the certificate first: once the key exists, the certificate is complete.
      await program.untilReady(() => existsSync(join(own, 'apiserver.key')), signal);
      const ca = readFileSync(join(own, 'apiserver.crt'), 'utf8');
      const cluster = new LeanCluster({ server: `https://127.0.0.1:${port}`, token, ca }, program);
      await program.untilReady(() => isReady(cluster.access), signal);
      return cluster;
    } catch (error) {
      await program.end();
      if (tries < PORT_TRIES && (error as Error).message.includes('already in use')) continue;
      throw error;
    }
  }
}

async function isReady(access: KubeAccess): Promise<boolean> {
  const api = new KubeApi(access, 1_000);
  try {
    return (await api.call('GET', '/readyz')).code === 200;
  } catch {
    return false;
  } finally {
    api.close();
  }
}

const etcdIn = (folder: string, { etcd }: KubeBinaries): Program =>
  new Program(folder, etcd, [
    '--name=t',
    `--data-dir=${join(folder, 'etcd')}`,
    '--unsafe-no-fsync',
    '--log-level=warn',
    `--listen-client-urls=unix://${join(folder, 'e.sock')}`,
    '--advertise-client-urls=http://127.0.0.1:2379',
    '--listen-peer-urls=http://127.0.0.1:0',
    '--initial-advertise-peer-urls=http://127.0.0.1:2380',
    '--initial-cluster=t=http://127.0.0.1:2380',
  ]);

function serverIn(of: {
  readonly folder: string;
  readonly own: string;
  readonly binaries: KubeBinaries;
  readonly port: number;
  readonly i: number;
}): Program {
  const served = ['api/all=false', ...GROUPS.map((group) => `${group.includes('/') ? '' : 'api/'}${group}=true`)];
  return new Program(of.own, of.binaries.apiServer, [
    `--etcd-servers=unix://${join(of.folder, 'e.sock')}`,
    `--etcd-prefix=/c${of.i}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${of.port}`,
    `--cert-dir=${of.own}`,
    '--endpoint-reconciler-type=none',
    '--service-cluster-ip-range=10.0.0.0/24',
    '--authorization-mode=RBAC',
    '--anonymous-auth=false',
    `--token-auth-file=${join(of.folder, 'tokens.csv')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${join(of.folder, 'sa.key')}`,
    `--service-account-signing-key-file=${join(of.folder, 'sa.key')}`,
    // Nothing creates service accounts here.
    '--disable-admission-plugins=ServiceAccount',
    '--enable-priority-and-fairness=false',
    '--profiling=false',
    `--runtime-config=${served.join(',')}`,
  ]);
}

async function writeSecrets(folder: string): Promise<string> {
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
