import { createHash } from 'node:crypto';
import type { Config, ConfigEntry } from '#libs/contracts';
import {
  fluxObjectsOf,
  fluxRevisionOf,
  KUBE_RANKS,
  kubeObjectId,
  kubeObjectsOf,
  kubeRankOf,
  type KubeManifest,
} from '#libs/manifests/lean';
import type { Kinds } from '../../core/index.js';

export const KUBE_OBJECTS = 'KubeObjects';
export const FLUX_SYNC = 'FluxSync';
/** The kinds that become objects, in the order in which they are applied. */
const OBJECT_KINDS: readonly string[] = [KUBE_OBJECTS, FLUX_SYNC];

/** One object of a fragment, as the applier handles it. */
export interface ObjectEntry {
  readonly id: string;
  readonly object: KubeManifest;
  readonly takeOver: boolean;
  /** The revision that Flux must have applied; undefined for objects that are not for Flux. */
  readonly fluxRevision: string | undefined;
  /** Identifies what is wanted. */
  readonly digest: string;
}

/** Each object is an entry of its own: so each can be applied, compared, restored and deleted, in one order for all. */
export const CLUSTER_KINDS: Kinds = {
  order: OBJECT_KINDS,
  entries,
  forgotten: [],
  // A fragment names only some fields of its objects. Others may have belonged to somebody else before.
  snapshots: OBJECT_KINDS,
  independent: OBJECT_KINDS,
  becomesReady: OBJECT_KINDS,
  mayCutOff: () => false,
  controlPlane: [],
  controlPlaneBefore: [],
  resources,
};

/** `kube2:Deployment.apps/prod/web`: sorted, it gives the order in which objects are applied. */
export function resources({ kind, spec }: ConfigEntry): readonly string[] {
  if (!OBJECT_KINDS.includes(kind)) return [];
  const object = spec['object'] as KubeManifest;
  return [`kube${KUBE_RANKS.indexOf(kubeRankOf(object))}:${kubeObjectId(object)}`];
}

export const idInKey = (key: string): string => key.slice(key.indexOf(':') + 1);

/** The name begins with that of the fragment, so that its rules apply to drift of its objects. */
function entries({ fragments }: Config): readonly ConfigEntry[] {
  const known = ENTRIES.get(fragments);
  if (known !== undefined) return known;
  const all = fragments.flatMap((fragment): readonly ConfigEntry[] => {
    const { kind, name, spec } = fragment;
    const entry = (object: KubeManifest, more: object): ConfigEntry => ({
      kind,
      name: `${name}: ${kubeObjectId(object)}`,
      spec: { object, ...more } as unknown as ConfigEntry['spec'],
    });
    if (kind === KUBE_OBJECTS)
      return kubeObjectsOf(spec).map((object) => entry(object, { takeOver: spec['takeOver'] === true }));
    if (kind === FLUX_SYNC)
      return fluxObjectsOf(name, spec).map((object) => entry(object, { fluxRevision: fluxRevisionOf(spec) }));
    return [fragment];
  });
  ENTRIES.set(fragments, all);
  return all;
}

/** Each step asks for them. */
const ENTRIES = new WeakMap<object, readonly ConfigEntry[]>();

/** All objects that a config has. */
export const objectsIn = (config: Config): readonly ObjectEntry[] =>
  entries(config)
    .filter(({ kind }) => OBJECT_KINDS.includes(kind))
    .map(objectOf);

export function objectOf(entry: ConfigEntry): ObjectEntry {
  const known = OBJECTS.get(entry);
  if (known !== undefined) return known;
  const object = entry.spec['object'] as unknown as KubeManifest;
  const takeOver = entry.spec['takeOver'] === true;
  const digest = createHash('sha256').update(JSON.stringify(entry.spec)).digest('base64');
  const fluxRevision = entry.spec['fluxRevision'] as string | undefined;
  const found = { id: kubeObjectId(object), object, takeOver, fluxRevision, digest };
  OBJECTS.set(entry, found);
  return found;
}
const OBJECTS = new WeakMap<ConfigEntry, ObjectEntry>();
