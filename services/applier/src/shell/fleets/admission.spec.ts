import type { FleetClient } from '#libs/client';
import { admit } from './admission.js';

interface Claim {
  readonly hub: string;
  readonly node: string;
  readonly server: string;
  readonly since: string;
}

/** A fleet whose sources were claimed, and a hub that knows these nodes. */
function scene({ claim, nodes = {}, identity = 'region' }: SceneOptions = {}) {
  const stored = new Map<string, Claim>(claim === undefined ? [] : [['hub', claim]]);
  let isFast = true;
  const fleet = {
    server: 'nats://region:4222',
    identity: () => Promise.resolve(identity),
    hubClaim: (source: string) => Promise.resolve({ claim: stored.get(source), revision: stored.size }),
    hubClaims: () => Promise.resolve([...stored].map(([source, one]) => ({ source, ...one }))),
    claimSource: (source: string, now: Claim) => {
      if (isFast) stored.set(source, now);
      return Promise.resolve(isFast);
    },
  } as unknown as FleetClient;
  const hub = {
    server: 'nats://hub:4222',
    identity: () => Promise.resolve('hub-1'),
    get: (_bucket: string, node: string) => Promise.resolve(nodes[node] && { node, state: nodes[node] }),
  } as unknown as FleetClient;
  return {
    stored,
    slow: (): void => void (isFast = false),
    admit: (name: string, source = 'hub') => admit(fleet, { name, source, hub }),
  };
}

interface SceneOptions {
  readonly claim?: Claim;
  readonly nodes?: Readonly<Record<string, string>>;
  readonly identity?: string;
}

const claim = (hub: string, node: string): Claim => ({ hub, node, server: 'nats://first:4222', since: '2026-01-01' });

it('claims the source in the other fleet, and finds its own claim again', async () => {
  const { admit: admits, stored } = scene();
  await admits('europe');
  expect(stored.get('hub')).toMatchObject({ hub: 'hub-1', node: 'europe', server: 'nats://hub:4222' });
  const before = stored.get('hub');
  await admits('europe');
  expect(stored.get('hub')).toBe(before);
});

it('refuses itself', async () => {
  const { admit: admits, stored } = scene({ identity: 'hub-1' });
  await expect(admits('myself')).rejects.toThrow(/^nats:\/\/region:4222 has the ledger of this hub/);
  expect(stored.size).toBe(0);
});

it('refuses a fleet whose source belongs to another hub, names that, and says what to do', async () => {
  const first = claim('hub-0', 'north');
  const { admit: admits, stored } = scene({ claim: first });
  await expect(admits('europe')).rejects.toThrow(
    'the hub at nats://first:4222, whose node north is this fleet, publishes there as the source hub since 2026-01-01: give the entry of europe another source. If that hub is gone, delete the key hub of the bucket hubs at nats://region:4222',
  );
  expect(stored.get('hub')).toBe(first);
  await admits('europe', 'second');
  expect([...stored.keys()]).toEqual(['hub', 'second']);
});

it('refuses a fleet that it has under another name, until that node was removed', async () => {
  const first = claim('hub-1', 'europe');
  await expect(scene({ claim: first, nodes: { europe: 'ready' } }).admit('eu')).rejects.toThrow(
    'the node europe of this hub is the same fleet: remove one of the two entries. If europe was renamed to eu, run sluice remove europe',
  );
  await expect(scene({ claim: first, nodes: { europe: 'silent' } }).admit('eu')).rejects.toThrow('the same fleet');
  await expect(scene({ claim: first, nodes: { europe: 'ready' } }).admit('eu', 'other')).rejects.toThrow(
    'the same fleet',
  );
  const { admit: admits, stored } = scene({ claim: first, nodes: { europe: 'gone' } });
  await admits('eu');
  expect(stored.get('hub')).toMatchObject({ node: 'eu' });
});

it('publishes nothing if another hub was faster', async () => {
  const { admit: admits, slow } = scene();
  slow();
  await expect(admits('europe')).rejects.toMatchObject({ fault: 'unreachable' });
});
