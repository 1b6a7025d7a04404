import { SILENT, type Logger } from '#libs/process';
import { KubeConnection, type KubeRequest } from '../connection.js';
import { isKubeStatus } from '../errors.js';
import { Follower } from '../follower.js';
import type { RawObject } from '../objects.js';

/** A kind that an API server serves. */
export interface KubeResource {
  /** Of the group and version: `/apis/apps/v1`. */
  readonly root: string;
  readonly plural: string;
  readonly isNamespaced: boolean;
}

/** An object of any kind, as an API server sends it. */
export interface LiveObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: LiveMetadata;
  readonly [field: string]: unknown;
}

export interface LiveMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly deletionTimestamp?: string;
  readonly managedFields?: readonly ManagedFields[];
}

/** The fields that one manager has set. */
export interface ManagedFields {
  readonly manager?: string;
  readonly operation?: string;
  readonly apiVersion?: string;
  readonly subresource?: string;
  readonly fieldsType?: string;
  readonly fieldsV1?: FieldSet;
  readonly time?: string;
}
/** A tree of fields, as in `fieldsV1`. */
export interface FieldSet {
  readonly [key: string]: FieldSet;
}

export interface ApplyOptions {
  readonly manager: string;
  /** Takes fields from other managers. */
  readonly force?: boolean;
  /** Nothing is stored. */
  readonly isDry?: boolean;
}

export interface ClusterApiOptions {
  /** The content of a kubeconfig. It must not refer to commands or files. */
  readonly kubeconfig: string;
  /** A server that takes longer than this counts as unreachable. */
  readonly timeoutMs: number;
  readonly logger?: Logger;
}

const APPLY = 'application/apply-patch+yaml';
const JSON_PATCH = 'application/json-patch+json';
/** Lists are much shorter without what the objects contain. */
const ONLY_METADATA = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';
const NO_FIELDS: FieldSet = {};

/** The objects of one cluster, of any kind. Nothing is cached but which kinds it serves. */
export class ClusterApi {
  private constructor(
    private readonly connection: KubeConnection,
    private readonly logger: Logger,
    private readonly kinds = new Map<string, Promise<ReadonlyMap<string, KubeResource> | undefined>>(),
    private readonly timeoutMs = Infinity,
  ) {}

  /** Reads the kubeconfig, but sends nothing yet. Throws KubeConfigError. */
  static async open({ kubeconfig, timeoutMs, logger = SILENT }: ClusterApiOptions): Promise<ClusterApi> {
    return new ClusterApi(await KubeConnection.open({ content: kubeconfig, timeoutMs, logger }), logger);
  }

  /** The cluster of a connection that others use too, and close. */
  static over(connection: KubeConnection, { timeoutMs, logger }: Required<Omit<ClusterApiOptions, 'kubeconfig'>>) {
    return new ClusterApi(connection, logger, new Map(), timeoutMs);
  }

  /** The same cluster, for calls that must end sooner. */
  within(timeoutMs: number): ClusterApi {
    return new ClusterApi(this.connection, this.logger, this.kinds, Math.min(this.timeoutMs, timeoutMs));
  }

  get server(): string {
    return this.connection.server;
  }

  close(): Promise<void> {
    return this.connection.close();
  }

  /** One cheap question: whether the API server can work. Throws KubeError with its words if not. */
  async ready(): Promise<void> {
    await this.ask({ method: 'GET', path: '/readyz', isText: true });
  }

  /** How the server serves a kind; undefined if it does not. `isFresh`: definitions may have been added just now. */
  async resource(apiVersion: string, kind: string, isFresh = false): Promise<KubeResource | undefined> {
    const known = this.kinds.get(apiVersion);
    if (known !== undefined && !(isFresh && (await known)?.has(kind) !== true)) return (await known)?.get(kind);
    const reading = this.readKinds(apiVersion);
    this.kinds.set(apiVersion, reading);
    reading.catch(() => this.kinds.delete(apiVersion));
    return (await reading)?.get(kind);
  }

  /** A definition may have been replaced by another one of the same kind. */
  forgetKinds(): void {
    this.kinds.clear();
  }

  /** The object as the server has it now; undefined if there is none. */
  async read(resource: KubeResource, name: string, namespace?: string): Promise<LiveObject | undefined> {
    try {
      return (await this.ask({ method: 'GET', path: pathOf(resource, name, namespace) })) as LiveObject;
    } catch (error) {
      if (isKubeStatus(error, 404)) return undefined;
      throw error;
    }
  }

  /** The metadata of the objects of a kind as the server has them now, in all namespaces or in one. */
  async *metadata(resource: KubeResource, query: string, namespace?: string): AsyncGenerator<LiveMetadata> {
    const path = collectionOf(resource, namespace);
    for await (const { items = [] } of this.connection.pages<RawObject>(path, query, ONLY_METADATA))
      for (const object of items) yield (object as unknown as LiveObject).metadata;
  }

  /** Server-side apply. With a resourceVersion in it, it is a compare-and-set. Returns the object as it is then. */
  async apply(resource: KubeResource, body: ObjectBody, { manager, force, isDry }: ApplyOptions): Promise<LiveObject> {
    const { name, namespace } = body.metadata;
    const query = [
      `fieldManager=${encodeURIComponent(manager)}`,
      'fieldValidation=Strict',
      ...(force === true ? ['force=true'] : []),
      ...(isDry === true ? ['dryRun=All'] : []),
    ].join('&');
    const path = `${pathOf(resource, name, namespace)}?${query}`;
    return (await this.ask({ method: 'PATCH', path, body, type: APPLY })) as LiveObject;
  }

  /** Says who has set the fields of an object, and changes nothing else. A compare-and-set. */
  async writeManagers(
    resource: KubeResource,
    { metadata: { name, namespace, resourceVersion } }: LiveObject,
    managers: readonly ManagedFields[],
    manager: string,
  ): Promise<LiveObject> {
    const body = [
      // A conflict (409) if the object was changed since. A `test` would be answered as if the object were invalid.
      { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
      // An empty list would leave everything as it is. This is how to remove all.
      { op: 'replace', path: '/metadata/managedFields', value: managers.length === 0 ? [NO_FIELDS] : managers },
    ];
    const path = `${pathOf(resource, name, namespace)}?fieldManager=${encodeURIComponent(manager)}`;
    return (await this.ask({ method: 'PATCH', path, body, type: JSON_PATCH })) as LiveObject;
  }

  /** Deletes exactly this object, as it was read. */
  async delete(
    resource: KubeResource,
    { metadata: { name, namespace, uid, resourceVersion } }: LiveObject,
  ): Promise<void> {
    const body = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      propagationPolicy: 'Background',
      preconditions: { uid, resourceVersion },
    };
    await this.ask({ method: 'DELETE', path: pathOf(resource, name, namespace), body });
  }

  /** Follows the objects of a kind, in all namespaces or in one, until the returned function is called. */
  follow<K>(resource: KubeResource, listener: ObjectListener<K>): () => void {
    const { query, namespace, pick, onList, onEvent, onMissing } = listener;
    const follower = new Follower<RawObject, K>({
      connection: this.connection,
      path: collectionOf(resource, namespace),
      logger: quiet(this.logger),
      query,
      onList,
      ...(onMissing === undefined ? {} : { onMissing }),
      // The types of the client have dates where there are texts.
      pick: (object) => pick(object as unknown as LiveObject),
      onEvent: (event, object) => onEvent(event, object as unknown as LiveObject),
    }).start();
    return () => follower.stop();
  }

  private ask(request: KubeRequest): Promise<unknown> {
    return this.connection.ask({ ...request, timeoutMs: this.timeoutMs });
  }

  private async readKinds(apiVersion: string): Promise<ReadonlyMap<string, KubeResource> | undefined> {
    const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    try {
      const { resources = [] } = (await this.ask({ method: 'GET', path: root })) as {
        readonly resources?: readonly ListedResource[];
      };
      const own = resources.filter(({ name }) => !name.includes('/'));
      return new Map(own.map(({ name, kind, namespaced }) => [kind, { root, plural: name, isNamespaced: namespaced }]));
    } catch (error) {
      if (isKubeStatus(error, 404)) return undefined;
      throw error;
    }
  }
}

/** A service with many clusters asks each whether it answers, and says so once: not for each watch and each try. */
const quiet = (logger: Logger): Logger => ({
  debug: (fields, message) => logger.debug(fields, message),
  info: (fields, message) => logger.info(fields, message),
  warn: (fields, message) => logger.debug(fields, message),
  error: (fields, message) => logger.error(fields, message),
});

/** What to follow, and the callbacks. */
export interface ObjectListener<K> {
  readonly query: string;
  /** Undefined: all namespaces. */
  readonly namespace?: string | undefined;
  /** What to keep of each object. */
  readonly pick: (object: LiveObject) => K;
  /** Called with all objects: one that was known before and is not among them is gone. */
  readonly onList: (objects: readonly K[]) => void;
  readonly onEvent: (event: 'set' | 'deleted', object: LiveObject) => void;
  /** Called when the server does not serve the kind any more. It is tried again. */
  readonly onMissing?: () => void;
}

/** What is sent of an object. */
export interface ObjectBody {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

interface ListedResource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

function collectionOf({ root, plural, isNamespaced }: KubeResource, namespace: string | undefined): string {
  const place = isNamespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${root}${place}/${plural}`;
}

function pathOf({ root, plural, isNamespaced }: KubeResource, name: string, namespace?: string): string {
  const place = isNamespaced ? `/namespaces/${encodeURIComponent(namespace ?? '')}` : '';
  return `${root}${place}/${plural}/${encodeURIComponent(name)}`;
}
