import type { V1Node } from '@kubernetes/client-node';
import { ApiGate, describeOnKube, nodePath, until } from '#libs/testing';
import { KubeConnection } from './connection.js';
import { Follower, type FollowerOptions } from './follower.js';
import { nodeOf } from './nodes.js';

/** The Nodes that a follower reported, and its calls. */
class Sight {
  readonly nodes = new Map<string, string>();
  lists = 0;
  broken = false;
  thrown = 0;
  readonly follower: Follower<V1Node>;

  constructor(connection: KubeConnection, more: Partial<FollowerOptions<V1Node>> = {}) {
    this.follower = new Follower<V1Node>({
      connection,
      path: '/api/v1/nodes',
      pick: (raw) => raw,
      query: 'labelSelector=seen',
      firstPauseMs: 20,
      longestPauseMs: 200,
      ...more,
      onList: (all) => {
        this.lists += 1;
        this.nodes.clear();
        for (const raw of all) this.note(raw);
      },
      onEvent: (event, raw) => {
        if (this.broken) {
          this.thrown += 1;
          throw new Error('planted');
        }
        if (event === 'deleted') this.nodes.delete(raw.metadata?.name ?? '');
        else this.note(raw);
      },
    }).start();
  }

  private note(raw: V1Node): void {
    const { name, labels } = nodeOf(raw);
    this.nodes.set(name, labels['seen'] ?? '');
  }
}

describeOnKube('a follower', (world) => {
  let gate: ApiGate;
  let connection: KubeConnection;
  let sight: Sight | undefined;
  let round = 0;
  beforeEach(async () => {
    gate = await ApiGate.before(world.cluster.access);
    connection = await KubeConnection.open({
      kubeconfig: await world.cluster.kubeconfigBy(gate.url),
      timeoutMs: 2_000,
    });
    round += 1;
  });
  afterEach(async () => {
    sight?.follower.stop();
    await connection.close();
    await gate.close();
  });

  const name = (n: number): string => `f${round}-${n}`;
  const seen = (n: number): string | undefined => sight?.nodes.get(name(n));
  const label = (n: number, value: string): Promise<unknown> =>
    world.scene.api.patch(nodePath(name(n)), { metadata: { labels: { seen: value } } });
  const watches = (): number => gate.requests.filter((line) => line.includes('watch=1')).length;
  const lists = (): number => gate.requests.filter((line) => line.includes('limit=')).length;
  /** Follows Nodes, and waits until it has seen one. */
  const follow = async (more: Partial<FollowerOptions<V1Node>> = {}): Promise<Sight> => {
    await world.scene.node(name(1), { seen: 'first' });
    sight = new Sight(connection, more);
    await until(() => seen(1) === 'first', 'the node is noticed');
    await until(() => watches() > 0, 'it watches');
    return sight;
  };

  it('reports existing, changed, new and deleted objects', async () => {
    const { nodes } = await follow();
    await label(1, 'second');
    await until(() => seen(1) === 'second', 'the change is noticed');
    await world.scene.node(name(2), { seen: 'new' });
    await until(() => seen(2) === 'new', 'the new node is noticed');
    await world.scene.api.remove(nodePath(name(1)));
    await until(() => !nodes.has(name(1)), 'the deletion is noticed');
    expect(lists()).toBe(1);
  });

  it('continues after its connection was reset', async () => {
    await follow();
    gate.cut();
    await label(1, 'after');
    await until(() => seen(1) === 'after', 'the change is noticed');
    expect(sight?.lists).toBe(1);
  });

  it('lists again after its connection was reset, if the last list is old', async () => {
    await follow({ listAgainMs: 0 });
    gate.cut();
    await until(() => sight?.lists === 2, 'it lists');
  });

  it('lists again if the server has forgotten its version', async () => {
    await follow();
    gate.about = /watch=1/;
    gate.mode = { does: 'refuse', code: 410, reason: 'Expired' };
    gate.cut();
    await world.scene.api.remove(nodePath(name(1)));
    await world.scene.node(name(2), { seen: 'new' });
    await until(() => seen(2) === 'new' && seen(1) === undefined, 'the missed events are noticed');
    gate.mode = { does: 'pass' };
    await world.scene.node(name(3), { seen: 'newer' });
    await until(() => seen(3) === 'newer', 'it watches again');
  });

  it('retries with pauses while the server is in trouble', async () => {
    await follow();
    gate.mode = { does: 'refuse', code: 500, reason: 'InternalError' };
    gate.cut();
    await label(1, 'after');
    await until(() => watches() >= 6, 'it asks again');
    expect(seen(1)).toBe('first');
    gate.mode = { does: 'pass' };
    await until(() => seen(1) === 'after', 'the change is noticed');
  });

  it('drops a connection that stays silent, and lists again', async () => {
    await follow({ silentMs: 300 });
    gate.about = /watch=1/;
    gate.mode = { does: 'stall' };
    gate.cut();
    await label(1, 'after');
    // A server whose data was replaced, and whose versions are lower now, sends nothing, however long it is watched.
    await until(() => seen(1) === 'after', 'the change is noticed');
    await until(() => watches() >= 3, 'a silent watch is given up');
    gate.mode = { does: 'pass' };
    await label(1, 'last');
    await until(() => seen(1) === 'last', 'it watches again');
  });

  it('continues after a kill -9 of the API server', async () => {
    await follow();
    world.cluster.killApiServer();
    await until(() => watches() >= 2, 'it opens a new watch');
    await world.cluster.restartApiServer();
    await label(1, 'after');
    await until(() => seen(1) === 'after', 'the change is noticed');
  });

  it('continues if a callback throws', async () => {
    const callbacks = await follow();
    callbacks.broken = true;
    await label(1, 'lost');
    await world.scene.node(name(2), { seen: 'lost-too' });
    await until(() => callbacks.thrown === 2, 'both callbacks were called');
    callbacks.broken = false;
    await label(1, 'after');
    await until(() => seen(1) === 'after', 'the next change is noticed');
    expect(watches()).toBe(1);
  });

  it('calls nothing after it was stopped', async () => {
    const { follower } = await follow();
    follower.stop();
    const requestCount = gate.requests.length;
    await label(1, 'later');
    await world.scene.api.get(nodePath(name(1)));
    expect(seen(1)).toBe('first');
    expect(gate.requests.length).toBe(requestCount);
  });
});
