import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findKubeBinaries, KubeApi, Program, type KubeAccess, type KubeBinaries } from '#libs/api-servers';
import { freePort, Guard } from '#libs/process';

/** Another process may take the port between finding it and listening on it. */
const PORT_TRIES = 5;
/**
 * Two controllers are left out. node-lifecycle would mark every node NotReady, because no kubelet sends heartbeats
 * here. garbage-collector would delete the tests' pods, because their owners do not exist.
 */
const CONTROLLERS = [
  'disruption-controller',
  'serviceaccount-controller',
  'namespace-controller',
  'pod-garbage-collector-controller',
  'replicaset-controller',
  'deployment-controller',
  'daemonset-controller',
  'statefulset-controller',
];

interface Programs {
  readonly etcd: Program;
  readonly apiServer: Program;
  readonly controllers: Program;
}

/**
 * A real control plane on loopback, without nodes: etcd, kube-apiserver, kube-controller-manager. It ends when this
 * process does.
 */
export class KubeCluster {
  readonly api: KubeApi;

  private constructor(
    private readonly folder: string,
    private readonly guard: Guard,
    private readonly programs: Programs,
    readonly access: KubeAccess,
  ) {
    this.api = new KubeApi(access);
  }

  /** Starts it. Resolves when the controllers are running. */
  static async start(): Promise<KubeCluster> {
    const binaries = await findKubeBinaries();
    // The path of etcd's socket may have at most 108 characters.
    const folder = await mkdtemp(join(tmpdir(), 'sluice-kube-'));
    const guard = new Guard();
    const etcd = etcdIn(folder, binaries).start();
    guard.watch([etcd.pid]);
    try {
      await etcd.untilReady(() => existsSync(join(folder, 'e.sock')));
      await writeSecrets(folder);
      const { apiServer, access } = await startApiServer(folder, binaries, guard, etcd);
      await writeKubeconfig(join(folder, 'kubeconfig'), access);
      const controllers = controllersIn(folder, binaries).start();
      guard.watch([etcd.pid, apiServer.pid, controllers.pid]);
      const cluster = new KubeCluster(folder, guard, { etcd, apiServer, controllers }, access);
      // Pods are refused without it, and its existence shows that the controllers run.
      await controllers.untilReady(
        async () =>
          (await cluster.api.get('/api/v1/namespaces/default/serviceaccounts/default').catch(() => undefined)) !==
          undefined,
      );
      return cluster;
    } catch (error) {
      await etcd.end();
      guard.close();
      throw error;
    }
  }

  get pids(): readonly number[] {
    const { etcd, apiServer, controllers } = this.programs;
    return [etcd.pid, apiServer.pid, controllers.pid];
  }

  /** A kubeconfig of a cluster administrator. */
  get kubeconfig(): string {
    return join(this.folder, 'kubeconfig');
  }

  /** The TCP port of the API server. */
  get port(): number {
    return Number(new URL(this.access.server).port);
  }

  /** A kubeconfig that reaches the API server through another address. */
  async kubeconfigBy(server: string): Promise<string> {
    const file = join(this.folder, `kubeconfig-${new URL(server).port}`);
    await writeKubeconfig(file, { ...this.access, server });
    return file;
  }

  /** A kubeconfig of another user, identified by their token. */
  async kubeconfigOf(name: string, token: string): Promise<string> {
    const file = join(this.folder, `kubeconfig-of-${name}`);
    await writeKubeconfig(file, { ...this.access, token });
    return file;
  }

  /** kill -9 of the API server. What it stored is kept. */
  killApiServer(): void {
    this.programs.apiServer.kill();
  }

  /** Starts it again, on the same port. */
  async restartApiServer(): Promise<void> {
    await this.programs.apiServer.end();
    this.programs.apiServer.start();
    this.guard.watch(this.pids);
    await this.programs.apiServer.untilReady(() => isReady(this.access));
  }

  /** etcd stops answering, and every connection to it stays open. */
  freezeEtcd(): void {
    process.kill(this.programs.etcd.pid, 'SIGSTOP');
  }
  thawEtcd(): void {
    process.kill(this.programs.etcd.pid, 'SIGCONT');
  }

  /** kill -9 of etcd, and a restart with what it had stored. Every connection to it is cut. */
  async restartEtcd(): Promise<void> {
    const { etcd } = this.programs;
    await etcd.end();
    await rm(join(this.folder, 'e.sock'), { force: true });
    etcd.start();
    this.guard.watch(this.pids);
    await etcd.untilReady(() => existsSync(join(this.folder, 'e.sock')));
  }

  async stop(): Promise<void> {
    this.api.close();
    const { etcd, apiServer, controllers } = this.programs;
    for (const program of [controllers, apiServer, etcd]) await program.end();
    this.guard.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

async function startApiServer(
  folder: string,
  binaries: KubeBinaries,
  guard: Guard,
  etcd: Program,
): Promise<{ apiServer: Program; access: KubeAccess }> {
  const token = readFileSync(join(folder, 'tokens.csv'), 'utf8').split(',')[0] as string;
  let lastAnswer = '';
  for (let tries = 1; ; tries += 1) {
    const port = await freePort();
    const apiServer = apiServerIn(folder, binaries, port).start();
    guard.watch([etcd.pid, apiServer.pid]);
    const certificate = join(folder, 'apiserver.crt');
    try {
      // It writes the certificate first: once the key exists, the certificate is complete.
      await apiServer.untilReady(() => existsSync(join(folder, 'apiserver.key')));
      const access = { server: `https://127.0.0.1:${port}`, token, ca: readFileSync(certificate, 'utf8') };
      await apiServer.untilReady(() => isReady(access, (answer) => (lastAnswer = answer)));
      return { apiServer, access };
    } catch (error) {
      await apiServer.end();
      const { message } = error as Error;
      if (tries < PORT_TRIES && message.includes('already in use')) continue;
      throw new Error(`${message}\n/readyz last answered: ${lastAnswer}`, { cause: error });
    }
  }
}

/** Passes on each answer, which names what is not ready. */
async function isReady(access: KubeAccess, onAnswer: (answer: string) => void = () => undefined): Promise<boolean> {
  const api = new KubeApi(access, 1_000);
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

/** On a socket, so that no other process can take its port, and other users cannot reach it. */
const etcdIn = (folder: string, { etcd }: KubeBinaries): Program =>
  new Program(folder, etcd, [
    '--name=t',
    `--data-dir=${join(folder, 'etcd')}`,
    '--unsafe-no-fsync',
    '--logger=zap',
    '--log-level=warn',
    `--listen-client-urls=unix://${join(folder, 'e.sock')}`,
    '--advertise-client-urls=http://127.0.0.1:2379',
    '--listen-peer-urls=http://127.0.0.1:0',
    '--initial-advertise-peer-urls=http://127.0.0.1:2380',
    '--initial-cluster=t=http://127.0.0.1:2380',
  ]);

/** It signs its own certificate in `--cert-dir`. */
const apiServerIn = (folder: string, { apiServer }: KubeBinaries, port: number): Program =>
  new Program(folder, apiServer, [
    `--etcd-servers=unix://${join(folder, 'e.sock')}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    `--secure-port=${port}`,
    `--cert-dir=${folder}`,
    '--endpoint-reconciler-type=none',
    '--service-cluster-ip-range=10.0.0.0/24',
    '--authorization-mode=RBAC',
    '--anonymous-auth=false',
    '--token-auth-file=tokens.csv',
    '--service-account-issuer=https://kubernetes.default.svc',
    '--service-account-key-file=sa.key',
    '--service-account-signing-key-file=sa.key',
  ]);

const controllersIn = (folder: string, { controllerManager }: KubeBinaries): Program =>
  new Program(folder, controllerManager, [
    '--kubeconfig=kubeconfig',
    '--authentication-kubeconfig=kubeconfig',
    '--authorization-kubeconfig=kubeconfig',
    '--authentication-skip-lookup',
    '--secure-port=0',
    '--leader-elect=false',
    '--service-account-private-key-file=sa.key',
    `--controllers=${CONTROLLERS.join(',')}`,
  ]);

async function writeSecrets(folder: string): Promise<void> {
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  await writeFile(join(folder, 'sa.key'), privateKey, { mode: 0o600 });
  await writeFile(join(folder, 'tokens.csv'), `${randomBytes(16).toString('hex')},admin,1,system:masters\n`, {
    mode: 0o600,
  });
}

/** JSON is YAML too. */
async function writeKubeconfig(file: string, { server, ca, token }: KubeAccess): Promise<void> {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 't',
    // The client accepts plain HTTP, which a gate uses, only if no certificate is given.
    clusters: [
      {
        name: 't',
        cluster: {
          server,
          ...(server.startsWith('https')
            ? { 'certificate-authority-data': Buffer.from(ca).toString('base64') }
            : { 'insecure-skip-tls-verify': true }),
        },
      },
    ],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 't', context: { cluster: 't', user: 'admin' } }],
  };
  await writeFile(file, JSON.stringify(config, null, 2));
  await chmod(file, 0o600);
}
