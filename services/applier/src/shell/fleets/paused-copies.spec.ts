import type { FleetClient } from '#libs/client';
import type { Fragment } from '#libs/contracts';
import { FleetChanges } from './fleet-changes.js';

const file = (content: string): Fragment =>
  ({ kind: 'File', name: 'motd', labels: {}, spec: { path: '/etc/motd', content } }) as unknown as Fragment;

interface Published {
  readonly apply: readonly {
    readonly kind: string;
    readonly metadata: { readonly name: string };
    readonly spec: object;
  }[];
  readonly message: string;
}

/** Another fleet. A change is open for a while, and is then committed. What has an id is published once. */
class Region {
  readonly changes = new Map<
    string,
    { change: string; source: string; phase: string; message: string; apply: Published['apply'] }
  >();
  readonly fragments = new Map<string, object>();
  private readonly ids = new Map<string, string>();
  private looks = 0;

  /** As one copy sees it. `gate` is passed before each call. */
  client(gate: () => Promise<void>): { call<T>(work: (fleet: FleetClient) => Promise<T>): Promise<T> } {
    const fleet = {
      get: (_bucket: string, key: string) => Promise.resolve(this.look(key)),
      list: (bucket: string) =>
        Promise.resolve(new Map<string, object>(bucket === 'changes' ? this.changes : this.fragments)),
      request: (_subject: string, { change }: { readonly change: string }) => {
        const found = this.changes.get(change);
        if (found?.phase !== 'rolling') throw Object.assign(new Error('it has ended'), { name: 'OpsError' });
        this.changes.set(change, { ...found, phase: 'ended' });
        return Promise.resolve({});
      },
      publishChange: (_source: string, text: string, id: string) => {
        const { apply, message } = JSON.parse(text) as Published;
        const change = this.ids.get(id) ?? `c${this.changes.size + 1}`;
        if (!this.ids.has(id)) this.changes.set(change, { change, source: 'hub', phase: 'rolling', message, apply });
        this.ids.set(id, change);
        return Promise.resolve(change);
      },
    } as unknown as FleetClient;
    return {
      call: async (work) => {
        await gate();
        return work(fleet);
      },
    };
  }

  get content(): unknown {
    return (this.fragments.get('File.motd') as { readonly fragment?: Fragment } | undefined)?.fragment?.spec;
  }

  private look(key: string): object | undefined {
    const found = this.changes.get(key);
    this.looks += 1;
    if (found?.phase !== 'rolling' || this.looks % 3 !== 0) return found;
    const { change, source, apply } = found;
    for (const { kind, metadata, spec } of apply)
      this.fragments.set(`${kind}.${metadata.name}`, {
        ...{ gone: false, source, change },
        fragment: { kind, name: metadata.name, labels: {}, spec },
      });
    const committed = { ...found, phase: 'committed' };
    this.changes.set(key, committed);
    return committed;
  }
}

/** The copies of one applier. The last one that claimed the target owns it. */
function copies(region: Region) {
  let owner = '';
  return (name: string, gate: () => Promise<void> = () => Promise.resolve()) => {
    owner = name;
    let lease = '';
    const changes = new FleetChanges({
      link: { source: 'hub', call: region.client(gate).call },
      lease: () => lease,
      clock: () => 1_000,
      fence: () => (owner === name ? Promise.resolve() : Promise.reject(new Error('taken over'))),
      sleep: () => Promise.resolve(),
    });
    return (of: string, content: string): Promise<void> => {
      lease = of;
      changes.want('File/motd', file(content));
      return changes.publish(() => 1_000);
    };
  };
}

/** More calls than one lease takes. */
const CALLS = 12;

it.each(Array.from({ length: CALLS }, (_, at) => at))(
  'a copy that is paused just before call %i, and continues after another has finished its lease and one more, publishes nothing more',
  async (at) => {
    const region = new Region();
    const claim = copies(region);
    let calls = 0;
    let thaw: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (thaw = resolve));
    const one = claim('one', () => (calls++ === at ? held : Promise.resolve()));
    const paused = one('l1', 'new').catch((error: Error) => error);
    await new Promise((resolve) => setImmediate(resolve));
    const two = claim('two');
    await two('l1', 'new');
    expect(region.content).toMatchObject({ content: 'new' });
    expect([...region.changes.values()].map(({ phase }) => phase)).toEqual(['committed']);
    await two('l2', 'newer');
    thaw();
    await paused;
    expect(region.content).toMatchObject({ content: 'newer' });
    expect([...region.changes.values()].map(({ phase }) => phase)).toEqual(['committed', 'committed']);
  },
);
