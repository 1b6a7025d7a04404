import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { kubeObjectId } from '#libs/manifests/lean';
import type { ClusterApi, KubeResource, LiveMetadata, LiveObject } from '#libs/kube/lean';
import { PART_OF, type ApplySet } from './apply-set.js';
import { kstatus, type ObjectStatus } from './kstatus.js';
import { shapeOf } from './object-differences.js';

/** What the last event said about an object. */
interface Seen {
  readonly version: string;
  /** A digest of everything but its status. */
  readonly shape: string;
  readonly status: ObjectStatus;
}

/** A shape of which it is known that it is as the entry wants it. */
interface Verified {
  readonly entry: string;
  readonly shape: string;
  /** When the server was asked for what shows it; undefined if it must be asked again. */
  readonly askedMs: number | undefined;
}

interface Followed {
  isListed: boolean;
  readonly resource: KubeResource;
  readonly stop: () => void;
}

export type WatchedApi = Pick<ClusterApi, 'follow'>;

/** How long changes are gathered before the applier looks. */
const GATHER_MS = 1_000;
/** Of how many deleted objects the version is remembered. Only an answer that is still under way may be older. */
const MOST_DELETED = 1_000;

/**
 * Watches the objects of Sluice in a cluster: one watch per kind, and nothing is polled. It remembers a digest of each,
 * so that an object is read only if it has changed since it was last compared.
 */
export class ObjectWatches {
  private readonly kinds = new Map<string, Followed>();
  private readonly seen = new Map<string, Seen>();
  private readonly verified = new Map<string, Verified>();
  private readonly deleted = new Map<string, string>();
  private readonly leaving = new Set<string>();
  private readonly waiting = new Set<() => void>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly api: WatchedApi,
    private readonly set: ApplySet,
    /** Called when an object differs from what it was when it was last compared. */
    private readonly onDrift: () => void,
  ) {}

  /** Watches the objects of this kind from now on. */
  follow(
    groupKind: string,
    resource: KubeResource,
    { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
  ): void {
    const followed = this.kinds.get(groupKind);
    if (isDeepStrictEqual(followed?.resource, resource)) return;
    // It is served in another version now, or by another definition.
    followed?.stop();
    const idOf = ({ metadata }: LiveObject): string => idFrom({ apiVersion, kind }, metadata);
    const stop = this.api.follow<readonly [string, Seen]>(resource, {
      query: this.query,
      namespace: this.set.within,
      // A list does not say the kind of each object.
      pick: (object) => [idOf(object), seenOf({ ...object, apiVersion, kind })],
      onList: (all) => this.listed(groupKind, new Map(all)),
      onEvent: (event, object) =>
        event === 'deleted'
          ? this.gone(idOf(object), versionOf(object))
          : this.saw(idOf(object), seenOf({ ...object, apiVersion, kind })),
      onMissing: () => this.unserved(groupKind),
    });
    this.kinds.set(groupKind, { isListed: false, resource, stop });
  }

  /** The versions of all objects of a kind in this set, by id, as the server has them now. */
  async versions(
    api: Pick<ClusterApi, 'metadata'>,
    resource: KubeResource,
    of: { readonly apiVersion: string; readonly kind: string },
  ): Promise<ReadonlyMap<string, string>> {
    const versions = new Map<string, string>();
    for await (const metadata of api.metadata(resource, this.query, this.set.within))
      versions.set(idFrom(of, metadata), versionOf({ metadata }));
    return versions;
  }

  private get query(): string {
    return `labelSelector=${encodeURIComponent(`${PART_OF}=${this.set.id}`)}`;
  }

  /** The object is as the entry wants it, as the server has sent it when it was asked at this time. */
  verify(id: string, entry: string, live: LiveObject, askedMs: number): void {
    const seen = seenOf(live);
    this.verified.set(id, { entry, shape: seen.shape, askedMs });
    this.note(id, seen);
  }

  /** Whether all that shows that the object is as it should be is from before this time. */
  isFromBefore(id: string, sinceMs: number): boolean {
    const askedMs = this.verified.get(id)?.askedMs;
    return askedMs !== undefined && askedMs < sinceMs;
  }

  /** The server has sent this version, or none, when it was asked at this time. Another one has to be read. */
  confirm(id: string, version: string | undefined, askedMs: number): void {
    const verified = this.verified.get(id);
    const isSame = version !== undefined && version !== UNKNOWN && this.seen.get(id)?.version === version;
    if (verified !== undefined) this.verified.set(id, { ...verified, askedMs: isSame ? askedMs : undefined });
  }

  /** Whether the object is as it was when it was known to be as the entry wants it. */
  isAsVerified(id: string, entry: string, live: LiveObject): boolean {
    const verified = this.verified.get(id);
    return verified?.entry === entry && verified.shape === seenOf(live).shape;
  }

  /** It is being deleted. The last of such objects that goes is news. */
  tellWhenGone(id: string): void {
    this.leaving.add(id);
  }

  /** It is no longer known what the object is like. */
  forget(id: string): void {
    this.verified.delete(id);
  }

  /** Whether nothing about the object has changed since it was known to be as the entry wants it. */
  isVerified(groupKind: string, id: string, entry: string): boolean {
    const verified = this.verified.get(id);
    return (
      this.kinds.get(groupKind)?.isListed === true &&
      verified?.entry === entry &&
      verified.askedMs !== undefined &&
      this.seen.get(id)?.shape === verified.shape
    );
  }

  /** What the last event said; undefined if the kind is not watched, or nothing was heard of the object. */
  statusOf(groupKind: string, id: string): ObjectStatus | undefined {
    return this.kinds.get(groupKind)?.isListed === true ? this.seen.get(id)?.status : undefined;
  }

  /** Resolves at the next event, or after this time. */
  next(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.waiting.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.waiting.add(end);
    });
  }

  stop(): void {
    for (const { stop } of this.kinds.values()) stop();
    clearTimeout(this.timer);
    this.timer = undefined;
    for (const end of this.waiting) end();
  }

  private listed(groupKind: string, all: ReadonlyMap<string, Seen>): void {
    const kind = this.kinds.get(groupKind);
    // Its data may have been replaced, and versions are lower now: what was heard before says nothing any more.
    if (kind?.isListed === true)
      for (const id of all.keys()) for (const known of [this.seen, this.deleted]) known.delete(id);
    if (kind !== undefined) kind.isListed = true;
    for (const id of [...this.seen.keys()]) if (kindIn(id) === groupKind && !all.has(id)) this.gone(id);
    for (const [id, seen] of all) this.saw(id, seen);
  }

  private saw(id: string, seen: Seen): void {
    if (this.note(id, seen) && this.verified.get(id)?.shape !== seen.shape && this.verified.has(id)) this.tell();
    for (const end of this.waiting) end();
  }

  private gone(id: string, version?: string): void {
    this.seen.delete(id);
    if (version !== undefined) this.noteDeleted(id, version);
    const isLast = this.leaving.delete(id) && this.leaving.size === 0;
    if (this.verified.delete(id) || isLast) this.tell();
    for (const end of this.waiting) end();
  }

  /** An event may arrive after the answer to a later write. Whether this is news. */
  private note(id: string, seen: Seen): boolean {
    const known = this.seen.get(id)?.version ?? this.deleted.get(id);
    if (known !== undefined && BigInt(known) > BigInt(seen.version)) return false;
    this.seen.set(id, seen);
    return true;
  }

  private noteDeleted(id: string, version: string): void {
    this.deleted.delete(id);
    this.deleted.set(id, version);
    const [oldest] = this.deleted.keys();
    if (this.deleted.size > MOST_DELETED && oldest !== undefined) this.deleted.delete(oldest);
  }

  /** Its definition is gone, and with it the objects, of which no event may have told. */
  private unserved(groupKind: string): void {
    const kind = this.kinds.get(groupKind);
    if (kind?.isListed !== true) return;
    kind.isListed = false;
    this.tell();
    for (const end of this.waiting) end();
  }

  private tell(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.onDrift();
    }, GATHER_MS);
  }
}

const idFrom = (
  { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
  { name, namespace }: Pick<LiveMetadata, 'name' | 'namespace'>,
): string => kubeObjectId({ apiVersion, kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } });

/** A version that cannot be compared counts as older than all others. */
const UNKNOWN = '0';
const versionOf = ({ metadata: { resourceVersion } }: { readonly metadata: LiveMetadata }): string =>
  /^\d+$/.test(resourceVersion) ? resourceVersion : UNKNOWN;

const kindIn = (id: string): string => id.slice(0, id.indexOf('/'));

/** A status that changes only with time, such as that of a pod without a place, is judged again at the next event. */
function seenOf(object: LiveObject): Seen {
  return {
    version: versionOf(object),
    shape: createHash('sha256').update(shapeOf(object)).digest('base64'),
    status: kstatus(object, Date.now()),
  };
}
