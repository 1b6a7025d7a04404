import { createHash } from 'node:crypto';
import type { Config, ConfigEntry } from '#libs/contracts';
import {
  fluxObjectsOf,
  fluxRevisionOf,
  isOnHub,
  KUBE_RANKS,
  kubeObjectId,
  kubeObjectsOf,
  kubeRankOf,
  type FluxHubPlace,
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
  readonly place: Place;
  /** Identifies what is wanted. */
  readonly digest: string;
}

/** Where an object is: in the cluster itself, or on the hub where the cluster was found. */
export type Place = 'cluster' | 'hub';

/** How a hub knows a cluster. */
export interface OnHub {
  readonly namespace: string;
  readonly name: string;
  /** The Secret with the kubeconfig, in this namespace, and its key. */
  readonly secret: { readonly name: string; readonly key: string };
  /** When this object is deleted, Kubernetes deletes what Sluice has put on the hub for the cluster. */
  readonly owner: HubOwner;
}

export interface HubOwner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** Each object is an entry of its own: so each can be applied, compared, restored and deleted, in one order for all. */
export const clusterKinds = (hub?: OnHub): Kinds => ({
  order: OBJECT_KINDS,
  entries: entriesFor(hub),
  forgotten: [],
  // A fragment names only some fields of its objects. Others may have belonged to somebody else before.
  snapshots: OBJECT_KINDS,
  independent: OBJECT_KINDS,
  becomesReady: OBJECT_KINDS,
  // Flux applies and removes. Of other objects, the deletion: somebody removes their finalizers.
  doneByOthers: OBJECT_KINDS,
  mayCutOff: () => false,
  controlPlane: [],
  controlPlaneBefore: [],
  resources,
});

const PREFIXES: Readonly<Record<Place, string>> = { cluster: 'kube', hub: 'hub' };

/** `kube2:Deployment.apps/prod/web`: sorted, it gives the order in which objects are applied. */
export function resources({ kind, spec }: ConfigEntry): readonly string[] {
  if (!OBJECT_KINDS.includes(kind)) return [];
  const object = spec['object'] as KubeManifest;
  return [`${PREFIXES[placeOf(spec)]}${KUBE_RANKS.indexOf(kubeRankOf(object))}:${kubeObjectId(object)}`];
}

export const placeOfKey = (key: string): Place => (key.startsWith(PREFIXES.hub) ? 'hub' : 'cluster');
const placeOf = (spec: ConfigEntry['spec']): Place => (spec['place'] === 'hub' ? 'hub' : 'cluster');
export const idInKey = (key: string): string => key.slice(key.indexOf(':') + 1);

/** The name begins with that of the fragment, so that its rules apply to drift of its objects. */
function entriesFor(hub: OnHub | undefined): Kinds['entries'] {
  /** Each step asks for them. */
  const cached = new WeakMap<object, readonly ConfigEntry[]>();
  return ({ fragments }) => {
    const known = cached.get(fragments);
    if (known !== undefined) return known;
    const all = fragments.flatMap((fragment) => entriesOf(fragment, hub));
    cached.set(fragments, all);
    return all;
  };
}

function entriesOf(fragment: ConfigEntry, hub: OnHub | undefined): readonly ConfigEntry[] {
  const { kind, name, spec } = fragment;
  const entry = (object: KubeManifest, more: object): ConfigEntry => ({
    kind,
    name: `${name}: ${kubeObjectId(object)}`,
    spec: { object, ...more } as unknown as ConfigEntry['spec'],
  });
  if (kind === KUBE_OBJECTS)
    return kubeObjectsOf(spec).map((object) => entry(object, { takeOver: spec['takeOver'] === true }));
  if (kind !== FLUX_SYNC) return [fragment];
  const fluxRevision = fluxRevisionOf(spec);
  if (!isOnHub(spec)) return fluxObjectsOf(name, spec).map((object) => entry(object, { fluxRevision }));
  // Without a hub, the backend refuses them.
  const objects = fluxObjectsOf(name, spec, hub === undefined ? undefined : placeOnHub(name, hub));
  return objects.map((object) => entry(object, { fluxRevision, place: 'hub' }));
}

/** Flux makes a label of the name of a Kustomization. */
const MOST_CHARACTERS = 63;
const DIGEST_CHARACTERS = 10;

/** The names of fragments have no dots, so two clusters of a namespace never share a name. */
function placeOnHub(fragment: string, { namespace, name: cluster, secret, owner }: OnHub): FluxHubPlace {
  const whole = `${cluster}.${fragment}`;
  const digest = createHash('sha256').update(whole).digest('hex').slice(0, DIGEST_CHARACTERS);
  const short = whole.replaceAll('.', '-').slice(0, MOST_CHARACTERS - DIGEST_CHARACTERS - 1);
  const name = whole.length <= MOST_CHARACTERS ? whole : `${short}-${digest}`;
  return { metadata: { name, namespace, ownerReferences: [owner] }, secret };
}

/** All objects in a place that a config has. */
export const objectsIn = (kinds: Kinds, config: Config, place: Place): readonly ObjectEntry[] =>
  kinds
    .entries(config)
    .filter(({ kind }) => OBJECT_KINDS.includes(kind))
    .map(objectOf)
    .filter((entry) => entry.place === place);

export function objectOf(entry: ConfigEntry): ObjectEntry {
  const known = OBJECTS.get(entry);
  if (known !== undefined) return known;
  const object = entry.spec['object'] as unknown as KubeManifest;
  const takeOver = entry.spec['takeOver'] === true;
  const digest = createHash('sha256').update(JSON.stringify(entry.spec)).digest('base64');
  const fluxRevision = entry.spec['fluxRevision'] as string | undefined;
  const found = { id: kubeObjectId(object), object, takeOver, fluxRevision, place: placeOf(entry.spec), digest };
  OBJECTS.set(entry, found);
  return found;
}
const OBJECTS = new WeakMap<ConfigEntry, ObjectEntry>();
