import { fragmentId, ordered, type Action, type Fragment } from '#libs/contracts';
import { normalPath, selectorOf, selects, type DisruptionPolicySpec, type NetworkKind } from '#libs/manifests';
import { oncePerObject } from '../once-per-object.js';

/** Actions, the rule that requires them, and the names of its policies; no names for the default of a kind. */
export interface Ruling {
  readonly rule: string;
  readonly policies: readonly string[];
  readonly actions: readonly Action[];
}

/** All disruption policies that select a node, merged. Used for planning and shown to people. */
export interface EffectivePolicy {
  /** The rule for everything that no other rule matches; undefined if no policy has one. */
  readonly default: Ruling | undefined;
  /** One rule per normalised path. */
  readonly files: readonly (Ruling & { readonly path: string })[];
  readonly units: readonly (Ruling & { readonly name: string })[];
  readonly sshKeys: Ruling | undefined;
  /** By key, or by the start of keys. */
  readonly sysctl: readonly (Ruling & { readonly key: string })[];
  readonly network: readonly (Ruling & { readonly kind: NetworkKind })[];
}

/** No policy: every kind has its own default. */
export const NO_POLICY: EffectivePolicy = {
  default: undefined,
  files: [],
  units: [],
  sshKeys: undefined,
  sysctl: [],
  network: [],
};

/**
 * Merges the disruption policies that select a node. If several have a rule for the same thing, all their actions run.
 */
export function effectivePolicy(
  policies: Iterable<Fragment>,
  labels: Readonly<Record<string, string>>,
): EffectivePolicy {
  const selecting = [...policies]
    .filter((policy) => policy.kind === 'DisruptionPolicy' && selects(selectorOf(policy), labels))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const rulings = new Rulings();
  for (const fragment of selecting) {
    const policy = { id: fragmentId(fragment), name: fragment.name };
    const spec = fragment.spec as unknown as DisruptionPolicySpec;
    if (spec.default !== undefined) rulings.add('default', '', policy, 'default', spec.default);
    for (const { path, actions } of spec.files ?? [])
      rulings.add('files', normalPath(path), policy, `files ${path}`, actions);
    for (const { name, actions } of spec.units ?? []) rulings.add('units', name, policy, `units ${name}`, actions);
    if (spec.sshKeys !== undefined) rulings.add('sshKeys', '', policy, 'sshKeys', spec.sshKeys.actions);
    for (const { key, actions } of spec.sysctl ?? []) rulings.add('sysctl', key, policy, `sysctl ${key}`, actions);
    for (const { kind, actions } of spec.network ?? [])
      rulings.add('network', kind, policy, `network ${kind}`, actions);
  }
  return {
    default: rulings.of('default')[0]?.[1],
    files: rulings.of('files').map(([path, ruling]) => ({ path, ...ruling })),
    units: rulings.of('units').map(([name, ruling]) => ({ name, ...ruling })),
    sshKeys: rulings.of('sshKeys')[0]?.[1],
    sysctl: rulings.of('sysctl').map(([key, ruling]) => ({ key, ...ruling })),
    network: rulings.of('network').map(([kind, ruling]) => ({ kind: kind as NetworkKind, ...ruling })),
  };
}

/** The rule for a path: its own, or that of the nearest parent folder with a rule. */
export function longestFile(path: string, policy: EffectivePolicy): Ruling | undefined {
  const rules = indexOf(policy).files;
  for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
    const rule = rules.get(path.slice(0, end));
    if (rule !== undefined) return rule;
  }
  return rules.get('/');
}

/** The rule for a kernel parameter: its own, or that of its longest prefix with a rule. */
export function longestSysctl(key: string, policy: EffectivePolicy): Ruling | undefined {
  const rules = indexOf(policy).sysctl;
  for (let end = key.length; end > 0; end = key.lastIndexOf('.', end - 1)) {
    const rule = rules.get(key.slice(0, end));
    if (rule !== undefined) return rule;
  }
  return undefined;
}

type Target = keyof EffectivePolicy;

class Rulings {
  private readonly rulings = new Map<Target, Map<string, Ruling>>();

  /** If two policies have a rule for one target, the actions of both run, and both are named. */
  add(
    target: Target,
    key: string,
    policy: { readonly id: string; readonly name: string },
    rule: string,
    actions: readonly Action[],
  ): void {
    const rulings = this.rulings.get(target) ?? new Map<string, Ruling>();
    this.rulings.set(target, rulings);
    const before = rulings.get(key);
    rulings.set(key, {
      rule: before === undefined ? `${policy.id} ${rule}` : `${before.rule}, ${policy.id} ${rule}`,
      policies: [...new Set([...(before?.policies ?? []), policy.name])],
      actions: ordered([...(before?.actions ?? []), ...actions]),
    });
  }

  of(target: Target): readonly (readonly [string, Ruling])[] {
    return [...(this.rulings.get(target) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
  }
}

/** A policy applies to many nodes, so its rules are prepared once. */
const indexOf = oncePerObject(({ files, sysctl }: EffectivePolicy) => ({
  files: new Map<string, Ruling>(files.map((rule) => [rule.path, rule])),
  sysctl: new Map<string, Ruling>(sysctl.map((rule) => [rule.key, rule])),
}));
