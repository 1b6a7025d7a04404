import { fragmentId, type Action, type ConfigEntry } from '#libs/contracts';
import { FUNCTION_KINDS, NETWORK_KINDS, normalPath, ownsPath, type NetworkKind } from '#libs/manifests';
import { longestFile, longestSysctl, type EffectivePolicy, type Ruling } from './effective-policy.js';

const NONE: Action = { kind: 'none' };
const BOOT: readonly Action[] = [{ kind: 'drain' }, { kind: 'reboot' }];

/** The place that an entry of a kind takes on a node, and which rules apply to it. */
interface KindRules {
  /** The place of an entry, as rules name it; undefined if the entry has none. */
  readonly place?: (spec: ConfigEntry['spec']) => string | undefined;
  /** The rule of the policy for a place; undefined if none matches. */
  readonly ruled?: (place: string, policy: EffectivePolicy) => Ruling | undefined;
  /** The default actions, if no policy has a rule. */
  readonly own: (place: string) => readonly Action[];
  /** Why policies do not apply to this kind. */
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
  ['Link', PATH],
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
  // A running kernel cannot change them: a policy with fewer actions would leave the node partly on the old config.
  ['KernelArguments', { own: () => BOOT, always: 'kernel arguments need a reboot' }],
  ['Exec', { own: nothing }],
  ['KubeObjects', { own: nothing, always: 'the cluster itself carries out what changes' }],
  ['FluxSync', { own: nothing, always: 'Flux in the cluster carries out what changes' }],
  ['Probe', { own: nothing, always: 'a probe changes nothing' }],
  ['FleetChange', { own: nothing, always: 'the other fleet plans the actions of its nodes' }],
  ...NETWORK_KINDS.map((kind): [string, KindRules] => [kind, network(kind)]),
  // A policy with fewer actions would leave the service on the old config.
  ...FUNCTION_KINDS.map(({ kind, after }): [string, KindRules] => [
    kind,
    after === undefined
      ? { own: nothing, always: `a ${kind} takes effect at once` }
      : {
          own: () => [{ kind: after.action, unit: after.service }],
          always: `the service ${after.service} reads it then`,
        },
  ]),
]);

/**
 * The place of an entry, as people and rules name it: a path, a unit or a kernel parameter; `Kind/name` for other
 * kinds.
 */
export function placeOf(entry: ConfigEntry): string {
  return RULES.get(entry.kind)?.place?.(entry.spec) ?? fragmentId(entry);
}

/** The spec of an entry with its place in normalised form. */
export function normalSpec(entry: ConfigEntry, place: string): ConfigEntry['spec'] {
  return ownsPath(entry.kind) && typeof entry.spec['path'] === 'string' && entry.spec['path'] !== place
    ? { ...entry.spec, path: place }
    : entry.spec;
}

/** The actions for a changed place: from the rule of the policy, else its default, else the default of the kind. */
export function rulingOf(kind: string, place: string, policy: EffectivePolicy): Ruling {
  const rules = RULES.get(kind);
  if (rules?.always !== undefined) return { rule: rules.always, policies: [], actions: rules.own(place) };
  const ruled = rules?.ruled?.(place, policy) ?? policy.default;
  if (ruled !== undefined) return ruled;
  if (rules !== undefined) return { rule: `default of ${kind}`, policies: [], actions: rules.own(place) };
  return { rule: `${kind} is an unknown kind: reboot`, policies: [], actions: [{ kind: 'reboot' }] };
}
