import type { ConfigEntry } from '#libs/contracts';
import type { Item, Json, Original, Originals, Outcomes } from '../../core/index.js';
import { together } from '../resource-steps.js';
import { RefusedError, UnreachableError, type Backend, type CheckContext } from '../ports.js';
import type { ClusterBackend } from './cluster-backend.js';
import { KUBE_OBJECTS, objectOf, placeOfKey, resources, type Place } from './cluster-kinds.js';

/** The objects of one cluster wherever they are: in the cluster itself, or on the hub where it was found. */
export class PlacedBackend implements Backend {
  readonly kind = KUBE_OBJECTS;
  readonly isIndependent = true;
  readonly resources = resources;

  constructor(
    private readonly cluster: ClusterBackend,
    /** Undefined if the cluster was not found on a hub. */
    private readonly hub: ClusterBackend | undefined,
  ) {}

  check(entry: ConfigEntry, checked: CheckContext): Promise<void> {
    return this.at(placeOf(entry), (backend) => backend.check(entry, checked));
  }

  original(key: string, entry: ConfigEntry): Promise<Original> {
    return this.at(placeOf(entry), (backend) => backend.original(key, entry));
  }

  snapshot(entry: ConfigEntry): Promise<Originals> {
    return this.at(placeOf(entry), (backend) => backend.snapshot(entry));
  }

  restore(key: string, original: Original): Promise<void> {
    return this.at(placeOfKey(key), (backend) => backend.restore(key, original));
  }

  differsFromOriginal(key: string, was: Json): Promise<string | undefined> {
    return this.at(placeOfKey(key), (backend) => backend.differsFromOriginal(key, was));
  }

  apply(entry: ConfigEntry, leftMs: () => number, isRollback?: boolean): Promise<void> {
    return this.at(placeOf(entry), (backend) => backend.apply(entry, leftMs, isRollback));
  }

  async forgetBefore(entries: readonly ConfigEntry[], sinceMs: number): Promise<void> {
    const byPlace = [...Map.groupBy(entries, placeOf)];
    await Promise.all(
      byPlace.map(([place, some]) => (place === 'cluster' ? this.cluster : this.hub)?.forgetBefore(some, sinceMs)),
    );
  }

  differs(entry: ConfigEntry): Promise<string | undefined> {
    return this.at(placeOf(entry), (backend) => backend.differs(entry));
  }

  async notReady(entries: readonly ConfigEntry[], leftMs: () => number): Promise<readonly string[]> {
    const byPlace = [...Map.groupBy(entries, placeOf)];
    const waiting = byPlace.map(([place, some]) => this.at(place, (backend) => backend.notReady(some, leftMs)));
    return (await Promise.all(waiting)).flat();
  }

  async leftToOthers(items: readonly Item[], leftMs: () => number): Promise<Outcomes['await-others']> {
    const byPlace = Map.groupBy(items, (item) => (item.do === 'apply' ? placeOf(item.entry) : placeOfKey(item.key)));
    const all = await Promise.all(
      [...byPlace].map(([place, some]) => this.at(place, (backend) => backend.leftToOthers(some, leftMs))),
    );
    return together(all);
  }

  title({ kind, name }: ConfigEntry): string {
    return `${kind}/${name}`;
  }

  private async at<T>(place: Place, work: (backend: ClusterBackend) => Promise<T>): Promise<T> {
    if (place === 'cluster') return work(this.cluster);
    if (this.hub === undefined)
      throw new RefusedError(
        'node',
        'placement: hub needs an applier that finds its clusters on a hub (sluice applier --targets clusters --hub), and this one has found this cluster elsewhere',
      );
    try {
      return await work(this.hub);
    } catch (error) {
      throw onHub(error);
    }
  }
}

/** The API server of the cluster is not the only one that may refuse something, or not answer. */
function onHub(error: unknown): unknown {
  if (!(error instanceof RefusedError)) return error;
  const words = `on the hub: ${error.message}`;
  return error instanceof UnreachableError ? new UnreachableError(words) : new RefusedError(error.fault, words);
}

const placeOf = (entry: ConfigEntry): Place => objectOf(entry).place;
