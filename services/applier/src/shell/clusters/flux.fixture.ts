import type { ConfigEntry } from '#libs/contracts';
import { until, type KubeApi, type KubeObject } from '#libs/testing';

/** A commit id of one repeated digit. */
export const commit = (digit: string): string => digit.repeat(40);
export const revision = (digit: string): string => `main@sha1:${commit(digit)}`;

/** A `FluxSync` named `apps` of this commit. */
export const sync = (digit: string, more: object = {}): ConfigEntry => ({
  kind: 'FluxSync',
  name: 'apps',
  spec: {
    git: { url: 'https://git.example.com/team/apps', branch: 'main', commit: commit(digit) },
    namespace: 'default',
    ...more,
  } as unknown as ConfigEntry['spec'],
});

interface Read extends KubeObject {
  readonly metadata: KubeObject['metadata'] & { readonly generation: number };
}

/** Plays Flux: writes what source-controller and kustomize-controller write into the status of their objects. */
export class FluxRole {
  private readonly sourcePath: string;
  private readonly syncPath: string;

  constructor(
    private readonly api: KubeApi,
    { namespace, name }: { readonly namespace: string; readonly name: string } = { namespace: 'default', name: 'apps' },
  ) {
    this.sourcePath = `/apis/source.toolkit.fluxcd.io/v1/namespaces/${namespace}/gitrepositories/${name}`;
    this.syncPath = `/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/${namespace}/kustomizations/${name}`;
  }

  source(): Promise<KubeObject | undefined> {
    return this.api.get(this.sourcePath);
  }

  kustomization(): Promise<KubeObject | undefined> {
    return this.api.get(this.syncPath);
  }

  /** The commit that the source pins; undefined if there is no source. */
  async pinned(): Promise<unknown> {
    return ((await this.source())?.spec?.['ref'] as { readonly commit?: string } | undefined)?.commit;
  }

  /** Resolves once both objects are there, and the source pins this commit. */
  async asked(digit: string): Promise<void> {
    await until(
      async () => (await this.pinned()) === commit(digit) && (await this.kustomization()) !== undefined,
      `the source pins commit ${digit}`,
    );
  }

  async fetches(digit: string): Promise<void> {
    const { generation } = await this.read(this.sourcePath);
    await this.write(this.sourcePath, {
      observedGeneration: generation,
      conditions: [condition(generation, 'True', 'Succeeded', `stored artifact for revision '${revision(digit)}'`)],
      artifact: {
        path: `${digit}.tar.gz`,
        url: `http://source.example/${digit}.tar.gz`,
        revision: revision(digit),
        digest: `sha256:${'a'.repeat(64)}`,
        lastUpdateTime: new Date().toISOString(),
      },
    });
  }

  async cannotFetch(message: string): Promise<void> {
    const { generation } = await this.read(this.sourcePath);
    await this.write(this.sourcePath, { conditions: [condition(generation, 'False', 'GitOperationFailed', message)] });
  }

  async applies(digit: string): Promise<void> {
    const { generation } = await this.read(this.syncPath);
    const all = { lastAttemptedRevision: revision(digit), lastAppliedRevision: revision(digit) };
    const done = condition(generation, 'True', 'ReconciliationSucceeded', `Applied revision: ${revision(digit)}`);
    await this.write(this.syncPath, { observedGeneration: generation, ...all, conditions: [done] });
  }

  async cannotApply(digit: string, reason: string, message: string): Promise<void> {
    const { generation } = await this.read(this.syncPath);
    const conditions = [condition(generation, 'False', reason, message)];
    await this.write(this.syncPath, { lastAttemptedRevision: revision(digit), conditions });
  }

  /** As kustomize-controller does at first, so that it can prune before its object is gone. */
  async addFinalizer(): Promise<void> {
    await this.api.patch(this.syncPath, { metadata: { finalizers: ['finalizers.fluxcd.io'] } }, 'kustomize-controller');
  }

  /** It has pruned. */
  async finishDeletion(): Promise<void> {
    await until(
      async () => (await this.kustomization())?.metadata.deletionTimestamp !== undefined,
      'the Kustomization is being deleted',
    );
    await this.api.patch(this.syncPath, { metadata: { finalizers: null } }, 'kustomize-controller');
  }

  async remove(): Promise<void> {
    if ((await this.kustomization()) !== undefined)
      await this.api.patch(this.syncPath, { metadata: { finalizers: null } }, 'kustomize-controller');
    await this.api.remove(this.syncPath);
    await this.removeSource();
  }

  /** Somebody deletes the source. */
  async removeSource(): Promise<void> {
    await this.api.remove(this.sourcePath);
  }

  private async read(path: string): Promise<Read['metadata']> {
    const found = (await this.api.get(path)) as Read | undefined;
    if (found === undefined) throw new Error(`${path} is missing`);
    return found.metadata;
  }

  private async write(path: string, status: object): Promise<void> {
    await this.api.patch(`${path}/status`, { status }, 'flux');
  }
}

const condition = (generation: number, status: string, reason: string, message: string): object => ({
  type: 'Ready',
  status,
  reason,
  message,
  observedGeneration: generation,
  lastTransitionTime: new Date().toISOString(),
});
