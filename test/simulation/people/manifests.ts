import type { Chance } from '../world/chance.js';
import type { World } from '../world/world.js';

const API = 'sluice.dev/v1alpha1';
type Manifest = Readonly<Record<string, unknown>>;

const manifest = (kind: string, name: string, spec: object): Manifest => ({
  apiVersion: API,
  kind,
  metadata: { name },
  spec,
});
/** What a change of /etc/b needs, as policies have it. */
const B_ACTIONS = [
  [{ kind: 'none' }],
  [{ kind: 'none' }],
  [{ kind: 'restart', unit: 'b.service' }],
  [{ kind: 'drain' }],
  [{ kind: 'drain' }, { kind: 'restart', unit: 'b.service' }],
  [{ kind: 'drain' }, { kind: 'reboot' }],
];
const APP_ACTIONS = [
  [{ kind: 'drain' }],
  [{ kind: 'drain' }],
  [{ kind: 'drain' }, { kind: 'restart', unit: 'b.service' }],
  [{ kind: 'drain' }, { kind: 'reboot' }],
  [{ kind: 'none' }],
];
const SELECTORS = [
  {},
  { matchLabels: { role: 'edge' } },
  { matchLabels: { role: 'core' } },
  { matchLabels: { zone: 'a' } },
];

/** What the fleet begins with: a pool for each role, and a probe. */
export function beginning(chance: Chance, kubernetes = false): object {
  const probe = manifest('Probe', 'app-ok', {
    nodeSelector: {},
    file: { path: '/etc/app', matches: '^ok' },
    timeout: '1s',
    retries: 0,
  });
  if (!kubernetes) return { apply: [pool(chance, 'edge'), pool(chance, 'core'), probe] };
  // Where there is something to drain, most changes ask for it.
  const drains = manifest('DisruptionPolicy', 'app', {
    nodeSelector: {},
    files: [{ path: '/etc/app', actions: chance.pick(APP_ACTIONS) }],
  });
  return { apply: [withDrain(chance, pool(chance, 'edge')), withDrain(chance, pool(chance, 'core')), probe, drains] };
}

/** A change as somebody may publish it, good or bad. */
export function change(world: World, chance: Chance): object {
  const version = world.bus.changes.length;
  const app = (): Manifest => file(world, chance, 'app', '/etc/app', version);
  const other = (): Manifest => file(world, chance, 'b', '/etc/b', version);
  const what = chance.next();
  if (what < 0.5) return { apply: [app()], ...strategy(chance) };
  if (what < 0.65) return { apply: [app(), other()], ...strategy(chance) };
  if (what < 0.75) return { apply: [other()] };
  if (what < 0.81) return poolChange(chance, world.cluster !== undefined);
  if (what < 0.87)
    return {
      apply: [
        manifest('DisruptionPolicy', 'b', {
          nodeSelector: {},
          files: [{ path: '/etc/b', actions: chance.pick(B_ACTIONS) }],
        }),
      ],
    };
  if (what < 0.92) return { delete: [{ kind: 'File', name: chance.pick(['app', 'b']) }] };
  if (what < 0.95)
    return chance.pick<object>([
      { apply: [{ kind: 'File' }] },
      { delete: [{ kind: 'File', name: 'nothing' }] },
      { apply: [app(), app()] },
    ]);
  return { apply: [pool(chance, 'edge'), other()] };
}

/** Another budget for a pool, or other members, or other words about drains; or the pool goes. */
export function poolChange(chance: Chance, kubernetes: boolean): object {
  const name = chance.pick(['edge', 'core', 'zone-a']);
  if (chance.happens(0.1)) return { delete: [{ kind: 'Pool', name }] };
  return { apply: [kubernetes ? withDrain(chance, pool(chance, name)) : pool(chance, name)] };
}

/** A pool that skips nodes which are silent for some time. */
export function poolThatIgnoresSilence(chance: Chance, kubernetes: boolean): object {
  const { spec, ...rest } = pool(chance, chance.pick(['edge', 'core']));
  const silentNodes = { ignoreAfter: chance.pick(['1m', '3m']) };
  const impatient = { ...rest, spec: { ...(spec as object), silentNodes } };
  return { apply: [kubernetes ? withDrain(chance, impatient) : impatient] };
}

function pool(chance: Chance, name: string): Manifest {
  const matchLabels = name === 'zone-a' ? { zone: 'a' } : { role: chance.happens(0.9) ? name : 'none' };
  const maxUnavailable = chance.pick([1, 1, 2, 2, 3, '50%']);
  return manifest('Pool', name, {
    nodeSelector: { matchLabels },
    maxUnavailable,
    applyTimeout: '60s',
    drainTimeout: '90s',
    drift: chance.pick(['repair', 'repair', 'report']),
  });
}

/** As pools say how their nodes are drained; or they leave it to the defaults. */
function withDrain(chance: Chance, { spec, ...rest }: Manifest): Manifest {
  const drain = {
    onTimeout: chance.pick(['fail', 'defer', 'force']),
    onUncordon: chance.pick(['restore', 'restore', 'give-up']),
    unmanaged: chance.pick(['evict', 'block']),
    ...(chance.happens(0.3) ? { gracePeriod: '3s' } : {}),
  };
  return { ...rest, spec: { ...(spec as object), ...(chance.happens(0.8) ? { drain } : {}) } };
}

/** A file that is good, or bad in one of the ways in which configs are bad. */
function file(world: World, chance: Chance, name: string, path: string, version: number): Manifest {
  const node = chance.pick([...world.nodes.keys()]);
  const content = chance.pick([
    `ok v${version}`,
    `ok v${version}`,
    `ok v${version}`,
    `ok v${version} {{ node.name }}`,
    `ok {{ node.labels.zone }}`,
    // Bad for every node: its probe fails, or it does not parse.
    `bad v${version}`,
    `ok garbage ${version % 3}`,
    // One node does not take it.
    `ok v${version} unlucky:${node};`,
    ...badForOneKind(version),
  ]);
  return manifest('File', name, { nodeSelector: chance.pick(SELECTORS), path, content });
}

/**
 * Contents that are bad for one kind of node only: the probe of the sad fails, and core does not take it. The recipe is
 * the same for all.
 */
const badForOneKind = (version: number): readonly string[] => [badForSad(version), badForCore(version)];
const badForSad = (version: number): string => `{{ node.labels.mood }} v${version % 3}`;
const badForCore = (version: number): string => `ok v${version % 3} no-{{ node.labels.role }}-but-no-core`;

/** A change for all nodes that is bad for one kind of them, and for which. */
export function badForOneKindChange(
  world: World,
  chance: Chance,
): { readonly body: object; readonly isBadFor: (labels: Readonly<Record<string, string>>) => boolean } {
  const sad = chance.happens(0.5);
  const content = (sad ? badForSad : badForCore)(world.bus.changes.length);
  const body = {
    apply: [manifest('File', 'app', { nodeSelector: {}, path: '/etc/app', content })],
    ...strategy(chance),
  };
  return { body, isBadFor: (labels) => (sad ? labels['mood'] === 'sad' : labels['role'] === 'core') };
}

const strategy = (chance: Chance): object =>
  chance.happens(0.3) ? { strategy: { maxFailures: chance.whole(1, 3) } } : {};
