import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { KubeApi, KubeObject } from '#libs/api-servers';
import { tarball, type Files } from './tarball.js';

const REPOSITORIES = '/apis/source.toolkit.fluxcd.io/v1';
const LOOK_MS = 100;

/** Plays the source controller of Flux for GitRepositories: serves the commits that were published, as tarballs. */
export class PlayedSource {
  private readonly tarballs = new Map<string, Buffer>();
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  private constructor(
    private readonly api: KubeApi,
    private readonly server: Server,
  ) {}

  static async start(api: KubeApi): Promise<PlayedSource> {
    const server = createServer((request, response) => {
      const tarball = played.tarballs.get((request.url ?? '').slice(1, -'.tgz'.length));
      response.writeHead(tarball === undefined ? 404 : 200).end(tarball);
    });
    const played = new PlayedSource(api, server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    void played.look();
    return played;
  }

  /** A commit with these files. */
  publish(commit: string, files: Files): void {
    this.tarballs.set(commit, tarball(files));
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async look(): Promise<void> {
    try {
      for (const repository of await this.api.list(`${REPOSITORIES}/gitrepositories`)) await this.handle(repository);
    } catch {
      // It was deleted or changed meanwhile, or the test is over.
    }
    if (!this.isStopped) this.timer = setTimeout(() => void this.look(), LOOK_MS);
  }

  private async handle({ metadata, spec, status }: KubeObject): Promise<void> {
    const { generation } = metadata as { readonly generation?: number };
    const [last] = (status?.['conditions'] ?? []) as readonly { readonly observedGeneration?: number }[];
    if (last?.observedGeneration === generation) return;
    const { commit = '' } = (spec?.['ref'] ?? {}) as { readonly commit?: string };
    const tarball = this.tarballs.get(commit);
    const condition = (isReady: boolean, reason: string, message: string): object => ({
      type: 'Ready',
      status: isReady ? 'True' : 'False',
      reason,
      message,
      observedGeneration: generation,
      lastTransitionTime: new Date().toISOString(),
    });
    const revision = `main@sha1:${commit}`;
    const absent = `failed to checkout and determine revision: unable to resolve commit object for '${commit}': object not found`;
    const { port } = this.server.address() as AddressInfo;
    const path = `${REPOSITORIES}/namespaces/${metadata.namespace}/gitrepositories/${metadata.name}/status`;
    const artifact = {
      path: `${commit}.tgz`,
      url: `http://127.0.0.1:${port}/${commit}.tgz`,
      revision,
      digest: `sha256:${createHash('sha256')
        .update(tarball ?? '')
        .digest('hex')}`,
      lastUpdateTime: new Date().toISOString(),
    };
    const played =
      tarball === undefined
        ? { conditions: [condition(false, 'GitOperationFailed', absent)] }
        : {
            observedGeneration: generation,
            conditions: [condition(true, 'Succeeded', `stored artifact for revision '${revision}'`)],
            artifact,
          };
    await this.api.patch(path, { status: played }, 'source-controller');
  }
}
