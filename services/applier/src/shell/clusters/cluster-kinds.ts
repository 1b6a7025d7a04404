import { createHash } from 'node:crypto';
import type { Config, ConfigEntry } from '#libs/contracts';
import { KUBE_RANKS, kubeObjectId, kubeObjectsOf, kubeRankOf, type KubeManifest } from '#libs/manifests/lean';
import type { Kinds } from '../../core/index.js';

export const KUBE_OBJECTS = 'KubeObjects';

/** One object of a fragment, as the applier handles it. */
export interface ObjectEntry {
  readonly id: string;
  readonly object: KubeManifest;
  readonly takeOver: boolean;
  /** Identifies what is wanted. */
  readonly digest: string;
}

/** Each object is an entry of its own: so each can be applied, compared, restored and deleted, in one order for all. */
export const CLUSTER_KINDS: Kinds = {
  order: [KUBE_OBJECTS],
  entries,
  forgotten: [],
  // A fragment names only some fields of its objects. Others may have belonged to somebody else before.
  snapshots: [KUBE_OBJECTS],
  independent: [KUBE_OBJECTS],
  becomesReady: [KUBE_OBJECTS],
  mayCutOff: () => false,
  controlPlane: [],
  controlPlaneBefore: [],
  resources,
};

/** `kube2:Deployment.apps/prod/web`: sorted, it gives the order in which objects are applied. */
export function resources({ kind, spec }: ConfigEntry): readonly string[] {
  if (kind !== KUBE_OBJECTS) return [];
  const object = spec['object'] as KubeManifest;
  return [`kube${KUBE_RANKS.indexOf(kubeRankOf(object))}:${kubeObjectId(object)}`];
}

export const idInKey = (key: string): string => key.slice(key.indexOf(':') + 1);

/** The name begins with that of the fragment, so that its rules apply to drift of its objects. */
function entries({ fragments }: Config): readonly ConfigEntry[] {
  const known = ENTRIES.get(fragments);
  if (known !== undefined) return known;
  const all = fragments.flatMap((fragment): readonly ConfigEntry[] => {
    if (fragment.kind !== KUBE_OBJECTS) return [fragment];
    const takeOver = fragment.spec['takeOver'] === true;
    return kubeObjectsOf(fragment.spec).map((object) => ({
      kind: KUBE_OBJECTS,
      name: `${fragment.name}: ${kubeObjectId(object)}`,
      spec: { object, takeOver } as unknown as ConfigEntry['spec'],
    }));
  });
  ENTRIES.set(fragments, all);
  return all;
}

/** Each step asks for them. */
const ENTRIES = new WeakMap<object, readonly ConfigEntry[]>();

export function objectOf(entry: ConfigEntry): ObjectEntry {
  const known = OBJECTS.get(entry);
  if (known !== undefined) return known;
  const object = entry.spec['object'] as unknown as KubeManifest;
  const takeOver = entry.spec['takeOver'] === true;
  const digest = createHash('sha256').update(JSON.stringify(entry.spec)).digest('base64');
  const found = { id: kubeObjectId(object), object, takeOver, digest };
  OBJECTS.set(entry, found);
  return found;
}
const OBJECTS = new WeakMap<ConfigEntry, ObjectEntry>();
