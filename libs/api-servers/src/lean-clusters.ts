import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Guard } from '#libs/process';
import { findKubeBinaries } from './binaries.js';
import {
  etcdIn,
  kubeconfigText,
  socketIn,
  startApiServer,
  writeSecrets,
  type ApiServerOptions,
} from './control-plane.js';
import { KubeApi, type KubeAccess } from './kube-api.js';
import type { Program } from './program.js';

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

const SERVED = ['api/all=false', ...GROUPS.map((group) => `${group.includes('/') ? '' : 'api/'}${group}=true`)];
const ARGS = [
  // Nothing creates service accounts here.
  '--disable-admission-plugins=ServiceAccount',
  '--enable-priority-and-fairness=false',
  '--profiling=false',
  `--runtime-config=${SERVED.join(',')}`,
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
    return kubeconfigText({ ...this.access, ...instead });
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
    const started: Program[] = [];
    const onStart = (program: Program): void => {
      started.push(program);
      guard.watch([etcd, ...started].filter(({ isAlive }) => isAlive).map(({ pid }) => pid));
    };
    try {
      await etcd.untilReady(() => existsSync(socketIn(folder)), signal);
      const token = await writeSecrets(folder);
      const failing = new AbortController();
      const either = AbortSignal.any([failing.signal, ...(signal === undefined ? [] : [signal])]);
      const starting = Array.from({ length: count }, (_, i) =>
        startServer({ folder, binaries, token, signal: either, i, onStart }).catch((error: unknown) => {
          failing.abort(error);
          throw error;
        }),
      );
      // Also those that another one has made fail have ended then.
      await Promise.allSettled(starting);
      failing.signal.throwIfAborted();
      const clusters = await Promise.all(starting);
      return new LeanClusters(folder, guard, etcd, clusters);
    } catch (error) {
      for (const program of [...started, etcd]) await program.end();
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

type Common = Pick<ApiServerOptions, 'folder' | 'binaries' | 'token' | 'signal'>;
interface Numbered {
  readonly i: number;
  readonly onStart: (program: Program) => void;
}

async function startServer({ i, onStart, ...common }: Common & Numbered): Promise<LeanCluster> {
  const own = join(common.folder, `c${i}`);
  await mkdir(own);
  const { program, access } = await startApiServer({
    ...common,
    own,
    onStart,
    args: [...ARGS, `--etcd-prefix=/c${i}`],
  });
  return new LeanCluster(access, program);
}
