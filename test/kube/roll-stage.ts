import { CORDON_ANNOTATION } from '#libs/contracts';
import { nodePath, type KubeApi, type KubeObject, type KubeScene } from '#libs/testing';

/** The size of a roll, and how much of it is disturbed. */
export interface RollShape {
  readonly sizes: readonly [edge: number, core: number, rest: number];
  readonly podsEach: number;
  /** How many pods of each Deployment may be unavailable at once. */
  readonly slack: number;
  readonly withinMs: number;
}

export const SHORT_ROLL: RollShape = { sizes: [4, 2, 3], podsEach: 4, slack: 3, withinMs: 900_000 };
export const LONG_ROLL: RollShape = { sizes: [10, 8, 12], podsEach: 10, slack: 6, withinMs: 900_000 };

const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const EVERY_MS = 100;

/**
 * A Deployment with a budget for each pool, whose pods run only on nodes of that pool. Its healthy pods are counted all
 * the time.
 */
export class Workload {
  /** Every moment at which fewer pods were healthy than their budget requires. */
  readonly short: string[] = [];
  /** The number of looks. */
  looks = 0;
  private readonly least = new Map<string, number>();
  private stopped = false;
  private watching: Promise<void> = Promise.resolve();

  constructor(private readonly api: KubeApi) {}

  async deploy(app: string, replicas: number, minAvailable: number): Promise<void> {
    const labels = { app };
    await this.api.create('/apis/apps/v1/namespaces/default/deployments', {
      metadata: { name: app },
      spec: {
        replicas,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            nodeSelector: { role: app },
            terminationGracePeriodSeconds: 5,
            containers: [{ name: 'c', image: 'x' }],
          },
        },
      },
    });
    await this.api.create(BUDGETS, {
      metadata: { name: app },
      spec: { minAvailable, selector: { matchLabels: labels } },
    });
    this.least.set(app, minAvailable);
  }

  /** Whether all requested pods are healthy, and the budgets have counted them. */
  async isUp(replicas: ReadonlyMap<string, number>): Promise<boolean> {
    const healthy = await this.healthy();
    const budgets = await this.api.list(BUDGETS);
    return [...replicas].every(
      ([app, count]) =>
        healthy.get(app) === count &&
        Number(budgets.find(({ metadata }) => metadata.name === app)?.status?.['currentHealthy']) === count,
    );
  }

  watch(): void {
    this.watching = this.run();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.watching;
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      // While the API server is away, nobody can ask it to evict a pod.
      const healthy = await this.healthy().catch(() => undefined);
      if (healthy !== undefined) this.looks += 1;
      for (const [app, count] of healthy ?? []) {
        const least = this.least.get(app) ?? 0;
        if (count < least) this.short.push(`${app}: ${count} of at least ${least}`);
      }
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }

  private async healthy(): Promise<ReadonlyMap<string, number>> {
    const counts = new Map([...this.least.keys()].map((app) => [app, 0]));
    for (const pod of await this.api.list('/api/v1/pods')) {
      const app = pod.metadata.labels?.['app'] ?? '';
      if (isHealthy(pod) && counts.has(app)) counts.set(app, (counts.get(app) ?? 0) + 1);
    }
    return counts;
  }
}

const isHealthy = ({ metadata, status }: KubeObject): boolean =>
  metadata.deletionTimestamp === undefined && status?.['phase'] === 'Running';

/** The lease for which a Node is cordoned, and the pods on it. Undefined while the API server does not answer. */
export async function nodeState(
  { api }: KubeScene,
  node: string,
): Promise<{ readonly cordoned: boolean; readonly marked: boolean; readonly pods: number } | undefined> {
  try {
    const [found, pods] = [
      await api.get(nodePath(node)),
      await api.list(`/api/v1/pods?fieldSelector=spec.nodeName%3D${node}`),
    ];
    return {
      cordoned: found?.spec?.['unschedulable'] === true,
      marked: found?.metadata.annotations?.[CORDON_ANNOTATION] !== undefined,
      pods: pods.length,
    };
  } catch {
    return undefined;
  }
}
