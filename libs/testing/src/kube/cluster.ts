import { existsSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  etcdIn,
  findKubeBinaries,
  isReady,
  KubeApi,
  kubeconfigText,
  Program,
  socketIn,
  startApiServer,
  writeSecrets,
  type KubeAccess,
  type KubeBinaries,
} from '#libs/api-servers';
import { Guard } from '#libs/process';

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
      await etcd.untilReady(() => existsSync(socketIn(folder)));
      const token = await writeSecrets(folder);
      const { program: apiServer, access } = await startApiServer({
        binaries,
        folder,
        own: folder,
        token,
        args: [],
        onStart: ({ pid }) => guard.watch([etcd.pid, pid]),
      });
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
    await rm(socketIn(this.folder), { force: true });
    etcd.start();
    this.guard.watch(this.pids);
    await etcd.untilReady(() => existsSync(socketIn(this.folder)));
  }

  async stop(): Promise<void> {
    this.api.close();
    const { etcd, apiServer, controllers } = this.programs;
    for (const program of [controllers, apiServer, etcd]) await program.end();
    this.guard.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

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

async function writeKubeconfig(file: string, access: KubeAccess): Promise<void> {
  await writeFile(file, kubeconfigText(access));
  await chmod(file, 0o600);
}
