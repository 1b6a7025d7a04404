import { fragmentId, type Action, type Config, type ConfigEntry } from '#libs/contracts';
import { normalPath, ownsPath } from '#libs/manifests';
import { canonicalJson } from '#libs/rendering';
import { ordered } from './action-order.js';
import type { EffectivePolicy, Ruling } from './effective-policy.js';

/** Why an action is in a plan: what changes, the rule that matched it, and what that rule asks for. */
export interface Because {
  readonly what: string;
  readonly rule: string;
  readonly actions: readonly Action[];
}

/** What going from one config to another needs on the node. */
export interface ActionPlan {
  /** In the order in which they are taken; empty when nothing changes. */
  readonly actions: readonly Action[];
  readonly because: readonly Because[];
  /** What differs: paths, and `Kind/name` for what has no path. Sorted. */
  readonly changed: readonly string[];
}

/** Plans the actions that going from one config to another needs under a policy. */
export function planActions(from: Config, to: Config, policy: EffectivePolicy): ActionPlan {
  const parts = differences(from, to);
  const because = parts.flatMap(({ what, kinds, isPath }) => kinds.map((kind) => ({ what, ...rulingFor(kind, what, isPath, policy) })));
  return {
    actions: ordered(because.flatMap(({ actions }) => actions)),
    because,
    changed: parts.map(({ what }) => what),
  };
}

interface Part {
  readonly what: string;
  readonly isPath: boolean;
  /** Every kind that this place had or gets. */
  readonly kinds: readonly string[];
}

/** What kinds need where no policy says anything. Probes only look, and are none of a policy's business. */
const OWN_DEFAULTS: Readonly<Record<string, readonly Action[]>> = {
  File: [{ kind: 'none' }],
  Directory: [{ kind: 'none' }],
  Exec: [{ kind: 'none' }],
};
const PROBE = 'Probe';

/** Compares by place: what lies at a path counts, not which fragment put it there. */
function differences(from: Config, to: Config): readonly Part[] {
  const before = places(from);
  const after = places(to);
  const whats = [...new Set([...before.keys(), ...after.keys()])].filter((what) => before.get(what)?.text !== after.get(what)?.text);
  return whats.sort().map((what) => {
    const sides = [before.get(what), after.get(what)].filter((place) => place !== undefined);
    return { what, isPath: sides.some(({ isPath }) => isPath), kinds: [...new Set(sides.flatMap(({ kinds }) => kinds))].sort() };
  });
}

interface Place {
  readonly isPath: boolean;
  readonly kinds: readonly string[];
  /** Equal texts are equal content. */
  readonly text: string;
}

function places(config: Config): ReadonlyMap<string, Place> {
  const found = new Map<string, Place>();
  for (const entry of config.fragments) {
    const { what, place } = claimOf(entry);
    const other = found.get(what);
    // Two fragments at one path are refused by review; should it happen, the place is both.
    found.set(what, other === undefined ? place : {
      isPath: place.isPath,
      kinds: [...other.kinds, ...place.kinds],
      text: [other.text, place.text].sort().join('\n'),
    });
  }
  return found;
}

interface Claim {
  readonly what: string;
  readonly place: Place;
}

/** Configs of thousands of nodes share their entries: each is looked at once. */
const CLAIMS = new WeakMap<ConfigEntry, Claim>();

function claimOf(entry: ConfigEntry): Claim {
  const known = CLAIMS.get(entry);
  if (known !== undefined) return known;
  const path = pathOf(entry);
  const text = canonicalJson([entry.kind, path === undefined ? entry.spec : { ...entry.spec, path }]);
  const claim = { what: path ?? fragmentId(entry), place: { isPath: path !== undefined, kinds: [entry.kind], text } };
  CLAIMS.set(entry, claim);
  return claim;
}

function pathOf(entry: ConfigEntry): string | undefined {
  const path = entry.spec['path'];
  return ownsPath(entry.kind) && typeof path === 'string' ? normalPath(path) : undefined;
}

function rulingFor(kind: string, what: string, isPath: boolean, policy: EffectivePolicy): Ruling {
  if (kind === PROBE) return { rule: 'a probe only looks', actions: [{ kind: 'none' }] };
  return (isPath ? longestMatch(what, policy) : undefined) ?? policy.default ?? ownDefault(kind);
}

function longestMatch(path: string, policy: EffectivePolicy): Ruling | undefined {
  let best: (Ruling & { readonly path: string }) | undefined;
  for (const rule of policy.files) {
    const matches = rule.path === '/' || path === rule.path || path.startsWith(`${rule.path}/`);
    if (matches && (best === undefined || rule.path.length > best.path.length)) best = rule;
  }
  return best === undefined ? undefined : { rule: best.rule, actions: best.actions };
}

function ownDefault(kind: string): Ruling {
  const own = Object.hasOwn(OWN_DEFAULTS, kind) ? OWN_DEFAULTS[kind] : undefined;
  if (own !== undefined) return { rule: `default of ${kind}`, actions: own };
  return { rule: `${kind} is not known here: reboot`, actions: [{ kind: 'reboot' }] };
}
