import {
  aliasesOf,
  fragmentId,
  LACKS_XATTRS,
  reasonFor,
  throughAliases,
  type Config,
  type ConfigEntry,
  type PathAliases,
  type Reason,
} from '#libs/contracts';
import {
  checkRendered,
  claimsOf,
  functionReasons,
  isOnHub,
  MAX_CONFIG_BYTES,
  normalPath,
  objectRefOf,
  ownsPath,
  utf8Bytes,
  networkNeeds,
  networkReasons,
  networkWarnings,
} from '#libs/manifests';
import type { ActionPlan } from '../actions/action-plan.js';
import { oncePerObject } from '../once-per-object.js';

/** What a review knows about a node. */
export interface ReviewedNode {
  readonly name: string;
  readonly capabilities: readonly string[];
  /** The objects that are not in the object store, by sha256; left out if that is unknown. */
  readonly missingObjects?: ReadonlySet<string>;
}

/** Every reason why a node cannot have a config. */
export function reviewConfig(config: Config, node: ReviewedNode): readonly Reason[] {
  const reasons = [
    ...config.fragments.flatMap((entry) => entryReview(entry).reasons),
    ...sizeReasons(config),
    ...conflictReasons(config, aliasesOf(node.capabilities)),
    ...networkReasons(config, holds),
    ...functionReasons(config),
    ...objectReasons(config, node.missingObjects),
    ...config.fragments.flatMap((entry) => entryCapabilities(entry, node.capabilities)),
  ];
  return ofOrigins(config, reasons).map((reason) => ({ ...reason, nodes: [node.name] }));
}

/** People see the fragment that they wrote, and not the objects that it became. */
function ofOrigins(config: Config, reasons: readonly Reason[]): readonly Reason[] {
  const origins = new Map(
    config.fragments.flatMap((entry) => (entry.origin === undefined ? [] : [[fragmentId(entry), entry.origin]])),
  );
  if (origins.size === 0 || reasons.length === 0) return reasons;
  return reasons.map((reason) => {
    const origin = origins.get(reason.fragment);
    if (origin === undefined) return reason;
    const place = reason.field === '' ? reason.fragment : `${reason.fragment} ${reason.field}`;
    return { ...reason, fragment: origin, field: '', message: `${reason.message} (in ${place}, which it becomes)` };
  });
}

/** Warnings: the node can have the config, but not everything takes effect as written. */
export const reviewWarnings = (config: Config, node: ReviewedNode): readonly Reason[] =>
  [...networkWarnings(config, holds), ...attributeWarnings(config, node.capabilities)].map((warning) => ({
    ...warning,
    nodes: [node.name],
  }));

function attributeWarnings(config: Config, capabilities: readonly string[]): readonly Reason[] {
  if (!capabilities.includes(LACKS_XATTRS) || !config.fragments.some(({ kind }) => ownsPath(kind))) return [];
  const message =
    'the node cannot read ACLs and other extended attributes, so files lose them when they are replaced; the log of its applier says why';
  return [reasonFor({}, 'no-xattrs', message)];
}

const holds = (entry: ConfigEntry): boolean => entryReview(entry).reasons.length === 0;

const MOST_PLACES = 5;

/** Every reason why a node cannot take the actions of a plan. `none` and `drain` are not taken by the node. */
export function reviewActions(
  { actions: taken, because }: Pick<ActionPlan, 'actions' | 'because'>,
  capabilities: readonly string[],
): readonly Reason[] {
  const impossible = new Set(
    taken
      .map(({ kind }) => kind)
      .filter((kind) => kind !== 'none' && kind !== 'drain' && !capabilities.includes(`action:${kind}`)),
  );
  const missing = because.flatMap(({ what, rule, actions }) =>
    [...new Set(actions.map(({ kind }) => kind))]
      .filter((kind) => impossible.has(kind))
      .map((kind) => ({ kind, rule, what })),
  );
  const byRule = Map.groupBy(missing, ({ kind, rule }) => `${kind} ${rule}`);
  return [...byRule.values()].map((group) => {
    const { kind = '', rule = '' } = group[0] ?? {};
    const places = group.slice(0, MOST_PLACES).map(({ what }) => what);
    const more = group.length > places.length ? ` and ${group.length - places.length} more` : '';
    const message = `the change needs ${kind} for ${places.join(', ')}${more} (${rule}), which the node cannot do: it did not announce action:${kind}`;
    return reasonFor({}, 'capability', message);
  });
}

/** The parts of a review that do not depend on the node. Done once per entry, because nodes share entries. */
const entryReview = oncePerObject((entry: ConfigEntry) => ({
  reasons: checkRendered(entry),
  // The canonical form has the same characters in another order.
  bytes: utf8Bytes(JSON.stringify(entry)),
}));

function objectReasons(config: Config, missing: ReadonlySet<string> = new Set()): readonly Reason[] {
  if (missing.size === 0) return [];
  return config.fragments.flatMap((entry) => {
    const ref = objectRefOf(entry);
    if (ref === undefined || !missing.has(ref.sha256)) return [];
    const message = `the object store has no ${ref.object} with sha256 ${ref.sha256}: upload the file with sluice upload`;
    return [reasonFor({ fragment: fragmentId(entry), field: 'spec.contentFrom' }, 'missing-object', message)];
  });
}

function sizeReasons(config: Config): readonly Reason[] {
  const bytes = config.fragments.reduce(
    (sum, entry) => sum + entryReview(entry).bytes + 1,
    '{"fragments":[]}'.length - (config.fragments.length > 0 ? 1 : 0),
  );
  if (bytes <= MAX_CONFIG_BYTES) return [];
  const largest = config.fragments.reduce((most, entry) =>
    entryReview(entry).bytes > entryReview(most).bytes ? entry : most,
  );
  const fragment = fragmentId(largest);
  const part = `the largest part is ${fragment} with ${entryReview(largest).bytes}`;
  const message = `the node's config has ${bytes} bytes; the limit is ${MAX_CONFIG_BYTES}; ${part}`;
  return [reasonFor({ fragment, field: 'spec' }, 'too-large', message)];
}

function conflictReasons(config: Config, aliases: PathAliases): readonly Reason[] {
  const claims = config.fragments.flatMap((entry) => {
    const path = entry.spec['path'];
    const own = ownsPath(entry.kind) && typeof path === 'string' ? [normalPath(path)] : [];
    return [...own, ...claimsOf(entry)].map((place) => ({
      id: fragmentId(entry),
      kind: entry.kind,
      // A Directory also follows a link at its own end; a File replaces it.
      path: throughAliases(place, aliases, entry.kind === 'Directory'),
      field: own.includes(place) ? 'spec.path' : 'spec',
    }));
  });
  const owners = new Map<string, (typeof claims)[number]>();
  const reasons: Reason[] = [];
  for (const claim of claims) {
    const owner = owners.get(claim.path);
    if (owner === undefined) owners.set(claim.path, claim);
    else reasons.push(conflict(claim, collision(owner.id, claim.id, claim.path)));
  }
  for (const claim of claims) {
    for (const parent of claim.path.startsWith('/') ? parentsOf(claim.path) : []) {
      const owner = owners.get(parent);
      if (owner?.kind === 'File' || owner?.kind === 'Link')
        reasons.push(
          conflict(
            claim,
            `${owner.id} makes ${parent} a ${owner.kind.toLowerCase()}, and ${claim.id} needs it to be a directory for ${claim.path}`,
          ),
        );
    }
  }
  return reasons;
}

function collision(one: string, other: string, place: string): string {
  if (one === other) return `${one} puts two things at ${place}`;
  return `${one} and ${other} both ${place.startsWith('/') ? 'put something at' : 'set'} ${place}`;
}

const conflict = ({ id, field }: { readonly id: string; readonly field: string }, message: string): Reason =>
  reasonFor({ fragment: id, field }, 'conflict', message);

function parentsOf(path: string): readonly string[] {
  const segments = path.split('/').slice(1, -1);
  return segments.map((_, i) => `/${segments.slice(0, i + 1).join('/')}`);
}

/** The probes that not every node can run. */
const PARTICULAR_PROBES = ['exec', 'function', 'kube'];

function entryCapabilities(entry: ConfigEntry, capabilities: readonly string[]): readonly Reason[] {
  const fragment = fragmentId(entry);
  const needed = [
    { capability: `kind:${entry.kind}`, field: 'kind' },
    ...PARTICULAR_PROBES.filter((type) => entry.kind === 'Probe' && Object.hasOwn(entry.spec, type)).map((type) => ({
      capability: `probe:${type}`,
      field: `spec.${type}`,
    })),
    ...networkNeeds(entry),
    ...(entry.kind === 'FluxSync' && isOnHub(entry.spec) ? [ON_HUB] : []),
  ];
  return needed
    .filter(({ capability }) => !capabilities.includes(capability))
    .map(({ capability, field, why = '' }: Need) =>
      reasonFor({ fragment, field }, 'capability', `the node cannot do this: it did not announce ${capability}${why}`),
    );
}

interface Need {
  readonly capability: string;
  readonly field: string;
  /** Why nodes lack it, for people who cannot tell from its name. */
  readonly why?: string;
}

const ON_HUB: Need = {
  capability: 'placement:hub',
  field: 'spec.placement',
  why: ', because its applier has not found it on a hub (sluice applier --targets clusters --hub)',
};
