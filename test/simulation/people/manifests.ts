import type { Chance } from '../world/chance.js';
import { commandOf } from '../world/commands.js';
import type { World } from '../world/world.js';

const API = 'sluice.dev/v1alpha1';
type Manifest = Readonly<Record<string, unknown>>;

const manifest = (kind: string, name: string, spec: object): Manifest => ({
  apiVersion: API,
  kind,
  metadata: { name },
  spec,
});
/** The actions for a change of /etc/b, as policies define them. */
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

/** The initial fragments of the fleet: a pool for each role, and a probe. */
export function beginning(chance: Chance, kubernetes = false): object {
  const probe = appProbe('^ok');
  if (!kubernetes) return { apply: [pool(chance, 'edge'), pool(chance, 'core'), probe] };
  // If drains are possible, most changes ask for one.
  const drains = manifest('DisruptionPolicy', 'app', {
    nodeSelector: {},
    files: [{ path: '/etc/app', actions: chance.pick(APP_ACTIONS) }],
  });
  return { apply: [withDrain(chance, pool(chance, 'edge')), withDrain(chance, pool(chance, 'core')), probe, drains] };
}

/** A change as somebody may publish it, valid or not. */
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

/** A pool with another budget, other members or other drain settings. Or the pool is deleted. */
export function poolChange(chance: Chance, kubernetes: boolean): object {
  const name = chance.pick(['edge', 'core', 'zone-a']);
  if (chance.flip(0.1)) return { delete: [{ kind: 'Pool', name }] };
  return { apply: [kubernetes ? withDrain(chance, pool(chance, name)) : pool(chance, name)] };
}

/** A pool that skips nodes which are silent for some time. */
export function poolThatIgnoresSilence(chance: Chance, kubernetes: boolean): object {
  const { spec, ...rest } = pool(chance, chance.pick(['edge', 'core']));
  const silentNodes = { ignoreAfter: chance.pick(['1m', '3m']) };
  const impatient = { ...rest, spec: { ...(spec as object), silentNodes } };
  return { apply: [kubernetes ? withDrain(chance, impatient) : impatient] };
}

/** A pool whose drains pause one or two objects. Two pools may name the same one. */
export function poolThatPauses(chance: Chance, name: string): object {
  const { spec, ...rest } = withDrain(chance, pool(chance, name));
  const names = chance.pick([['workers'], ['workers'], ['others'], ['workers', 'others'], ['others', 'workers']]);
  const pause = names.map((each) => ({
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfigPool',
    name: each,
    ...(chance.flip(0.2) ? { waitWhile: [] } : {}),
  }));
  return { apply: [{ ...rest, spec: { ...(spec as object), pause } }] };
}

function pool(chance: Chance, name: string): Manifest {
  const matchLabels = name === 'zone-a' ? { zone: 'a' } : { role: chance.flip(0.9) ? name : 'none' };
  const maxUnavailable = chance.pick([1, 1, 2, 2, 3, '50%']);
  return manifest('Pool', name, {
    nodeSelector: { matchLabels },
    maxUnavailable,
    applyTimeout: '60s',
    drainTimeout: '90s',
    drift: chance.pick(['repair', 'repair', 'report']),
  });
}

/** Pools with drain settings, or with the defaults. */
function withDrain(chance: Chance, { spec, ...rest }: Manifest): Manifest {
  const drain = {
    onTimeout: chance.pick(['fail', 'defer', 'force']),
    onUncordon: chance.pick(['restore', 'restore', 'give-up']),
    unmanaged: chance.pick(['evict', 'block']),
    ...(chance.flip(0.3) ? { gracePeriod: '3s' } : {}),
  };
  return { ...rest, spec: { ...(spec as object), ...(chance.flip(0.8) ? { drain } : {}) } };
}

/** A valid file, or one with a typical error. */
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
    // One node rejects it.
    `ok v${version} unlucky:${node};`,
    ...badForOneKind(version),
  ]);
  return manifest('File', name, { nodeSelector: chance.pick(SELECTORS), path, content });
}

/**
 * Contents that are bad for only one kind of node: the probe fails on nodes with the mood `sad`, and core nodes reject
 * it. The recipe is the same for all.
 */
const badForOneKind = (version: number): readonly string[] => [badForSad(version), badForCore(version)];
const badForSad = (version: number): string => `{{ node.labels.mood }} v${version % 3}`;
const badForCore = (version: number): string => `ok v${version % 3} no-{{ node.labels.role }}-but-no-core`;

/** A file for all nodes, and its probe, which does not always match. Or a policy for unhealthy nodes. */
export function probeChange(world: World, chance: Chance): object {
  const version = world.bus.changes.length;
  const content = `${chance.pick(['ok', 'ok', 'bad'])} v${version}`;
  const app = manifest('File', 'app', { nodeSelector: {}, path: '/etc/app', content });
  const probe = appProbe(chance.pick(['^ok', '^ok', '^(ok|bad)', '^bad']));
  const health = manifest('RolloutPolicy', 'health', {
    nodeSelector: {},
    maxFailures: 0,
    health: chance.pick(['strict', 'tolerant']),
  });
  return { apply: chance.pick([[app, probe], [app, probe], [probe], [health], [health, app]]) };
}

const appProbe = (matches: string): Manifest =>
  manifest('Probe', 'app-ok', { nodeSelector: {}, file: { path: '/etc/app', matches }, timeout: '1s', retries: 0 });

/** A change for all nodes that is bad for only one kind of them, and for which. */
export function badForOneKindChange(
  world: World,
  chance: Chance,
): { readonly body: object; readonly isBadFor: (labels: Readonly<Record<string, string>>) => boolean } {
  const sad = chance.flip(0.5);
  const content = (sad ? badForSad : badForCore)(world.bus.changes.length);
  const body = {
    apply: [manifest('File', 'app', { nodeSelector: {}, path: '/etc/app', content })],
    ...strategy(chance),
  };
  return { body, isBadFor: (labels) => (sad ? labels['mood'] === 'sad' : labels['role'] === 'core') };
}

/** A change for all nodes that no node can apply, or one of them cannot, or all can. */
export function untriedChange(world: World, chance: Chance): object {
  const version = world.bus.changes.length;
  const node = chance.pick([...world.nodes.keys()]);
  const content = chance.pick([
    `ok garbage ${version}`,
    `bad v${version}`,
    `ok v${version} unlucky:${node};`,
    `ok v${version}`,
  ]);
  return { apply: [manifest('File', 'app', { nodeSelector: {}, path: '/etc/app', content })] };
}

/** A change of a file whose content is in the object store. */
export const objectChange = (chance: Chance, sha256: string): object => ({
  apply: [
    manifest('File', 'b', {
      nodeSelector: chance.pick(SELECTORS),
      path: '/etc/b',
      contentFrom: { object: 'b.bin', sha256 },
    }),
  ],
  ...strategy(chance),
});

/** A network that refers to a VRF, the VRF, both, or the end of one of them; perhaps together with a file. */
export function referringChange(world: World, chance: Chance): object {
  const name = chance.pick(['red', 'blue']);
  const vrf = manifest('Vrf', name, { nodeSelector: {}, vrf: name });
  const id = name === 'red' ? 100 : 200;
  const mtu = 1_000 + world.bus.changes.length;
  const network = manifest('Layer2Network', name, { nodeSelector: {}, id, mtu, vrf: name });
  const gone = [{ kind: chance.pick(['Vrf', 'Layer2Network']), name }];
  const what = chance.pick<object>([
    { apply: [network] },
    { apply: [network] },
    { apply: [vrf] },
    { apply: [vrf, network] },
    { apply: [network, file(world, chance, 'b', '/etc/b', world.bus.changes.length)] },
    { delete: gone },
    { delete: gone },
  ]);
  return chance.flip(0.5) ? { ...what, strategy: { needsTimeout: chance.pick(['30s', '2m', '1h']) } } : what;
}

/** Commands, perhaps together with a file that may be bad; or the end of one of them. */
export function commandChange(world: World, chance: Chance): object {
  const version = world.bus.changes.length;
  const [one, other] = [command(world, chance, 'one', version), command(world, chance, 'other', version)];
  const app = file(world, chance, 'app', '/etc/app', version);
  return chance.pick<object>([
    { apply: [one], ...strategy(chance) },
    { apply: [one, app], ...strategy(chance) },
    { apply: [other, app] },
    { apply: [one, other, app], ...strategy(chance) },
    { apply: [one, other, app] },
    { delete: [{ kind: 'Exec', name: chance.pick(['one', 'other']) }], apply: [app] },
  ]);
}

/** A command that works, or fails on one node before or after its work. Most can be undone. */
function command(world: World, chance: Chance, name: string, version: number): Manifest {
  const node = chance.pick([...world.nodes.keys()]);
  const trace = `${name} v${version}`;
  const undo = chance.pick([['drop'], ['drop'], ['drop'], ['fail-to-drop'], []] as const).map((program) => ({
    undo: commandOf(program, trace),
  }));
  return manifest('Exec', name, {
    nodeSelector: chance.pick(SELECTORS),
    check: commandOf('has', trace),
    apply: chance.pick([
      commandOf('put', trace),
      commandOf('put', trace),
      commandOf('put-and-fail', trace, node),
      commandOf('put-or-nothing', trace, node),
    ]),
    ...undo[0],
  });
}

const HOSTS = ['one.example.com', 'two.example.com'];

/** A service that uses a host name, perhaps together with a file; or its end. */
export function serviceChange(world: World, chance: Chance): object {
  const name = chance.pick(['web', 'db']);
  const version = world.bus.changes.length;
  const spec = { nodeSelector: chance.pick(SELECTORS), fullname: chance.pick(HOSTS), port: 1_000 + version, dport: 80 };
  const service = manifest('CNFService', name, spec);
  return chance.pick<object>([
    { apply: [service] },
    { apply: [service] },
    { apply: [service], ...strategy(chance) },
    { apply: [service, file(world, chance, 'b', '/etc/b', version)] },
    { delete: [{ kind: 'CNFService', name }] },
  ]);
}

/** Other addresses of a host name, or none. */
export function addressChange(world: World, chance: Chance): object {
  const name = chance.pick(HOSTS);
  if (chance.flip(0.15)) return { delete: [{ kind: 'ResolvedName', name }] };
  const addresses = [`192.0.2.${(world.bus.changes.length % 200) + 1}`, '198.51.100.1'].slice(0, chance.integer(1, 2));
  return { apply: [{ apiVersion: API, kind: 'ResolvedName', metadata: { name }, spec: { addresses } }] };
}

/** The field that the bindings of this world mean. */
export const REGION = {
  from: 'cluster',
  apiVersion: 'v1',
  kind: 'ConfigMap',
  namespace: 'prod',
  name: 'about',
  fieldPath: 'data.region',
} as const;

/** Objects with a value of their node, perhaps with a default and perhaps together with a file; or their end. */
export function boundChange(world: World, chance: Chance): object {
  const name = chance.pick(['here', 'there']);
  const version = world.bus.changes.length;
  const binding = { name: 'REGION', object: REGION, ...(chance.flip(0.3) ? { default: 'default' } : {}) };
  const metadata = { name, namespace: 'prod' };
  const data = { version: String(version), region: '{{ bindings.REGION }}' };
  const objects = [{ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }];
  const bound = manifest('KubeObjects', name, { nodeSelector: chance.pick(SELECTORS), bindings: [binding], objects });
  return chance.pick<object>([
    { apply: [bound] },
    { apply: [bound] },
    { apply: [bound], ...strategy(chance) },
    { apply: [bound, file(world, chance, 'b', '/etc/b', version)] },
    { delete: [{ kind: 'KubeObjects', name }] },
  ]);
}

/** What an applier has read: another value, or none. */
export function valuesOf(world: World, chance: Chance, node: string, after: string): Manifest {
  const { from, ...field } = REGION;
  const found = chance.flip(0.2) ? { missing: 'it does not exist' } : { value: `v${world.bus.changes.length}` };
  const spec = { values: [{ from, ...field, ...found }], ...(after === '' ? {} : { after }) };
  return { apiVersion: API, kind: 'BoundValues', metadata: { name: node }, spec };
}

const strategy = (chance: Chance): object =>
  chance.flip(0.3) ? { strategy: { maxFailures: chance.integer(1, 3) } } : {};
