import type { BoundField } from '#libs/contracts';
import { KubeError, type ClusterApi, type LiveObject } from '#libs/kube/lean';
import type { BoundObject, ObjectSource } from '../targets/binding-reader.js';

/** How often to look for a kind that is not there, or for a server that does not answer. */
const AGAIN_MS = 30_000;

type Api = Pick<ClusterApi, 'resource' | 'read' | 'follow'>;

export interface BoundObjectsOptions {
  readonly api: Api;
  /** Makes a call. Rejects with UnreachableError if there is no answer. */
  readonly call: <T>(work: (api: Api) => Promise<T>) => Promise<T>;
  /** `object`: one watch for each object, for which the right to this one is enough. `namespace`: one for all in it. */
  readonly watch: 'object' | 'namespace';
  /** For people: whose right is missing. */
  readonly user: string;
}

/** The objects of one API server that bindings refer to. */
export class BoundObjects implements ObjectSource {
  private readonly watches = new Map<string, Watch>();

  constructor(private readonly options: BoundObjectsOptions) {}

  /** The object as the server has it now, or why it cannot be read. Rejects if that is not known. */
  async read({ apiVersion, kind, namespace, name }: BoundObject): Promise<LiveObject | string> {
    const { call, user } = this.options;
    try {
      const resource = await call((api) => api.resource(apiVersion, kind, true));
      if (resource === undefined) return `the cluster has no kind ${kind} in ${apiVersion}`;
      if (resource.isNamespaced && namespace === '') return `a ${kind} is in a namespace, and the binding names none`;
      return (await call((api) => api.read(resource, name, namespace))) ?? 'it does not exist';
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      return error.lacksRight
        ? `${user} lacks a right: ${shortened(error.message)}. Grant the rights to get, list and watch it`
        : `the API server answers ${error.code}: ${shortened(error.message)}`;
    }
  }

  /** Calls back whenever the object may have changed. */
  follow(object: BoundObject, onChange: () => void): () => void {
    const { watch } = this.options;
    const { apiVersion, kind, namespace, name } = object;
    const key = JSON.stringify([apiVersion, kind, namespace, watch === 'object' ? name : '']);
    let shared = this.watches.get(key);
    if (shared === undefined) this.watches.set(key, (shared = new Watch(this.options, object)));
    const forget = shared.listen(name, onChange);
    return () => {
      forget();
      if (!shared.isIdle) return;
      shared.stop();
      if (this.watches.get(key) === shared) this.watches.delete(key);
    };
  }

  stop(): void {
    for (const watch of this.watches.values()) watch.stop();
    this.watches.clear();
  }
}

const shortened = (text: string): string => text.slice(0, 500);

/** One watch, which several may share. */
class Watch {
  private readonly listeners = new Map<string, Set<() => void>>();
  private timer: NodeJS.Timeout | undefined;
  private end: () => void = () => undefined;
  private isStopped = false;

  constructor(
    private readonly options: BoundObjectsOptions,
    private readonly object: BoundObject,
  ) {
    void this.begin();
  }

  get isIdle(): boolean {
    return this.listeners.size === 0;
  }

  listen(name: string, onChange: () => void): () => void {
    const all = this.listeners.get(name) ?? new Set();
    this.listeners.set(name, all.add(onChange));
    return () => {
      all.delete(onChange);
      if (all.size === 0) this.listeners.delete(name);
    };
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
    this.end();
  }

  private async begin(): Promise<void> {
    const { apiVersion, kind, namespace, name } = this.object;
    const { call, api, watch } = this.options;
    const resource = await call((one) => one.resource(apiVersion, kind, true)).catch(() => undefined);
    if (this.isStopped) return;
    if (resource === undefined) {
      // There is nothing to watch yet. Once there is, everything is read again.
      this.timer = setTimeout(() => void this.begin(), AGAIN_MS).unref();
      return;
    }
    this.end = api.follow<string>(resource, {
      ...(resource.isNamespaced ? { namespace } : {}),
      query: watch === 'object' ? `fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}` : '',
      pick: ({ metadata }) => metadata.name,
      onList: () => this.tellAll(),
      onEvent: (_, { metadata }) => this.tell(metadata.name),
    });
  }

  private tell(name: string): void {
    for (const onChange of this.listeners.get(name) ?? []) onChange();
  }

  private tellAll(): void {
    for (const name of this.listeners.keys()) this.tell(name);
  }
}

/** For targets whose inventory is no hub. */
export const NO_HUB: ObjectSource = {
  read: () => Promise.resolve('the applier of this cluster has no hub: start it with --hub'),
  follow: () => () => undefined,
  stop: () => undefined,
};

/** Objects in the cluster itself, and on its hub. */
export const fromBoth = (own: ObjectSource, hub: ObjectSource): ObjectSource => {
  const of = ({ from }: Pick<BoundField, 'from'>): ObjectSource => (from === 'hub' ? hub : own);
  return {
    read: (object) => of(object).read(object),
    follow: (object, onChange) => of(object).follow(object, onChange),
    // The hub is shared with other clusters.
    stop: () => own.stop(),
  };
};
