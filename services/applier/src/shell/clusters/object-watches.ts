import { createHash } from 'node:crypto';
import { kubeObjectId } from '#libs/manifests/lean';
import type { ClusterApi, KubeResource, LiveObject } from '#libs/kube/lean';
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
}

/** How long changes are gathered before the applier looks. */
const GATHER_MS = 1_000;

/**
 * Watches the objects of Sluice in a cluster: one watch per kind, and nothing is polled. It remembers a digest of each,
 * so that an object is read only if it has changed since it was last compared.
 */
export class ObjectWatches {
  private readonly kinds = new Map<string, { isListed: boolean; readonly stop: () => void }>();
  private readonly seen = new Map<string, Seen>();
  private readonly verified = new Map<string, Verified>();
  private readonly waiting = new Set<() => void>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly api: Pick<ClusterApi, 'follow'>,
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
    if (this.kinds.has(groupKind)) return;
    const idOf = ({ metadata: { name, namespace } }: LiveObject): string =>
      kubeObjectId({ apiVersion, kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } });
    const stop = this.api.follow<readonly [string, Seen]>(resource, {
      query: `labelSelector=${encodeURIComponent(`${PART_OF}=${this.set.id}`)}`,
      namespace: this.set.within,
      // A list does not say the kind of each object.
      pick: (object) => [idOf(object), seenOf({ ...object, apiVersion, kind })],
      onList: (all) => this.listed(groupKind, new Map(all)),
      onEvent: (event, object) =>
        event === 'deleted' ? this.gone(idOf(object)) : this.saw(idOf(object), seenOf({ ...object, apiVersion, kind })),
    });
    this.kinds.set(groupKind, { isListed: false, stop });
  }

  /** The object as the server has just sent it, which is as the entry wants it. */
  verify(id: string, entry: string, live: LiveObject): void {
    const seen = seenOf(live);
    this.verified.set(id, { entry, shape: seen.shape });
    this.note(id, seen);
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
    if (kind !== undefined) kind.isListed = true;
    for (const id of [...this.seen.keys()]) if (kindIn(id) === groupKind && !all.has(id)) this.gone(id);
    for (const [id, seen] of all) this.saw(id, seen);
  }

  private saw(id: string, seen: Seen): void {
    if (this.note(id, seen) && this.verified.get(id)?.shape !== seen.shape && this.verified.has(id)) this.tell();
    for (const end of this.waiting) end();
  }

  private gone(id: string): void {
    this.seen.delete(id);
    if (this.verified.delete(id)) this.tell();
    for (const end of this.waiting) end();
  }

  /** An event may arrive after the answer to a later write. Whether this is news. */
  private note(id: string, seen: Seen): boolean {
    const known = this.seen.get(id);
    if (known !== undefined && BigInt(known.version) > BigInt(seen.version)) return false;
    this.seen.set(id, seen);
    return true;
  }

  private tell(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.onDrift();
    }, GATHER_MS);
  }
}

const kindIn = (id: string): string => id.slice(0, id.indexOf('/'));

/** A status that changes only with time, such as that of a pod without a place, is judged again at the next event. */
function seenOf(object: LiveObject): Seen {
  return {
    version: /^\d+$/.test(object.metadata.resourceVersion) ? object.metadata.resourceVersion : '0',
    shape: createHash('sha256').update(shapeOf(object)).digest('base64'),
    status: kstatus(object, Date.now()),
  };
}
