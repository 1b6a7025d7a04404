import { setTimeout as pause } from 'node:timers/promises';
import { groupKindOf, type KubeManifest } from '#libs/manifests/lean';
import type { KubeResource, LiveObject, ObjectBody } from '#libs/kube/lean';
import { RefusedError, UnreachableError, type Clock } from '../ports.js';
import { PART_OF, type ApplySet } from './apply-set.js';
import {
  conflictsIn,
  isEndingNamespace,
  isOvertaken,
  isUnserved,
  refusalFrom,
  type ClusterCalls,
  type FieldConflict,
} from './cluster-calls.js';
import type { ObjectEntry } from './cluster-kinds.js';
import { extract, isEmpty, MANAGER, ownFields, restoredManagers, union } from './field-sets.js';
import { differenceBetween, missingFrom } from './object-differences.js';
import type { ObjectWatches } from './object-watches.js';
import { formerObject, type PackedObject } from './packed-object.js';

/** Others may write to the object all the time. */
const MOST_TRIES = 8;
const AGAIN_MS = 200;
/** How long to wait for a definition that is missing, and how often to look. */
const MISSING_MS = 30_000;
const LOOK_MS = 500;
/** Of a kind with fewer objects, each is read. A list makes the server go through the objects of everybody. */
const LISTED_FROM = 4;

export interface BringOptions {
  readonly leftMs: () => number;
  /** Whether fields may be taken from these managers. */
  readonly mayTake: (conflicts: readonly FieldConflict[]) => boolean;
}

/** Reads and writes the objects of one cluster. Whatever it does may be repeated. */
export class ClusterObjects {
  private missingUntilMs: number | undefined;

  constructor(
    private readonly calls: ClusterCalls,
    private readonly watches: ObjectWatches,
    private readonly set: ApplySet,
    private readonly options: { readonly clock: Clock; readonly missingMs?: number },
  ) {}

  /** How the cluster serves the kind of an object; undefined if it does not. */
  async served({ apiVersion, kind }: Head, isFresh = false): Promise<KubeResource | undefined> {
    try {
      return await this.calls.read((api) => api.resource(apiVersion, kind, isFresh));
    } catch (error) {
      throw refusalFrom(error);
    }
  }

  /** The same. Waits for a definition that is missing, once per change, and then refuses. */
  async awaitServed(
    object: Head & Pick<KubeManifest, 'metadata'>,
    leftMs: () => number = () => Infinity,
  ): Promise<KubeResource> {
    const nowMs = performance.now();
    const missingMs = this.options.missingMs ?? MISSING_MS;
    for (;;) {
      const resource = await this.served(object, true);
      if (resource !== undefined) return requireScope(resource, object);
      if (this.missingUntilMs === undefined || this.missingUntilMs < nowMs - missingMs)
        this.missingUntilMs = nowMs + missingMs;
      if (performance.now() >= Math.min(this.missingUntilMs, nowMs + leftMs() / 2))
        throw new RefusedError(
          'node',
          `the cluster has no ${object.kind} in ${object.apiVersion}: its CustomResourceDefinition is missing. Apply it first, or in the same change`,
        );
      await pause(LOOK_MS);
    }
  }

  /** Undefined if there is no such object, or no such kind. */
  async read(object: Head & Pick<KubeManifest, 'metadata'>): Promise<LiveObject | undefined> {
    const resource = await this.served(object);
    return resource === undefined ? undefined : this.readAs(resource, object);
  }

  /** What the cluster says to the object: nothing is stored. Throws KubeError if it refuses. */
  async tryOut(resource: KubeResource, { object }: Pick<ObjectEntry, 'object'>, force: boolean): Promise<LiveObject> {
    return this.calls.read((api) => api.apply(resource, this.bodyOf(object), { manager: MANAGER, force, isDry: true }));
  }

  /** Creates or updates the object with what the entry says. */
  async bring(entry: ObjectEntry, options: BringOptions): Promise<void> {
    const { id, object, digest } = entry;
    let force = entry.takeOver;
    for (let tries = 1; ; tries++) {
      const resource = await this.awaitServed(object, options.leftMs);
      this.watches.follow(groupKindOf(object), resource, object);
      const found = await this.readFree(resource, object, options.leftMs);
      const body = this.bodyOf(object, found);
      const askedMs = this.options.clock();
      try {
        const live = await this.calls.write((api) => api.apply(resource, body, { manager: MANAGER, force }));
        return this.watches.verify(id, digest, live, askedMs);
      } catch (error) {
        const conflicts = conflictsIn(error);
        // Nobody had these fields when the change was checked, so the config is not to blame.
        if (conflicts !== undefined && !options.mayTake(conflicts)) throw conflictRefusal(conflicts, 'node');
        if (conflicts !== undefined) force = true;
        else if (isUnserved(error)) this.calls.forgetKinds();
        else if (isEndingNamespace(error) && options.leftMs() > LOOK_MS) tries = 0;
        else if (!isOvertaken(error) && !(error instanceof UnreachableError)) throw refusalFrom(error);
        if (tries >= MOST_TRIES) throw refusalFrom(error);
        await pause(tries === 0 ? LOOK_MS : AGAIN_MS);
      }
    }
  }

  /** As soon as no other object of this name is being deleted: before that, none can be created. */
  private async readFree(
    resource: KubeResource,
    object: KubeManifest,
    leftMs: () => number,
  ): Promise<LiveObject | undefined> {
    for (;;) {
      const found = await this.readAs(resource, object);
      const isEnding = found?.metadata.deletionTimestamp !== undefined;
      if (leftMs() <= 0)
        throw new RefusedError('node', `the time is over${isEnding ? ', and it is still being deleted' : ''}`);
      if (!isEnding) return found;
      await pause(LOOK_MS);
    }
  }

  /**
   * What is known of these objects from before this time no longer counts: a watch may not have told yet what somebody
   * has done. The versions in one list show which objects are still as they were; the others are read when they are
   * compared.
   */
  async forgetBefore(entries: readonly ObjectEntry[], sinceMs: number): Promise<void> {
    const old = entries.filter(({ id }) => this.watches.isFromBefore(id, sinceMs));
    for (const some of Map.groupBy(old, ({ object }) => groupKindOf(object)).values()) {
      const askedMs = this.options.clock();
      const versions = some.length < LISTED_FROM ? undefined : await this.versionsAsOf(some);
      for (const { id } of some) this.watches.confirm(id, versions?.get(id), askedMs);
    }
  }

  /** The versions of all objects of a kind, by id; undefined if they cannot be listed. */
  private async versionsAsOf([first]: readonly ObjectEntry[]): Promise<ReadonlyMap<string, string> | undefined> {
    if (first === undefined) return undefined;
    try {
      const resource = await this.served(first.object);
      if (resource === undefined) return undefined;
      return await this.calls.read((api) => this.watches.versions(api, resource, first.object));
    } catch {
      // Reading the objects one by one says why.
      return undefined;
    }
  }

  /** How the object differs from the entry. It is read only if it may have changed since it was last compared. */
  async differs({ id, object, digest }: ObjectEntry): Promise<string | undefined> {
    const groupKind = groupKindOf(object);
    if (this.watches.isVerified(groupKind, id, digest)) return undefined;
    const resource = await this.served(object, true);
    if (resource === undefined) return 'the cluster does not have its kind any more';
    this.watches.follow(groupKind, resource, object);
    const askedMs = this.options.clock();
    const found = await this.readAs(resource, object);
    if (found === undefined) return 'is missing';
    if (found.metadata.deletionTimestamp !== undefined) return 'is being deleted';
    if (this.watches.isAsVerified(id, digest, found)) return void this.watches.verify(id, digest, found, askedMs);
    const secret = object.kind === 'Secret';
    // Nearly all objects contain what was applied as it was written. For the others, the server knows.
    let how = missingFrom(this.bodyOf(object), found, secret);
    if (how !== undefined) {
      try {
        how = differenceBetween(await this.tryOut(resource, { object }, true), found, secret);
      } catch (error) {
        throw refusalFrom(error);
      }
    }
    if (how === undefined) this.watches.verify(id, digest, found, askedMs);
    else this.watches.forget(id);
    return how;
  }

  /** Gives the object what it had, in the fields that Sluice has set since; deletes it if it did not exist. */
  async restore(was: PackedObject): Promise<void> {
    const object = headOf(was);
    const former = formerObject(was);
    for (let tries = 1; ; tries++) {
      const resource = await this.served(object, tries > 1);
      // Without its kind, it is gone as well.
      if (resource === undefined) return;
      try {
        const found = await this.readAs(resource, object);
        if (former !== undefined) await this.putBack(resource, found, former);
        else if (found !== undefined && this.isOfSluice(found) && found.metadata.deletionTimestamp === undefined)
          await this.calls.write((api) => api.delete(resource, found));
        return;
      } catch (error) {
        const isTriedAgain = isOvertaken(error) || error instanceof UnreachableError;
        if (!isTriedAgain || tries >= MOST_TRIES) throw refusalFrom(error);
        await pause(AGAIN_MS);
      }
    }
  }

  /** The object as it is now. */
  readFormer(was: PackedObject): Promise<LiveObject | undefined> {
    return this.read(headOf(was));
  }

  /** How the object differs from what it was. */
  async differsFromFormer(was: PackedObject): Promise<string | undefined> {
    const object = headOf(was);
    const found = await this.read(object);
    const former = formerObject(was);
    if (former === undefined)
      return found === undefined || !this.isOfSluice(found) || found.metadata.deletionTimestamp !== undefined
        ? undefined
        : 'is still there';
    if (found === undefined) return 'is missing';
    const [now, before] = [ownFields(found.metadata.managedFields), ownFields(former.managers)];
    if (!isEmpty(now) && isEmpty(before)) return 'still has what Sluice has set';
    const fields = union(now, before);
    // Nothing in it is of Sluice, neither then nor now. The rest is up to others, who may have changed it since.
    if (isEmpty(fields)) return undefined;
    // Others may have items in the same lists.
    const [wanted, there] = [extract(former.object, fields, 'set'), extract(found, fields, 'set')];
    return missingFrom(wanted, there, object.kind === 'Secret');
  }

  private async putBack(
    resource: KubeResource,
    found: LiveObject | undefined,
    { object, managers }: NonNullable<ReturnType<typeof formerObject>>,
  ): Promise<void> {
    const before = ownFields(managers);
    const now = ownFields(found?.metadata.managedFields);
    const restored = union(now, before);
    if (found !== undefined && isEmpty(restored)) return;
    const fields = (found === undefined ? object : (extract(object, restored) ?? {})) as Partial<KubeManifest>;
    const { apiVersion, kind } = object;
    const { name, namespace } = object.metadata;
    const metadata = {
      ...fields.metadata,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(found === undefined ? {} : { resourceVersion: found.metadata.resourceVersion }),
    };
    const body: ObjectBody = { ...fields, apiVersion, kind, metadata };
    const after = await this.calls.write((api) => api.apply(resource, body, { manager: MANAGER, force: true }));
    const owners =
      found === undefined ? managers : restoredManagers(after.metadata.managedFields ?? [], managers, restored);
    await this.calls.write((api) => api.writeManagers(resource, after, owners, MANAGER));
  }

  private async readAs(
    resource: KubeResource,
    { metadata }: Pick<KubeManifest, 'metadata'>,
  ): Promise<LiveObject | undefined> {
    try {
      return await this.calls.read((api) => api.read(resource, metadata.name, metadata.namespace));
    } catch (error) {
      throw refusalFrom(error);
    }
  }

  /** What is sent: a compare-and-set if the object exists. `creationTimestamp: null` is nothing that can be applied. */
  private bodyOf(object: KubeManifest, found?: LiveObject): ObjectBody {
    const { creationTimestamp: _, ...metadata } = object.metadata;
    return {
      ...object,
      metadata: {
        ...metadata,
        name: object.metadata.name,
        labels: { ...object.metadata.labels, [PART_OF]: this.set.id },
        ...(found === undefined ? {} : { resourceVersion: found.metadata.resourceVersion }),
      },
    };
  }

  /** Whether Sluice has a part in it. Somebody may have deleted the object, and created another one of this name. */
  private isOfSluice({ metadata }: LiveObject): boolean {
    return metadata.labels?.[PART_OF] === this.set.id || !isEmpty(ownFields(metadata.managedFields));
  }
}

type Head = Pick<KubeManifest, 'apiVersion' | 'kind'>;

const headOf = ({ apiVersion, kind, name, namespace }: PackedObject): Head & Pick<KubeManifest, 'metadata'> => ({
  apiVersion,
  kind,
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
});

export function requireScope(
  resource: KubeResource,
  { kind, metadata: { namespace } }: Head & Pick<KubeManifest, 'metadata'>,
): KubeResource {
  if (resource.isNamespaced && namespace === undefined)
    throw new RefusedError('content', `metadata.namespace is required: in this cluster, a ${kind} is in a namespace`);
  if (!resource.isNamespaced && namespace !== undefined)
    throw new RefusedError(
      'content',
      `metadata.namespace must be left out: in this cluster, a ${kind} is in no namespace`,
    );
  return resource;
}

const MOST_NAMED = 5;

export function conflictRefusal(
  conflicts: readonly FieldConflict[],
  fault: 'content' | 'node' = 'content',
): RefusedError {
  const byManager = [...Map.groupBy(conflicts, ({ manager }) => manager)].map(([manager, some]) => {
    const fields = some.slice(0, MOST_NAMED).map(({ field }) => field);
    const more = some.length > fields.length ? ` and ${some.length - fields.length} more` : '';
    return `${manager} owns ${fields.join(', ')}${more}`;
  });
  return new RefusedError(
    fault,
    `other managers own some of its fields: ${byManager.join('; ')}. Leave these fields out, or set takeOver: true`,
  );
}
