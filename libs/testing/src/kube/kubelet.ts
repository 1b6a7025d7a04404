import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeApi, KubeObject } from '#libs/api-servers';

/** A pod with this annotation ignores the signal to end. */
export const NEVER_ENDS = 'test/never-ends';
const AGAIN_MS = 300;

const pathOf = ({ metadata }: KubeObject): string => `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`;

/** Stands in for the kubelets of all nodes: bound pods become running and ready, and deleted pods end. */
export class Kubelet {
  private readonly done = new Set<string>();
  private stopped = false;
  private endWatch: () => void = () => undefined;

  /** `endsAfterMs`: how long a pod takes to end. */
  constructor(
    private readonly api: KubeApi,
    private readonly options: { readonly endsAfterMs?: number } = {},
  ) {}

  start(): this {
    void this.follow();
    return this;
  }

  stop(): void {
    this.stopped = true;
    this.endWatch();
  }

  private async follow(): Promise<void> {
    while (!this.stopped) {
      try {
        const { body } = await this.api.call('GET', '/api/v1/pods');
        const { items, metadata } = body as {
          readonly items: readonly KubeObject[];
          readonly metadata: { readonly resourceVersion: string };
        };
        for (const pod of items) this.see(pod);
        await new Promise<void>((resolve) => {
          this.endWatch = this.api.watch(
            `/api/v1/pods?watch=1&resourceVersion=${metadata.resourceVersion}`,
            (type, object) => {
              if (type === 'ADDED' || type === 'MODIFIED') this.see(object);
            },
            resolve,
          );
        });
      } catch {
        // The API server is away, and so are its kubelets.
      }
      if (!this.stopped) await sleep(AGAIN_MS);
    }
  }

  private see(pod: KubeObject): void {
    const { uid, deletionTimestamp } = pod.metadata;
    if (pod.spec?.['nodeName'] === undefined) return;
    if (deletionTimestamp !== undefined) this.once(`${uid} ends`, () => this.end(pod));
    else if (pod.status?.['phase'] === 'Pending') this.once(`${uid} runs`, () => this.run(pod));
  }

  private once(what: string, act: () => Promise<unknown>): void {
    if (this.done.has(what)) return;
    this.done.add(what);
    act().catch(() => {
      this.done.delete(what);
      // The next list shows again whatever failed.
      this.endWatch();
    });
  }

  private run(pod: KubeObject): Promise<unknown> {
    const conditions = ['Ready', 'ContainersReady'].map((type) => ({ type, status: 'True' }));
    return this.api.patch(
      `${pathOf(pod)}/status`,
      {
        metadata: { uid: pod.metadata.uid },
        status: { phase: 'Running', startTime: new Date().toISOString(), conditions },
      },
      'kubelet',
    );
  }

  private async end(pod: KubeObject): Promise<void> {
    if (pod.metadata.annotations?.[NEVER_ENDS] !== undefined) return;
    await sleep(this.options.endsAfterMs ?? 0);
    // Retries until the pod is gone, like a real kubelet: while etcd hangs, a deletion fails or conflicts with the
    // eviction.
    while (!this.stopped) {
      await this.api.remove(pathOf(pod), { preconditions: { uid: pod.metadata.uid } }).catch(() => undefined);
      const left = await this.api.get(pathOf(pod)).catch(() => pod);
      if (left?.metadata.uid !== pod.metadata.uid) return;
      await sleep(AGAIN_MS);
    }
  }
}
