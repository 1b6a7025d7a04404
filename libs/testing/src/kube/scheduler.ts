import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeApi, KubeObject } from '#libs/api-servers';

const EVERY_MS = 250;

/**
 * Stands in for the scheduler: binds a pod to the node with the fewest pods that is ready, schedulable, and has the
 * labels that the pod selects.
 */
export class Scheduler {
  private stopped = false;

  constructor(private readonly api: KubeApi) {}

  start(): this {
    void this.run();
    return this;
  }

  stop(): void {
    this.stopped = true;
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      // While the API server is away, nothing is scheduled.
      await this.once().catch(() => undefined);
      await sleep(EVERY_MS);
    }
  }

  private async once(): Promise<void> {
    const pods = await this.api.list('/api/v1/pods');
    const waiting = pods.filter(
      ({ spec, metadata }) => spec?.['nodeName'] === undefined && metadata.deletionTimestamp === undefined,
    );
    if (waiting.length === 0) return;
    const load = new Map((await this.api.list('/api/v1/nodes')).filter(takesPods).map((node) => [node, 0]));
    for (const { spec } of pods)
      for (const [node, count] of load) if (node.metadata.name === spec?.['nodeName']) load.set(node, count + 1);
    await Promise.all(
      waiting.map((pod) => {
        const [node] = [...load].filter(([one]) => suits(one, pod)).sort(([, a], [, b]) => a - b)[0] ?? [];
        if (node === undefined) return undefined;
        load.set(node, (load.get(node) ?? 0) + 1);
        return this.bind(pod, node.metadata.name);
      }),
    );
  }

  private bind({ metadata: { name, namespace, uid } }: KubeObject, node: string): Promise<unknown> {
    // A pod that is already gone, or cannot be bound, is handled in the next round.
    return this.api.call('POST', `/api/v1/namespaces/${namespace}/pods/${name}/binding`, {
      metadata: { name, uid },
      target: { kind: 'Node', name: node },
    });
  }
}

function takesPods({ spec, status }: KubeObject): boolean {
  const conditions = (status?.['conditions'] ?? []) as readonly { readonly type: string; readonly status: string }[];
  return (
    spec?.['unschedulable'] !== true && conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True')
  );
}

function suits(node: KubeObject, pod: KubeObject): boolean {
  const selector = (pod.spec?.['nodeSelector'] ?? {}) as Readonly<Record<string, string>>;
  return Object.entries(selector).every(([key, value]) => node.metadata.labels?.[key] === value);
}
