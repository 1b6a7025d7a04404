import type { KubeResource, LiveObject } from '#libs/kube/lean';
import { OWN_APPLY_SET } from './apply-set.js';
import { ObjectWatches, type WatchedApi } from './object-watches.js';

const MAPS: KubeResource = { root: '/api/v1', plural: 'configmaps', isNamespaced: true };
const KIND = { apiVersion: 'v1', kind: 'ConfigMap' };
const ID = 'ConfigMap/default/x';
const map = (resourceVersion: string, value = '1'): LiveObject => ({
  ...KIND,
  metadata: { name: 'x', namespace: 'default', uid: 'u', resourceVersion },
  data: { value },
});

/** The watches of an API server, which tell what the test says. */
class Server implements WatchedApi {
  readonly watches: { readonly resource: KubeResource; readonly tells: Parameters<WatchedApi['follow']>[1] }[] = [];
  stopped = 0;

  follow: WatchedApi['follow'] = (resource, tells) => {
    this.watches.push({ resource, tells: tells as never });
    return () => void (this.stopped += 1);
  };

  /** What the last watch tells. */
  get tells(): Parameters<WatchedApi['follow']>[1] {
    const last = this.watches.at(-1);
    if (last === undefined) throw new Error('nothing is watched');
    return last.tells;
  }
  lists(...objects: readonly LiveObject[]): void {
    this.tells.onList(objects.map((object) => this.tells.pick(object)));
  }
}

describe('what is known of objects', () => {
  let server: Server;
  let watches: ObjectWatches;
  beforeEach(() => {
    server = new Server();
    watches = new ObjectWatches(server, OWN_APPLY_SET, () => undefined);
    watches.follow('ConfigMap', MAPS, KIND);
    server.lists();
  });
  afterEach(() => watches.stop());
  const isVerified = (): boolean => watches.isVerified('ConfigMap', ID, 'e');

  it('is that nobody has changed one since it was applied', () => {
    watches.verify(ID, 'e', map('5'), 1);
    expect(isVerified()).toBe(true);
    server.tells.onEvent('set', map('6'));
    expect(isVerified()).toBe(true);
    server.tells.onEvent('set', map('7', '2'));
    expect(isVerified()).toBe(false);
  });

  it('is what a later list says, also if its versions are lower because the data was replaced', () => {
    watches.verify(ID, 'e', map('50'), 1);
    server.lists(map('7', '2'));
    expect(isVerified()).toBe(false);
    server.tells.onEvent('set', map('8'));
    expect(isVerified()).toBe(true);
  });

  it('is not that one is there whose deletion is known before the answer to the write arrives', () => {
    server.tells.onEvent('deleted', map('7'));
    watches.verify(ID, 'e', map('5'), 1);
    expect([isVerified(), watches.statusOf('ConfigMap', ID)]).toEqual([false, undefined]);
    watches.verify(ID, 'e', map('9'), 2);
    expect(isVerified()).toBe(true);
  });

  it('does not count for a later lease until a read confirms the version', () => {
    watches.verify(ID, 'e', map('5'), 10);
    expect([watches.isFromBefore(ID, 10), watches.isFromBefore(ID, 11)]).toEqual([false, true]);
    watches.confirm(ID, '5', 12);
    expect([watches.isFromBefore(ID, 11), isVerified()]).toEqual([false, true]);
    watches.confirm(ID, '6', 13);
    expect([isVerified(), watches.isAsVerified(ID, 'e', map('6'))]).toEqual([false, true]);
    watches.confirm(ID, undefined, 14);
    expect(isVerified()).toBe(false);
  });

  it('is nothing once the server does not serve the kind any more', () => {
    watches.verify(ID, 'e', map('5'), 1);
    server.tells.onMissing?.();
    expect([isVerified(), watches.statusOf('ConfigMap', ID)]).toEqual([false, undefined]);
    server.lists(map('5'));
    expect(isVerified()).toBe(true);
  });

  it('comes from where the kind is served now', () => {
    watches.verify(ID, 'e', map('5'), 1);
    watches.follow('ConfigMap', MAPS, KIND);
    watches.follow('ConfigMap', { ...MAPS, root: '/api/v2' }, KIND);
    expect([server.watches.map(({ resource }) => resource.root), server.stopped]).toEqual([['/api/v1', '/api/v2'], 1]);
    expect(isVerified()).toBe(false);
    server.lists(map('5'));
    expect(isVerified()).toBe(true);
  });
});
