import type { FleetClient } from '#libs/client';
import type { ChangeView } from '#libs/contracts';
import { describeOnClusters, until, type LeanCluster } from '#libs/testing';
import { ClusterFleet } from './cluster-fleet.js';
import { HubFleet } from './hub-fleet.js';
import {
  contentOf,
  credential,
  endsOf,
  keepReady,
  makeReady,
  untilInTheMiddle,
  valueIn,
  versionsIn,
} from './lease-in-the-middle.js';

/** Two clusters that are nodes, and one that no node is. */
interface Stage {
  readonly client: FleetClient;
  readonly own: LeanCluster;
  readonly other: LeanCluster;
  readonly unknown: LeanCluster;
  readonly node: string;
  readonly otherNode: string;
  /** The kubeconfig of `own` becomes another one. */
  replace(kubeconfig: string): Promise<void>;
}

async function published(client: FleetClient, ...apply: readonly object[]): Promise<string> {
  return client.publishChange('me', JSON.stringify({ apply }));
}

const ended = (client: FleetClient, change: string): Promise<ChangeView> =>
  until(async () => {
    const view = await client.get('changes', change);
    return view === undefined || view.endedAt === '' ? undefined : view;
  }, `${change} ends`);

const byName = (name: string): object => ({ kind: 'cluster', name });

/** Both clusters have objects of the same names, with other values. */
async function prepare({ client, own, other }: Stage): Promise<void> {
  const pool = {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'Pool',
    metadata: { name: 'clusters' },
    spec: { nodeSelector: { matchLabels: { kind: 'cluster' } }, maxUnavailable: 1, applyTimeout: '60s' },
  };
  expect(await ended(client, await published(client, pool))).toMatchObject({ outcome: 'committed' });
  const stops = [keepReady(own), keepReady(other)];
  const both = [contentOf(byName('own'), 'first', '0'), contentOf(byName('other'), 'second', 'other')];
  expect(await ended(client, await published(client, ...both))).toMatchObject({ outcome: 'committed', nodes: 2 });
  await Promise.all(stops.map((stop) => stop()));
}

type Bad = readonly [string, string, (stage: Stage) => string, (stage: Stage) => string];
const BAD: readonly Bad[] = [
  ['by one that is broken', '2', () => 'nonsense: [', () => 'kubeconfig'],
  [
    'by one that is not accepted',
    '3',
    ({ own }) => own.kubeconfig({ token: 'expired' }),
    () => 'does not accept the credentials of the kubeconfig',
  ],
  [
    'by that of a cluster that Sluice does not know',
    '5',
    ({ unknown }) => unknown.kubeconfig(),
    () => 'the kubeconfig is for another cluster than before: this one has no ConfigMap default/sluice-applied',
  ],
];
const OF_ANOTHER: Bad = [
  'by that of another node',
  '4',
  ({ other }) => other.kubeconfig(),
  ({ otherNode }) => `the kubeconfig is for the cluster of the node ${otherNode}: replace it`,
];
const OF_ANOTHER_ON_A_HUB: Bad = [
  OF_ANOTHER[0],
  OF_ANOTHER[1],
  OF_ANOTHER[2],
  () => 'its kubeconfig is for the API server',
];

function testsOf(stage: () => Stage, bad: readonly Bad[]): void {
  const untilReady = (): Promise<unknown> =>
    until(async () => {
      const { client, node } = stage();
      return (
        (await client.get('nodes', node))?.state === 'ready' && (await client.get('status', node))?.deferred === ''
      );
    }, 'the node is ready, and not deferred');

  test('by one with a new credential, and the old one is revoked: the lease ends well', async () => {
    const { client, own, node, replace } = stage();
    const [before, after] = [await credential(own, 'before'), await credential(own, 'after')];
    await replace(own.kubeconfig({ token: before.token }));
    const change = await published(client, contentOf(byName('own'), 'first', '1'));
    await untilInTheMiddle(own, '1');
    await replace(own.kubeconfig({ token: after.token }));
    await before.revoke();
    await makeReady(own);
    expect(await ended(client, change)).toMatchObject({ outcome: 'committed' });
    expect(await valueIn(own)).toBe('1');
    expect(await endsOf(client, node, change)).toEqual(['applied: ']);
  });

  test.each(bad)(
    '%s: it ends as unreachable, with the reason, and catches up with a good one',
    async (_, value, kubeconfig, reason) => {
      const { client, own, other, unknown, node, replace } = stage();
      await untilReady();
      const before = [await versionsIn(other), await versionsIn(unknown)];
      const change = await published(client, contentOf(byName('own'), 'first', value));
      await untilInTheMiddle(own, value);
      await replace(kubeconfig(stage()));
      expect(await ended(client, change)).toMatchObject({ outcome: 'committed' });
      const ends = await endsOf(client, node, change);
      expect(ends).toEqual([expect.stringMatching(/^unreachable: /)]);
      expect(ends[0]).toContain(reason(stage()));
      expect([await versionsIn(other), await versionsIn(unknown)]).toEqual(before);
      const stop = keepReady(own);
      await replace(own.kubeconfig());
      await until(async () => (await valueIn(own)) === value, 'it has caught up');
      await untilReady();
      await stop();
      expect([await versionsIn(other), await versionsIn(unknown)]).toEqual(before);
    },
  );
}

describeOnClusters('a kubeconfig in a file that is replaced in the middle of a lease', 3, (lean) => {
  let fleet: ClusterFleet;
  let stage: Stage;
  beforeAll(async () => {
    const [own, other, unknown] = lean() as [LeanCluster, LeanCluster, LeanCluster];
    fleet = await ClusterFleet.start([own, other], { names: ['own', 'other'] });
    const replace = (kubeconfig: string): Promise<void> => Promise.resolve(fleet.replaceKubeconfig('own', kubeconfig));
    stage = { client: fleet.client, own, other, unknown, node: 'own', otherNode: 'other', replace };
    await prepare(stage);
  });
  afterAll(() => fleet?.close());
  testsOf(() => stage, [...BAD, OF_ANOTHER]);
});

describeOnClusters('a kubeconfig in a Secret that is replaced in the middle of a lease', 4, (lean) => {
  let fleet: HubFleet;
  let stage: Stage;
  beforeAll(async () => {
    const [hub, own, other, unknown] = lean() as [LeanCluster, LeanCluster, LeanCluster, LeanCluster];
    fleet = await HubFleet.start(hub);
    for (const [name, cluster] of Object.entries({ own, other }))
      await fleet.secret(`${name}-secret`, cluster.kubeconfig(), { 'sluice.dev/cluster': name, kind: 'cluster', name });
    await fleet.untilNodes({ 'other.fleet': 'ready', 'own.fleet': 'ready' });
    const replace = (kubeconfig: string): Promise<void> => fleet.replace('own-secret', kubeconfig);
    stage = { client: fleet.client, own, other, unknown, node: 'own.fleet', otherNode: 'other.fleet', replace };
    await prepare(stage);
  });
  afterAll(() => fleet?.close());
  testsOf(() => stage, [...BAD, OF_ANOTHER_ON_A_HUB]);
});
