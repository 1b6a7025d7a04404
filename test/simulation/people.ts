import { nowAndThen } from './faults/fault.js';
import type { World } from './world.js';

const API = 'sluice.dev/v1alpha1';
type Manifest = Readonly<Record<string, unknown>>;

const manifest = (kind: string, name: string, spec: object): Manifest => ({ apiVersion: API, kind, metadata: { name }, spec });
const SELECTORS = [{}, { matchLabels: { role: 'edge' } }, { matchLabels: { role: 'core' } }, { matchLabels: { zone: 'a' } }];

/** A file that is good, or bad in one of the ways in which configs are bad. */
function file(world: World, name: string, path: string, version: number): Manifest {
  const { chance } = world;
  const node = chance.pick([...world.nodes.keys()]);
  const content = chance.pick([`ok v${version}`, `ok v${version}`, `ok v${version} {{ node.name }}`, `bad v${version}`, `ok garbage ${version % 3}`, `ok v${version} unlucky:${node};`, `ok {{ node.labels.zone }}`]);
  return manifest('File', name, { nodeSelector: chance.pick(SELECTORS), path, content });
}

/** What people do to a fleet while it is at work: publish, correct, delete, steer, and change their minds. */
export function people(world: World, endMs: number): void {
  const { chance } = world;
  let version = 0;
  publish(world, { apply: [pool(world, 'edge'), pool(world, 'core'), probe()] });
  nowAndThen(world, endMs, 60_000, () => publish(world, change(world, (version += 1))));
  nowAndThen(world, endMs, 90_000, () => steer(world));
  nowAndThen(world, endMs, 240_000, () => {
    const node = chance.pick([...world.nodes.values()]);
    node.relabel({ ...node.labels, zone: chance.pick(['a', 'b', 'c']), ...(chance.happens(0.3) ? { role: chance.pick(['edge', 'core', 'none']) } : {}) });
  });
  nowAndThen(world, endMs, 300_000, () => {
    if (world.nodes.size < 9) world.addNode(`late-${world.nodes.size}`, { role: chance.pick(['edge', 'core']), zone: 'a' }, chance.happens(0.5));
  });
}

const pool = (world: World, name: string): Manifest =>
  manifest('Pool', name, { nodeSelector: { matchLabels: { role: name } }, maxUnavailable: world.chance.whole(1, 2), applyTimeout: '60s', drainTimeout: '90s', drift: 'repair' });
const probe = (): Manifest => manifest('Probe', 'app-ok', { nodeSelector: {}, file: { path: '/etc/app', matches: '^ok' }, timeout: '1s', retries: 0 });

function change(world: World, version: number): object {
  const { chance } = world;
  const what = chance.next();
  if (what < 0.55) return { apply: [file(world, 'app', '/etc/app', version)], ...strategy(world) };
  if (what < 0.7) return { apply: [file(world, 'app', '/etc/app', version), file(world, 'b', '/etc/b', version)], ...strategy(world) };
  if (what < 0.8) return { apply: [file(world, 'b', '/etc/b', version)] };
  if (what < 0.85) return { apply: [pool(world, chance.pick(['edge', 'core']))] };
  if (what < 0.9) return { apply: [manifest('DisruptionPolicy', 'b', { nodeSelector: {}, files: [{ path: '/etc/b', actions: [{ kind: chance.pick(['none', 'drain']) }] }] })] };
  if (what < 0.95) return { delete: [{ kind: 'File', name: chance.pick(['app', 'b']) }] };
  return { apply: [pool(world, 'edge'), file(world, 'b', '/etc/b', version)] };
}

const strategy = (world: World): object => (world.chance.happens(0.3) ? { strategy: { maxFailures: world.chance.whole(1, 3) } } : {});

function publish(world: World, body: object): void {
  const sequence = world.bus.publishChange('people', JSON.stringify(body));
  world.trace(`people publish c${sequence} ${JSON.stringify(body)}`);
}

function steer(world: World): void {
  const { chance, bus } = world;
  const changes = bus.viewKeysOf('changes');
  const node = chance.pick([...world.nodes.keys()]);
  const what = chance.next();
  if (what < 0.6 && changes.length > 0) {
    const op = chance.pick(['rollout.pause', 'rollout.resume', 'rollout.abort', 'rollout.resume']);
    return world.ask('scheduler', { op, change: changes.at(-1) ?? '', by: 'people', reason: '' });
  }
  if (what < 0.7) {
    const known = bus.viewKeysOf('known-bad').filter((key) => key.startsWith('config.'));
    if (known.length > 0) world.ask('validator', { op: 'forgive', hash: chance.pick(known).slice(7), by: 'people', reason: 'because' });
  } else if (what < 0.85) {
    world.excused.add(node);
    world.ask('scheduler', { op: 'node.skip', node, by: 'people', reason: '' });
  } else if (what < 0.9) {
    world.excused.add(node);
    world.ask('inventory', { op: 'remove', node, by: 'people', reason: '' });
  } else world.ask('scheduler', { op: 'node.why', node });
}

/** At the end people let everything run that they paused. */
export function letGo(world: World): void {
  for (const change of world.bus.viewKeysOf('changes')) world.ask('scheduler', { op: 'rollout.resume', change, by: 'people', reason: '' });
}
