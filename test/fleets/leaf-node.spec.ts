import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '#libs/process';
import { TcpProxy, until } from '#libs/testing';
import { file, manifest } from '../e2e/manifests.js';
import { Installation } from './installation.js';

/**
 * A fleet that the hub cannot reach, because it is behind a firewall: its server connects to the server of the hub, as
 * a leaf node. The configuration is the one in the guide, and the server of the fleet uses no other way than
 * the proxy of this test.
 */
let hub: Installation;
let europe: Installation;
let leaf: TcpProxy;

const ofHub = (leafPort: number): string => `
leafnodes { listen: "127.0.0.1:${leafPort}" }
accounts {
  HUB: { jetstream: enabled, users: [{ user: hub, password: hub }] }
  EUROPE: { users: [{ user: europe, password: europe }] }
}
default_js_domain: { EUROPE: "" }
`;
const ofFleet = (port: number): string => `
leafnodes { remotes: [{ url: "nats://europe:europe@127.0.0.1:${port}", ignore_discovered_servers: true }] }
default_js_domain: { "$G": "" }
`;

beforeAll(async () => {
  const port = await freePort();
  leaf = await TcpProxy.to(port);
  hub = await Installation.start('hub', 0, 8, { config: ofHub(port), user: 'hub', password: 'hub' });
  europe = await Installation.start('europe', 4, 600, { config: ofFleet(leaf.port) });
  writeFileSync(join(hub.folder, 'europe.password'), 'europe');
  const entry = { name: 'europe', server: hub.ownUrl, user: 'europe', passwordFile: 'europe.password' };
  writeFileSync(join(hub.folder, 'fleets.yaml'), JSON.stringify({ fleets: [entry] }));
  mkdirSync(join(hub.folder, 'applier'));
  hub.processes.start('applier', [
    ...['applier', '--targets', 'fleets', '--inventory', join(hub.folder, 'fleets.yaml')],
    ...['--state', join(hub.folder, 'applier'), '--heartbeat-seconds', '1', '--check-seconds', '1'],
  ]);
  await until(async () => (await hub.client.reportingNodes()).has('europe'), 'the fleet has joined');
});
afterAll(async () => {
  await Promise.all([hub, europe].map((one) => one?.close()));
  await leaf?.cut();
});

const change = (text: string): object =>
  manifest('FleetChange', 'motd', { nodeSelector: {}, apply: [file('motd', `${text} from {{ node.name }}\n`)] });
const everywhere = (text: string): readonly string[] => europe.nodes.map((node) => `${text} from ${node}\n`);

it('rolls a change out in a fleet behind a leaf node, and takes it back', async () => {
  const view = await hub.ended(await hub.apply(change('hello')));
  expect([view.phase, view.reason]).toEqual(['committed', '']);
  expect(europe.contents('/etc/motd.conf')).toEqual(everywhere('hello'));
});

it('keeps the ledgers of both apart', async () => {
  const own = await hub.client.list('nodes');
  expect([...own.keys()]).toEqual(['europe']);
  expect([...(await europe.client.list('nodes')).keys()].sort()).toEqual([...europe.nodes].sort());
  expect(await hub.client.identity()).not.toBe(await europe.client.identity());
});

it('defers the fleet while its leaf node is cut off, and catches up afterwards', async () => {
  await leaf.cut();
  await until(async () => (await hub.client.get('nodes', 'europe'))?.state === 'silent', 'the fleet is silent');
  expect((await hub.ended(await hub.apply(change('welcome')))).phase).toBe('committed');
  expect(europe.contents('/etc/motd.conf')).toEqual(everywhere('hello'));
  await leaf.restore();
  await until(
    () => europe.contents('/etc/motd.conf').every((text) => text.startsWith('welcome')),
    'the fleet has caught up',
  );
});

it('deletes there what it published', async () => {
  expect((await hub.run('delete', 'FleetChange', 'motd', '--wait')).code).toBe(0);
  expect(europe.contents('/etc/motd.conf')).toEqual(['none']);
});
