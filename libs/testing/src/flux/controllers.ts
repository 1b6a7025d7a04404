import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Program, type LeanCluster } from '#libs/api-servers';
import { freePort, Guard } from '#libs/process';
import { findFlux, type FluxController } from './binaries.js';

const COMMON = ['--metrics-addr=127.0.0.1:0', '--health-addr=127.0.0.1:0', '--watch-all-namespaces'];

/** A real controller of Flux that works on one API server. It ends when this process does. */
export class RunningController {
  private guard: Guard | undefined;

  private constructor(
    private readonly folder: string,
    private readonly program: Program,
  ) {}

  static async start(controller: FluxController, cluster: LeanCluster): Promise<RunningController> {
    const { path } = await findFlux(controller);
    const folder = await mkdtemp(join(tmpdir(), 'sluice-flux-'));
    await writeFile(join(folder, 'kubeconfig'), cluster.kubeconfig(), { mode: 0o600 });
    const env = {
      KUBECONFIG: join(folder, 'kubeconfig'),
      RUNTIME_NAMESPACE: 'default',
      HOME: folder,
      TMPDIR: folder,
    };
    const program = new Program(folder, path, [...COMMON, ...(await ownArguments(controller, folder))], env);
    const running = new RunningController(folder, program);
    await running.start();
    return running;
  }

  async start(): Promise<void> {
    this.program.start();
    this.guard = new Guard();
    this.guard.watch([this.program.pid]);
    await this.program.untilReady(() => this.program.hasLogged('Starting workers'));
  }

  /** kill -9. It can be started again. */
  async kill(): Promise<void> {
    await this.program.end();
    this.guard?.close();
    this.program.forgetLog();
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }
}

async function ownArguments(controller: FluxController, folder: string): Promise<readonly string[]> {
  // With its default it would retry a download for minutes.
  if (controller === 'kustomize-controller') return ['--http-retry=1', '--requeue-dependency=1s'];
  const address = `127.0.0.1:${await freePort()}`;
  return [`--storage-path=${folder}`, `--storage-addr=${address}`, `--storage-adv-addr=${address}`];
}
