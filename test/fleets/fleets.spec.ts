import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ChangeView } from '#libs/contracts';
import { until } from '#libs/testing';
import { file, manifest } from '../e2e/manifests.js';
import { Installation } from './installation.js';

/** A hub without machines, whose nodes are three fleets of twelve machines each. */
const NAMES = ['europe', 'america', 'asia'];
let hub: Installation;
let regions: readonly Installation[];

beforeAll(async () => {
  [hub, ...regions] = await Promise.all([
    Installation.start('hub', 0, 8),
    ...NAMES.map((name) => Installation.start(name, 12, 600)),
  ]);
  const fleets = regions.map(({ name, url }) => ({ name, server: url, labels: { tier: 'region' } }));
  writeFileSync(join(hub.folder, 'fleets.yaml'), JSON.stringify({ fleets }));
  startApplier('applier');
  await until(async () => (await hub.client.reportingNodes()).size === 3, 'all fleets have joined');
  const pool = manifest('Pool', 'regions', { nodeSelector: TIER, maxUnavailable: 1, applyTimeout: '1h' });
  expect((await hub.ended(await hub.apply(pool))).phase).toBe('committed');
});
afterAll(() => Promise.all([hub, ...regions].map((one) => one?.close())));

function startApplier(name: string): void {
  mkdirSync(join(hub.folder, name), { recursive: true });
  hub.processes.start(name, [
    ...['applier', '--targets', 'fleets', '--inventory', join(hub.folder, 'fleets.yaml')],
    ...['--state', join(hub.folder, name), '--heartbeat-seconds', '1', '--check-seconds', '1'],
  ]);
}

const TIER = { matchLabels: { tier: 'region' } };
const change = (name: string, ...apply: readonly object[]): object =>
  manifest('FleetChange', name, { nodeSelector: TIER, apply });
const greeting = (text: string): object => file('motd', `${text} from {{ node.name }}\n`);
/** A probe of a file in /etc, named as the file is. */
const probe = (name: string, matches: string, of = name): object =>
  manifest('Probe', name, { nodeSelector: {}, file: { path: `/etc/${of}.conf`, matches }, retries: 0 });
const greets = probe('motd', '^hello');

/** What the hub has published in a region. */
const own = (changes: ReadonlyMap<string, ChangeView>): readonly ChangeView[] =>
  [...changes.values()].filter(({ source }) => source === 'hub');

/** When each region committed its last change of the hub, and began it. */
async function spans(): Promise<readonly (readonly [begin: string, end: string])[]> {
  const all = await Promise.all(
    regions.map(async ({ client }) => {
      return own(await client.list('changes')).map(({ acceptedAt, endedAt }) => [acceptedAt, endedAt] as const);
    }),
  );
  return all.flat().sort();
}

it('rolls a change through one fleet after the other, and through the nodes of each', async () => {
  const view = await hub.ended(await hub.apply(change('motd', greeting('hello'), greets)));
  expect([view.phase, view.reason]).toEqual(['committed', '']);
  for (const region of regions)
    expect(region.contents('/etc/motd.conf')).toEqual(region.nodes.map((node) => `hello from ${node}\n`));
  const order = await spans();
  expect(order).toHaveLength(3);
  for (const [i, [begin]] of order.entries()) if (i > 0) expect(begin >= (order[i - 1]?.[1] ?? '')).toBe(true);
});

it('stops at the first fleet that rolls a change back, which is then known-bad', async () => {
  const before = (await spans()).length;
  const bad = await hub.apply(change('motd', greeting('goodbye'), greets));
  const view = await hub.ended(bad);
  expect(view.outcome).toBe('reverted');
  expect(view.reason).toMatch(/^america is invalid: c\d+ was reverted there: america-\d\d is invalid: the probe motd/);
  expect((await spans()).length - before).toBe(1);
  for (const region of regions)
    expect(region.contents('/etc/motd.conf')).toEqual(region.nodes.map((node) => `hello from ${node}\n`));
  const again = await hub.ended(await hub.apply(change('motd', greeting('goodbye'), greets)));
  expect(again.phase).toBe('rejected');
});

it('passes on what one fleet has found to be bad, so that the others refuse it at once', async () => {
  const [europe, america] = regions as [Installation, Installation];
  const news = (text: string): readonly object[] => [file('news', text), probe('news', '^ok')];
  for (const region of [europe, america])
    expect((await region.ended(await region.apply(...news('ok\n')))).phase).toBe('committed');
  expect((await europe.ended(await europe.apply(...news('broken\n')))).outcome).toBe('reverted');
  const isKnown = async ({ client }: Installation): Promise<boolean> =>
    [...(await client.list('known-bad')).values()].some(
      ({ fleet, node }) => fleet === 'europe' && node.startsWith('europe-'),
    );
  await until(() => isKnown(hub), 'the hub knows it');
  await until(() => isKnown(america), 'america knows it');
  const ended = await america.ended(await america.apply(...news('broken\n')));
  expect(ended.phase).toBe('rejected');
  const { stdout } = await america.run('why', ended.change);
  expect(stdout).toMatch(/europe-\d\d of the fleet europe reported it as invalid/);
});

it('rolls back the fleets that have a change when a later one fails', async () => {
  const [europe, america, asia] = regions as [Installation, Installation, Installation];
  // An operator there has a rule of their own.
  const strict = probe('strict', '^hello from', 'motd');
  expect((await america.ended(await america.apply(strict))).phase).toBe('committed');
  const view = await hub.ended(await hub.apply(change('motd', greeting('hello again'), greets)));
  expect(view.outcome).toBe('reverted');
  expect(view.reason).toContain('strict');
  for (const region of [europe, america, asia])
    expect(region.contents('/etc/motd.conf')).toEqual(region.nodes.map((node) => `hello from ${node}\n`));
  await america.run('delete', 'Probe', 'strict', '--wait');
});

it('says which node of a fleet it waits for, and continues when an applier is killed', async () => {
  const [, america] = regions as [Installation, Installation];
  const before = own(await america.client.list('changes')).length;
  const published = await hub.apply(change('motd', greeting('hello there'), greets));
  await until(async () => own(await america.client.list('changes')).length > before, 'it is published in america');
  america.processes.freeze('appliers');
  const held = await until(async () => {
    const { stdout } = await hub.run('why', 'america');
    return /in that fleet, .*america-\d\d: /.test(stdout) ? stdout : undefined;
  }, 'why names a node in america');
  expect(held).toContain('of 12 nodes have c');
  // A copy that stops hands the fleet over, and the next one follows the change that is in progress there.
  await hub.processes.stop('applier');
  startApplier('applier-2');
  america.processes.thaw('appliers');
  const view = await hub.ended(published);
  expect([view.phase, view.reason]).toEqual(['committed', '']);
  const changes = own(await america.client.list('changes'));
  expect(changes.map(({ phase }) => phase).slice(-1)).toEqual(['committed']);
  expect(changes).toHaveLength(before + 1);
  for (const region of regions)
    expect(region.contents('/etc/motd.conf')).toEqual(region.nodes.map((node) => `hello there from ${node}\n`));
});

it('continues when an applier is killed or paused in the middle of a change, also once the paused one goes on', async () => {
  const [europe] = regions as [Installation];
  const before = own(await europe.client.list('changes')).length;
  const published = await hub.apply(change('motd', greeting('hello again there'), greets));
  await until(async () => own(await europe.client.list('changes')).length > before, 'it is published in europe');
  europe.processes.freeze('appliers');
  // The lease lasts an hour. Nobody waits for its end.
  hub.processes.freeze('applier-2');
  startApplier('applier-3');
  await until(async () => {
    const { stdout } = await hub.run('why', 'europe');
    return /in that fleet, .*europe-\d\d: /.test(stdout);
  }, 'another copy follows the change in europe');
  hub.processes.thaw('applier-2');
  await hub.processes.kill('applier-3');
  europe.processes.thaw('appliers');
  const view = await hub.ended(published);
  expect([view.phase, view.reason]).toEqual(['committed', '']);
  expect(own(await europe.client.list('changes'))).toHaveLength(before + 1);
  for (const region of regions)
    expect(region.contents('/etc/motd.conf')).toEqual(region.nodes.map((node) => `hello again there from ${node}\n`));
});

it('defers a fleet that cannot be reached, which keeps working and catches up', async () => {
  const [, , asia] = regions as [Installation, Installation, Installation];
  await asia.proxy.cut();
  await until(async () => (await hub.client.get('nodes', 'asia'))?.state === 'silent', 'asia is silent');
  const view = await hub.ended(await hub.apply(change('motd', greeting('hello all'), greets)));
  expect(view.phase).toBe('committed');
  expect((await asia.ended(await asia.apply(file('local', 'ours\n')))).phase).toBe('committed');
  expect(asia.contents('/etc/motd.conf')).toEqual(asia.nodes.map((node) => `hello again there from ${node}\n`));
  await asia.proxy.restore();
  await until(
    () => asia.contents('/etc/motd.conf').every((text) => text.startsWith('hello all')),
    'asia has caught up',
  );
  expect(asia.contents('/etc/local.conf')).toEqual(['ours\n']);
});

it('a fleet that is cut off in the middle of a change finishes it on its own', async () => {
  const [europe] = regions as [Installation];
  const before = own(await europe.client.list('changes')).length;
  const published = await hub.apply(change('motd', greeting('hello once more'), greets));
  await until(async () => own(await europe.client.list('changes')).length > before, 'it is published in europe');
  europe.processes.freeze('appliers');
  await europe.proxy.cut();
  const view = await hub.ended(published);
  expect(view.phase).toBe('committed');
  const status = await hub.client.get('status', 'europe');
  expect([status?.verdict, status?.restored]).toEqual(['unreachable', false]);
  europe.processes.thaw('appliers');
  await until(
    () => europe.contents('/etc/motd.conf').every((text) => text.startsWith('hello once more')),
    'europe has it',
  );
  await europe.proxy.restore();
  await until(
    async () => (await hub.client.get('status', 'europe'))?.restored === true,
    'the hub knows that europe is done',
  );
  await until(async () => {
    const now = await hub.client.get('status', 'europe');
    return now?.hash === now?.desired;
  }, 'europe has what the hub wants');
  expect(europe.contents('/etc/motd.conf').every((text) => text.startsWith('hello once more'))).toBe(true);
  expect(own(await europe.client.list('changes'))).toHaveLength(before + 1);
});

it('refuses a fleet that it has already, and itself, and says so', async () => {
  const [europe] = regions as [Installation];
  const file = join(hub.folder, 'fleets.yaml');
  const { fleets } = JSON.parse(readFileSync(file, 'utf8')) as { readonly fleets: readonly object[] };
  const more = [
    { name: 'europe-2', server: europe.url.replace('127.0.0.1', 'localhost') },
    { name: 'myself', server: hub.url },
  ];
  writeFileSync(file, JSON.stringify({ fleets: [...fleets, ...more] }));
  const shown = await until(async () => {
    const { stdout } = await hub.run('doctor');
    return /europe-2 is not served/.test(stdout) && /myself is not served/.test(stdout) ? stdout : undefined;
  }, 'doctor says that two entries are refused');
  expect(shown).toMatch(/europe-2 is not served: the node europe of this hub is the same fleet/);
  expect(shown).toMatch(/myself is not served: \S+ has the ledger of this hub/);
  expect((await hub.client.list('nodes')).size).toBe(3);
  writeFileSync(file, JSON.stringify({ fleets }));
  await until(async () => !(await hub.run('doctor')).stdout.includes('is not served'), 'doctor has nothing to say');
});

it('refuses a second hub with the same source, and names the first', async () => {
  const [, , asia] = regions as [Installation, Installation, Installation];
  const second = await Installation.start('second', 0, 600);
  try {
    writeFileSync(
      join(second.folder, 'fleets.yaml'),
      JSON.stringify({ fleets: [{ name: 'far-east', server: asia.url }] }),
    );
    second.processes.start('applier', [
      ...['applier', '--targets', 'fleets', '--inventory', join(second.folder, 'fleets.yaml')],
      ...['--state', join(second.folder, 'applier'), '--check-seconds', '1'],
    ]);
    const shown = await until(async () => {
      const { stdout } = await second.run('doctor');
      return /far-east is not served/.test(stdout) ? stdout : undefined;
    }, 'doctor says that the hub is refused');
    const { server } = (await asia.client.hubClaim('hub')).claim ?? {};
    expect(server).toContain(new URL(hub.ownUrl).port);
    expect(shown).toContain(`the hub at ${server}, whose node asia is this fleet, publishes there as the source hub`);
    expect((await second.client.list('nodes')).size).toBe(0);
    const entry = { name: 'far-east', server: asia.url, source: 'second' };
    writeFileSync(join(second.folder, 'fleets.yaml'), JSON.stringify({ fleets: [entry] }));
    await until(async () => (await second.client.reportingNodes()).has('far-east'), 'with its own source, it joins');
  } finally {
    await second.close();
  }
});

it('leaves alone what a fleet has published itself, and says whose it is', async () => {
  const view = await hub.ended(await hub.apply(change('local', file('local', 'of the hub\n'))));
  expect(view.outcome).toBe('reverted');
  expect(view.reason).toContain('File/local belongs to the source cli in that fleet');
  expect((regions[2] as Installation).contents('/etc/local.conf')).toEqual(['ours\n']);
});

it('deletes in every fleet what the change published there, with one change', async () => {
  const before = (await spans()).length;
  const { code, stdout, stderr } = await hub.run('delete', 'FleetChange', 'motd', '--wait');
  expect([code, code === 0 ? '' : stdout + stderr]).toEqual([0, '']);
  for (const region of regions) expect(region.contents('/etc/motd.conf')).toEqual(['none']);
  expect((await spans()).length - before).toBe(3);
});

it('shows in a diff how a fleet differs from what the hub wants there', async () => {
  const [europe] = regions as [Installation];
  const before = await hub.client.get('status', 'europe');
  const noted = await hub.ended(await hub.apply(change('noted', file('noted', 'ours\n'))));
  expect(noted.phase).toBe('committed');
  expect(await hub.run('diff', 'europe')).toMatchObject({ code: 0, stdout: '' });
  const { code, stdout } = await hub.run('diff', 'europe', '--from', before?.hash ?? '');
  expect([code, stdout.split('\n').slice(0, 2)]).toEqual([0, ['--- /dev/null', '+++ b/FleetChange/noted']]);
  expect(stdout).toMatch(/^\+ +name: noted$/m);
  const gone = await europe.run('delete', 'File', 'noted', '--take-over', '--wait');
  expect([gone.code, gone.code === 0 ? '' : gone.stderr]).toEqual([0, '']);
  const difference = 'FleetChange/noted: File/noted does not exist there';
  await until(async () => (await hub.run('diff', 'europe')).stdout.includes(`\n! ${difference}`), 'the diff shows it');
  const shown = await hub.run('diff', 'europe');
  expect(shown.stdout.split('\n')[1]).toBe('+++ europe, as last reported');
  expect(shown.stderr).toContain('changes are deferred until it is undone');
  expect(JSON.parse((await hub.run('diff', 'europe', '-o', 'json')).stdout)).toMatchObject({ drift: [difference] });
});
