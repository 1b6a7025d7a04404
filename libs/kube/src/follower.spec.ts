import type { V1Node } from '@kubernetes/client-node';
import { ApiGate, describeOnKube, nodePath, until } from '#libs/testing';
import { KubeConnection } from './connection.js';
import { Follower, type FollowerOptions } from './follower.js';
import { nodeOf } from './nodes.js';

/** Nodes as a follower makes them out, and what it was told. */
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
      listed: (all) => {
        this.lists += 1;
        this.nodes.clear();
        for (const raw of all) this.note(raw);
      },
      heard: (event, raw) => {
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
  const watches = (): number => gate.asked.filter((line) => line.includes('watch=1')).length;
  const lists = (): number => gate.asked.filter((line) => line.includes('limit=')).length;
  /** Follows, with a node that it has seen. */
  const follow = async (more: Partial<FollowerOptions<V1Node>> = {}): Promise<Sight> => {
    await world.scene.node(name(1), { seen: 'first' });
    sight = new Sight(connection, more);
    await until(() => seen(1) === 'first', 'the node is seen');
    await until(() => watches() > 0, 'it watches');
    return sight;
  };

  it('sees what there is, what changes, what comes and what goes', async () => {
    const { nodes } = await follow();
    await label(1, 'second');
    await until(() => seen(1) === 'second', 'the change is seen');
    await world.scene.node(name(2), { seen: 'new' });
    await until(() => seen(2) === 'new', 'the new one is seen');
    await world.scene.api.remove(nodePath(name(1)));
    await until(() => !nodes.has(name(1)), 'that it is gone is seen');
    expect(lists()).toBe(1);
  });

  it('goes on after its connection was reset', async () => {
    await follow();
    gate.cut();
    await label(1, 'after');
    await until(() => seen(1) === 'after', 'the change is seen');
    expect(sight?.lists).toBe(1);
  });

  it('lists again after the version that it knows was forgotten', async () => {
    await follow();
    gate.about = /watch=1/;
    gate.mode = { does: 'refuse', code: 410, reason: 'Expired' };
    gate.cut();
    await world.scene.api.remove(nodePath(name(1)));
    await world.scene.node(name(2), { seen: 'new' });
    await until(() => seen(2) === 'new' && seen(1) === undefined, 'what it missed is seen');
    gate.mode = { does: 'pass' };
    await world.scene.node(name(3), { seen: 'newer' });
    await until(() => seen(3) === 'newer', 'it watches again');
  });

  it('asks again, and not in a tight loop, while the server is in trouble', async () => {
    await follow();
    gate.mode = { does: 'refuse', code: 500, reason: 'InternalError' };
    gate.cut();
    await label(1, 'after');
    await until(() => watches() >= 6, 'it asks again');
    expect(seen(1)).toBe('first');
    gate.mode = { does: 'pass' };
    await until(() => seen(1) === 'after', 'the change is seen');
  });

  it('gives a connection up on which it hears nothing', async () => {
    await follow({ silentMs: 300 });
    gate.mode = { does: 'stall' };
    gate.cut();
    await label(1, 'after');
    await until(() => watches() >= 3, 'a silent watch is given up');
    gate.mode = { does: 'pass' };
    await until(() => seen(1) === 'after', 'the change is seen');
  });

  it('goes on after a kill -9 of the API server', async () => {
    await follow();
    world.cluster.killApiServer();
    await until(() => watches() >= 2, 'it notices');
    await world.cluster.restartApiServer();
    await label(1, 'after');
    await until(() => seen(1) === 'after', 'the change is seen');
  });

  it('survives who is told and throws', async () => {
    const told = await follow();
    told.broken = true;
    await label(1, 'lost');
    await world.scene.node(name(2), { seen: 'lost-too' });
    await until(() => told.thrown === 2, 'it was told of both');
    told.broken = false;
    await label(1, 'after');
    await until(() => seen(1) === 'after', 'the next change is seen');
    expect(watches()).toBe(1);
  });

  it('hears nothing more once it was stopped', async () => {
    const { follower } = await follow();
    follower.stop();
    const asked = gate.asked.length;
    await label(1, 'later');
    await world.scene.api.get(nodePath(name(1)));
    expect(seen(1)).toBe('first');
    expect(gate.asked.length).toBe(asked);
  });
});
