import { isDeepStrictEqual } from 'node:util';
import type { Config, ConfigEntry } from '#libs/contracts';
import { groupKindOf, type KubeManifest } from '#libs/manifests/lean';
import type { LiveObject } from '#libs/kube/lean';
import type { Item, Json, Kinds, Original, Originals, Outcomes } from '../../core/index.js';
import { RefusedError, UnreachableError, type Backend, type CheckContext } from '../ports.js';
import type { ApplySetParent } from './apply-set.js';
import { otherCluster } from './cluster-owner.js';
import { conflictsIn, isEndingNamespace, isOfNamespace, refusalFrom, type FieldConflict } from './cluster-calls.js';
import {
  FLUX_SYNC,
  idInKey,
  KUBE_OBJECTS,
  objectOf,
  objectsIn,
  resources,
  type ObjectEntry,
  type Place,
} from './cluster-kinds.js';
import { conflictRefusal, requireScope, type ClusterObjects } from './cluster-objects.js';
import { fluxStatus, lastAttempt } from './flux-status.js';
import { kstatus, type ObjectStatus } from './kstatus.js';
import type { ObjectWatches } from './object-watches.js';
import { packedObject, packedOf } from './packed-object.js';

/** How long one look at objects that are not ready may take, and how often those without a watch are read. */
const LOOK_MS = 1_000;

/** The objects of one cluster in one place, whatever kind of fragment they come from. */
export class ClusterBackend implements Backend {
  readonly kind = KUBE_OBJECTS;
  readonly isIndependent = true;
  readonly resources = resources;
  /** Fields that the config in force has too, and that others have changed by hand since. Undefined: all of them. */
  private readonly ownBefore = new Map<string, ReadonlySet<string> | undefined>();
  /** What Flux had tried last when the change was checked. */
  private readonly attempts = new Map<string, string>();
  private inUse: readonly KubeManifest[] = [];
  private checking: CheckContext | undefined;

  constructor(
    private readonly objects: ClusterObjects,
    private readonly watches: ObjectWatches,
    private readonly parent: ApplySetParent,
    private readonly kinds: Kinds,
    private readonly place: Place,
  ) {}

  /** Asks the cluster, by a dry run, before anything is changed. What stays as it is was checked before. */
  async check(entry: ConfigEntry, checked: CheckContext): Promise<void> {
    const { config, from } = checked;
    const wanted = objectOf(entry);
    // Once per lease, which has many objects.
    if (this.checking !== checked) await this.parent.requireOwn();
    this.checking = checked;
    this.inUse = [...this.manifestsIn(config), ...this.manifestsIn(from)];
    if (wanted.fluxRevision !== undefined) this.attempts.set(wanted.id, lastAttempt(await this.found(wanted.object)));
    const before = this.objectsIn(from).find((one) => one.id === wanted.id);
    this.ownBefore.set(wanted.id, new Set());
    if (before !== undefined && isDeepStrictEqual(before.object, wanted.object)) {
      this.ownBefore.set(wanted.id, undefined);
      return;
    }
    const { object } = wanted;
    const served = await this.objects.served(object, true);
    if (served === undefined && isDefinedIn(this.manifestsIn(config), object)) return;
    const resource = served === undefined ? await this.objects.awaitServed(object) : requireScope(served, object);
    try {
      await this.objects.tryOut(resource, wanted, wanted.takeOver);
    } catch (error) {
      // The namespace comes first, also if another one of this name must be gone before.
      const isOfItsNamespace = isOfNamespace(error) || isEndingNamespace(error);
      if (isOfItsNamespace && hasNamespace(this.manifestsIn(config), object.metadata.namespace)) return;
      // Nothing of an object that is being deleted stands in the way: it is gone before another one is created.
      if (isOfDryRun(error) || isEnding(await this.found(object))) return;
      const conflicts = conflictsIn(error);
      if (conflicts === undefined) throw refusalFrom(error);
      const own = before === undefined ? new Set<string>() : await this.conflictsOf(before);
      this.ownBefore.set(wanted.id, own);
      const others = conflicts.filter((conflict) => !own.has(textOf(conflict)));
      if (others.length > 0) throw conflictRefusal(others);
    }
  }

  async original(_key: string, entry: ConfigEntry): Promise<Original> {
    return { kind: entry.kind, was: await this.packed(entry), made: [] };
  }

  async snapshot(entry: ConfigEntry): Promise<Originals> {
    const was = await this.packed(entry);
    return Object.fromEntries(resources(entry).map((key) => [key, { kind: entry.kind, was, made: [] }]));
  }

  async restore(key: string, { was }: Original): Promise<void> {
    this.watches.forget(idInKey(key));
    const former = packedOf(was);
    if (!(await this.parent.isOwn())) {
      // The lease ended before anything was applied, or this is another cluster.
      if ((await this.objects.differsFromFormer(former)) === undefined) return;
      throw new UnreachableError(otherCluster(this.parent.node));
    }
    await this.objects.restore(former);
  }

  async differsFromOriginal(_key: string, was: Json): Promise<string | undefined> {
    return this.objects.differsFromFormer(packedOf(was));
  }

  /** In a rollback, what Sluice had applied before is applied again, no matter who has changed it by hand. */
  async apply(entry: ConfigEntry, leftMs: () => number, isRollback = false): Promise<void> {
    const wanted = objectOf(entry);
    // Another process may have begun the change: then the rest is not known.
    await this.parent.include([...this.inUse, wanted.object], this.inUse.length > 0);
    const mayTake = (conflicts: readonly FieldConflict[]): boolean => {
      const own = this.ownBefore.get(wanted.id);
      if (isRollback || (own === undefined && this.ownBefore.has(wanted.id))) return true;
      return conflicts.every((conflict) => own?.has(textOf(conflict)) === true);
    };
    await this.objects.bring(wanted, { leftMs, mayTake });
  }

  forgetBefore(entries: readonly ConfigEntry[], sinceMs: number): Promise<void> {
    return this.objects.forgetBefore(entries.map(objectOf), sinceMs);
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    return this.objects.differs(objectOf(entry));
  }

  /** What is not ready yet. Throws Refused if an object has failed. Returns at the next event, or after a moment. */
  notReady(entries: readonly ConfigEntry[], leftMs: () => number): Promise<readonly string[]> {
    return this.repeat(leftMs, async () => {
      const waiting: string[] = [];
      for (const entry of entries) {
        const wanted = objectOf(entry);
        const status = await this.statusOf(wanted);
        if (status.is === 'failed')
          throw new RefusedError(status.fault ?? 'node', `${wanted.id} has failed: ${status.message}`);
        if (status.is !== 'current') waiting.push(`${wanted.id}: ${status.message}`);
      }
      return { result: waiting, isDone: waiting.length === 0 };
    });
  }

  /** What is not done yet: Flux has applied the revision of an object, and one that was deleted is gone. */
  leftToOthers(items: readonly Item[], leftMs: () => number): Promise<Outcomes['await-others']> {
    return this.repeat(leftMs, async () => {
      const what: string[] = [];
      const left: Record<string, string> = {};
      let isOver = false;
      for (const item of items) {
        // Whether the others are ready again is not waited for in a rollback.
        if (item.do === 'apply' && objectOf(item.entry).fluxRevision === undefined) continue;
        const [id, status] =
          item.do === 'apply' ? await this.applied(objectOf(item.entry)) : await this.removed(item.key, item.original);
        if (status.is === 'current') continue;
        if (item.do === 'restore') left[item.key] = status.message;
        // What a namespace contains can take minutes to go, and who needs one of this name waits for it.
        if (item.do === 'restore' && packedOf(item.original.was).kind === 'Namespace') continue;
        what.push(`${id}: ${status.message}`);
        isOver ||= status.is === 'failed';
      }
      return { result: { what, isOver, left }, isDone: isOver || what.length === 0 };
    });
  }

  private async applied(wanted: ObjectEntry): Promise<readonly [string, ObjectStatus]> {
    return [wanted.id, await this.statusOf(wanted)];
  }

  private async removed(key: string, { kind, was }: Original): Promise<readonly [string, ObjectStatus]> {
    const former = packedOf(was);
    const metadata = (await this.objects.readFormer(former))?.metadata;
    if (metadata?.deletionTimestamp === undefined) return [idInKey(key), { is: 'current', message: '' }];
    const { finalizers = [] } = metadata as { readonly finalizers?: readonly string[] };
    const who = finalizers.length === 0 ? '' : `, until its finalizers are removed: ${finalizers.join(', ')}`;
    this.watches.tellWhenGone(idInKey(key));
    const message = kind === FLUX_SYNC ? 'Flux has not deleted what it had applied' : `it is still being deleted${who}`;
    return [idInKey(key), { is: 'terminating', message }];
  }

  /** Looks until that is done, but not for long. */
  private async repeat<T>(
    leftMs: () => number,
    look: () => Promise<{ readonly result: T; readonly isDone: boolean }>,
  ): Promise<T> {
    const untilMs = performance.now() + Math.min(LOOK_MS, leftMs());
    for (;;) {
      const { result, isDone } = await look();
      const restMs = untilMs - performance.now();
      if (isDone || restMs <= 0) return result;
      await this.watches.next(restMs);
    }
  }

  title({ kind, name }: ConfigEntry): string {
    return `${kind}/${name}`;
  }

  private async statusOf({ id, object, fluxRevision }: ObjectEntry): Promise<ObjectStatus> {
    // What a watch keeps of an object does not tell its revision.
    if (fluxRevision !== undefined) return fluxStatus(await this.found(object), fluxRevision, this.attempts.get(id));
    const seen = this.watches.statusOf(groupKindOf(object), id) ?? (await this.judged(object));
    if (seen === undefined) return { is: 'in-progress', message: 'is missing' };
    return seen.is === 'in-progress' && isSuspended(object) ? { is: 'current', message: 'is suspended' } : seen;
  }

  private async judged(object: KubeManifest): Promise<ObjectStatus | undefined> {
    const found = await this.found(object);
    return found === undefined ? undefined : kstatus(found, Date.now());
  }

  private async packed(entry: ConfigEntry): Promise<Json> {
    const { object } = objectOf(entry);
    const found = await this.found(object);
    // One that is being deleted goes before anything is applied: it is nothing that could be given back.
    return packedObject(object, isEnding(found) ? undefined : found);
  }

  private found(object: KubeManifest): Promise<LiveObject | undefined> {
    return this.objects.read(object);
  }

  private objectsIn(config: Config): readonly ObjectEntry[] {
    return objectsIn(this.kinds, config, this.place);
  }

  private manifestsIn(config: Config): readonly KubeManifest[] {
    return this.objectsIn(config).map(({ object }) => object);
  }

  /** The fields of an entry in force that others own now. */
  private async conflictsOf(entry: ObjectEntry): Promise<ReadonlySet<string>> {
    const resource = await this.objects.served(entry.object);
    if (resource === undefined) return new Set();
    try {
      await this.objects.tryOut(resource, entry, false);
      return new Set();
    } catch (error) {
      return new Set(conflictsIn(error)?.map(textOf));
    }
  }
}

const textOf = ({ manager, field }: FieldConflict): string => `${manager} ${field}`;

/** A Job whose own manifest says so is not to run. One that another program has suspended, such as a queue, is. */
const isSuspended = (manifest: KubeManifest): boolean =>
  groupKindOf(manifest) === 'Job.batch' &&
  (manifest['spec'] as { readonly suspend?: unknown } | undefined)?.suspend === true;

const hasNamespace = (manifests: readonly KubeManifest[], name: string | undefined): boolean =>
  manifests.some(({ kind, metadata }) => kind === 'Namespace' && metadata.name === name);

const isEnding = (found: LiveObject | undefined): boolean => found?.metadata.deletionTimestamp !== undefined;

/** Whether the config itself defines the kind of an object. */
const isDefinedIn = (manifests: readonly KubeManifest[], object: KubeManifest): boolean =>
  manifests.some((one) => {
    if (one.kind !== 'CustomResourceDefinition') return false;
    const { group, names } = one['spec'] as { readonly group?: string; readonly names?: { readonly kind?: string } };
    return groupKindOf(object) === `${names?.kind}.${group}`;
  });

/** A webhook that cannot be asked without consequences is asked when the object is applied. */
const isOfDryRun = (error: unknown): boolean => /does not support dry run/.test((error as Error).message);
