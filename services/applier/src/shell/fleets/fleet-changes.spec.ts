import type { FleetClient } from '#libs/client';
import type { Fragment } from '#libs/contracts';
import { FleetChanges } from './fleet-changes.js';

const FILE = { kind: 'File', name: 'motd', labels: {}, spec: { path: '/etc/motd' } } as unknown as Fragment;

/** Another fleet with one change, whose rollout there waits for a node. `id` and body of what is published are kept. */
function scene(open: readonly object[] = []) {
  const published: { readonly id: string | undefined; readonly body: unknown }[] = [];
  const requests: string[] = [];
  const lists: string[] = [];
  let nowMs = 1_000;
  const views: Readonly<Record<string, object>> = {
    changes: { change: 'c5', phase: 'rolling', needs: [], waitsFor: [] },
    rollouts: { applied: 3, nodes: 12, paused: true, reason: 'by me', stalledBy: ['n-7'], worst: [] },
  };
  const client = {
    get: (bucket: string) => Promise.resolve(views[bucket]),
    list: (bucket: string) => {
      lists.push(bucket);
      return Promise.resolve(new Map(bucket === 'changes' ? open.map((one, i) => [`c${i}`, one]) : []));
    },
    request: (subject: string) => {
      requests.push(subject);
      return Promise.resolve({ text: 'it is silent' });
    },
    publishChange: (_source: string, text: string, id?: string) => {
      published.push({ id, body: JSON.parse(text) });
      return Promise.resolve('c5');
    },
  } as unknown as FleetClient;
  let lease: string | undefined = 'l1';
  const changes = new FleetChanges({
    link: { source: 'hub', call: (work) => work(client) },
    lease: () => lease,
    clock: () => nowMs,
    fence: () => Promise.resolve(),
    sleep: () => Promise.resolve(),
  });
  changes.want('File/motd', FILE);
  return {
    changes,
    published,
    requests,
    lists,
    without: (): void => void (lease = undefined),
    later: (ms: number): void => void (nowMs += ms),
  };
}

it('ends as unreachable if the time is over, and says which node the change waits for there', async () => {
  const { changes } = scene();
  await expect(changes.publish(() => 0)).rejects.toMatchObject({
    fault: 'unreachable',
    message: 'c5 had not ended there: 3 of 12 nodes have c5, which is paused there: by me; n-7: it is silent',
  });
});

it('publishes the same content for one lease with the same id', async () => {
  const { changes, published } = scene();
  await changes.publish(() => 0).catch(() => undefined);
  await changes.publish(() => 0).catch(() => undefined);
  expect(published).toHaveLength(2);
  expect(published[1]).toEqual(published[0]);
  expect(published[0]?.id).toMatch(/^l1 [0-9a-f]{12}$/);
});

it('publishes nothing without a lease at first, because the next lease may need no rollback', async () => {
  const { changes, published, without } = scene();
  without();
  await expect(changes.publish(() => 1_000)).rejects.toThrow('waiting for the next lease of the hub');
  expect(published).toEqual([]);
});

it('aborts an open change of its own with other content, and leaves those of others alone', async () => {
  const { changes, requests } = scene([
    { change: 'c5', source: 'hub', phase: 'rolling', message: 'something else' },
    { change: 'c6', source: 'ci', phase: 'rolling', message: 'of others' },
  ]);
  await changes.publish(() => 0).catch(() => undefined);
  expect(requests.filter((subject) => subject === 'ops.rollout.abort')).toEqual(['ops.rollout.abort']);
});

it('lists the fragments once for a comparison of many, and again for the next one', async () => {
  const { changes, lists, later } = scene();
  const ids = ['motd', 'news', 'issue', 'hosts'].map((name) => `File/${name}`);
  const compare = async (): Promise<void> => {
    for (const id of ids) expect(await changes.differs(id, FILE)).toBe(`${id} does not exist there`);
  };
  await compare();
  expect(lists).toEqual(['fragments']);
  await compare();
  expect(lists).toEqual(['fragments', 'fragments']);
  later(10_000);
  await changes.differs('File/other', FILE);
  expect(lists).toHaveLength(3);
});

it('compares what was published with a list that is newer', async () => {
  const { changes, lists } = scene();
  await changes.differs('File/motd', FILE);
  await changes.publish(() => 0).catch(() => undefined);
  const before = lists.length;
  await changes.differs('File/news', FILE);
  expect(lists).toHaveLength(before + 1);
});
