import { fragmentId, type Action, type ConfigEntry } from '#libs/contracts';
import { NETWORK_KINDS, normalPath, ownsPath, type NetworkKind } from '#libs/manifests';
import { longestFile, longestSysctl, type EffectivePolicy, type Ruling } from './effective-policy.js';

const NONE: Action = { kind: 'none' };
const BOOT: readonly Action[] = [{ kind: 'drain' }, { kind: 'reboot' }];

/** What lies at a place of a node and how it is ruled, by kind. */
interface KindRules {
  /** The place that an entry takes, as rules name it; undefined when the entry does not say one. */
  readonly place?: (spec: ConfigEntry['spec']) => string | undefined;
  /** What the policy says of a place; undefined when no rule of it matches. */
  readonly ruled?: (place: string, policy: EffectivePolicy) => Ruling | undefined;
  /** What is needed where no policy says anything. */
  readonly own: (place: string) => readonly Action[];
  /** Why no policy has a say. */
  readonly always?: string;
}

const textAt =
  (field: string) =>
  (spec: ConfigEntry['spec']): string | undefined => {
    const text = spec[field];
    return typeof text === 'string' && text !== '' ? text : undefined;
  };
const nothing = (): readonly Action[] => [NONE];

const PATH: KindRules = {
  place: (spec) => (typeof spec['path'] === 'string' ? normalPath(spec['path']) : undefined),
  ruled: (place, policy) => longestFile(place, policy),
  own: nothing,
};
const network = (kind: NetworkKind): KindRules => ({
  ruled: (_, policy) => policy.network.find((rule) => rule.kind === kind),
  own: nothing,
});

const RULES: ReadonlyMap<string, KindRules> = new Map<string, KindRules>([
  ['File', PATH],
  ['Directory', PATH],
  [
    'SystemdUnit',
    {
      place: textAt('name'),
      ruled: (place, policy) => policy.units.find(({ name }) => name === place),
      own: (unit) => [{ kind: 'daemon-reload' }, { kind: 'restart', unit }],
    },
  ],
  ['Sysctl', { place: textAt('key'), ruled: (place, policy) => longestSysctl(place, policy), own: nothing }],
  ['SshKeys', { ruled: (_, policy) => policy.sshKeys, own: nothing }],
  // A running kernel does not take them: a policy that said less would leave the node half on the old config.
  ['KernelArguments', { own: () => BOOT, always: 'kernel arguments need a reboot' }],
  ['Exec', { own: nothing }],
  ['Probe', { own: nothing, always: 'a probe changes nothing' }],
  ...NETWORK_KINDS.map((kind): [string, KindRules] => [kind, network(kind)]),
]);

/**
 * Where an entry lies, as people and rules name it: a path, a unit, a kernel parameter; `Kind/name` for what has no
 * such place.
 */
export function placeOf(entry: ConfigEntry): string {
  return RULES.get(entry.kind)?.place?.(entry.spec) ?? fragmentId(entry);
}

/** The entry's spec with its place in the one way to write it. */
export function normalSpec(entry: ConfigEntry, place: string): ConfigEntry['spec'] {
  return ownsPath(entry.kind) && typeof entry.spec['path'] === 'string' && entry.spec['path'] !== place
    ? { ...entry.spec, path: place }
    : entry.spec;
}

/** What a kind needs at a place that changes: by the policy's rule, else by its default, else by the kind's own. */
export function rulingOf(kind: string, place: string, policy: EffectivePolicy): Ruling {
  const rules = RULES.get(kind);
  if (rules?.always !== undefined) return { rule: rules.always, policies: [], actions: rules.own(place) };
  const ruled = rules?.ruled?.(place, policy) ?? policy.default;
  if (ruled !== undefined) return ruled;
  if (rules !== undefined) return { rule: `default of ${kind}`, policies: [], actions: rules.own(place) };
  return { rule: `${kind} is an unknown kind: reboot`, policies: [], actions: [{ kind: 'reboot' }] };
}
