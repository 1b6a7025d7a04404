import { SERVICES, VIEW_BUCKETS } from '#libs/contracts';
import { until } from '#libs/testing';
import { fleetFixture, type Fleet } from './fleet.js';
import { file } from './manifests.js';
import type { Files } from './node-folders.js';

/** Everything that people see, without the ledger sequences. */
async function views(fleet: Fleet): Promise<Readonly<Record<string, unknown>>> {
  const found = await Promise.all(
    VIEW_BUCKETS.map(async (bucket) => [bucket, await fleet.client.list(bucket)] as const),
  );
  const withoutLedger = ([key, { ledger: _, ...value }]: [string, { readonly ledger: number }]): [string, unknown] => [
    key,
    value,
  ];
  return Object.fromEntries(
    found.map(([bucket, values]) => [
      bucket,
      Object.fromEntries([...values].map(withoutLedger).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    ]),
  );
}

const others = (node: string): Files => ({
  ...(node.startsWith('edge') ? { '/etc/more.conf': 'more\n' } : {}),
  ...(node.startsWith('core') ? { '/etc/core.conf': 'core\n' } : {}),
});

describe('a fleet that keeps each fact as short as possible', () => {
  // The merger looks every second, and every fact is old.
  const stage = fleetFixture({
    sizes: [2, 1, 3],
    env: { SLUICE_LEDGER_DAYS: '0', SLUICE_CLEANUP_SECONDS: '1', SLUICE_SNAPSHOT_FACTS: '1' },
  });
  const first = async (): Promise<number> => (await stage.fleet.client.inspect()).ledger.first;

  /** All are killed at once. Each copy that starts to lead stores a snapshot of its fold. */
  const killAndStart = async (): Promise<void> => {
    const { fleet } = stage;
    await Promise.all(SERVICES.map((service) => fleet.processes.kill(service)));
    for (const service of SERVICES) fleet.startService(service);
    await until(
      async () => (await fleet.client.inspect().catch(() => undefined))?.services.length === SERVICES.length,
      'every service answers',
    );
    for (const request of ['ops.config.plan', 'ops.known-bad.list', 'ops.rollout.list', 'ops.node.list'])
      await until(
        () =>
          fleet.client.request(request, {}).then(
            () => true,
            () => false,
          ),
        `${request} is answered`,
      );
  };

  test('has the same state after all services were killed and started from snapshots only', async () => {
    const { fleet } = stage;
    const content = 'motd {{ node.name }}\n';
    const [good, edge] = [await fleet.apply(file('motd', content)), await fleet.apply(file('more', 'more\n', 'edge'))];
    for (const change of [good, edge]) expect(await fleet.ended(change)).toMatchObject({ phase: 'committed' });
    const refused = await fleet.apply(file('other', '{{ node.nothing }}\n'));
    expect(await fleet.ended(refused)).toMatchObject({ phase: 'rejected' });
    for (const change of [good, edge]) await fleet.when('rollouts', change, ({ phase }) => phase === 'succeeded');
    // Each service needs two snapshots: everything before the older one is trimmed.
    await killAndStart();
    const { last } = (await fleet.client.inspect()).ledger;
    const core = await fleet.apply(file('core', 'core\n', 'core'));
    await fleet.ended(core);
    await fleet.when('rollouts', core, ({ phase }) => phase === 'succeeded');
    await killAndStart();
    await until(async () => (await first()) >= last, 'the ledger is trimmed');
    const before = await views(fleet);
    await killAndStart();
    expect(await views(fleet)).toEqual(before);
    const services = await until(async () => {
      const { services: found } = await fleet.client.inspect();
      return found.length === SERVICES.length ? found : undefined;
    }, 'every service answers');
    expect(services.map(({ halted }) => halted)).toEqual(SERVICES.map(() => ''));
    expect(fleet.files()).toEqual(fleet.filesWith((node) => ({ '/etc/motd.conf': `motd ${node}\n`, ...others(node) })));
  });

  test('accepts the next change, refuses the next bad one, and keeps everything that is referenced', async () => {
    const { fleet } = stage;
    const next = await fleet.apply(file('motd', 'next\n'));
    expect(await fleet.ended(next)).toMatchObject({ phase: 'committed', nodes: 6 });
    expect(fleet.files()).toEqual(fleet.filesWith((node) => ({ '/etc/motd.conf': 'next\n', ...others(node) })));
    const statuses = await fleet.client.list('status');
    for (const [node, { hash, desired }] of statuses)
      for (const one of [hash, desired]) expect(await fleet.client.config(node, one)).toBeDefined();
    expect(await fleet.ended(await fleet.apply(file('other', '{{ node.nothing }}\n')))).toMatchObject({
      phase: 'rejected',
    });
  });
});
