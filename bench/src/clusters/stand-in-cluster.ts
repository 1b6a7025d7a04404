import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  fieldsOf,
  has,
  isFields,
  leavesOf,
  merge,
  remove,
  valueAt,
  without,
  wordsOf,
  type FieldTree,
} from './owned-fields.js';
import type { ServedKind } from './stand-in-kinds.js';

type Fields = Record<string, unknown>;

export interface Stored extends Fields {
  metadata: {
    name: string;
    namespace?: string;
    uid: string;
    resourceVersion: string;
    creationTimestamp: string;
    generation?: number;
    labels?: Record<string, string>;
    managedFields?: Manager[];
  };
}

interface Manager {
  manager: string;
  operation: string;
  apiVersion: string;
  time: string;
  fieldsType: string;
  fieldsV1: FieldTree;
  subresource?: string;
}

/** What the server says instead of an object. */
export class Refusal extends Error {
  constructor(
    readonly code: number,
    readonly reason: string,
    message: string,
    readonly causes: readonly object[] = [],
  ) {
    super(message);
  }
}

export interface StoredEvent {
  readonly version: number;
  readonly kind: ServedKind;
  readonly before: Stored | undefined;
  readonly after: Stored | undefined;
}

export interface Place {
  readonly kind: ServedKind;
  readonly name: string;
  readonly namespace: string;
}

export interface Applying {
  readonly manager: string;
  readonly force: boolean;
  readonly isDry: boolean;
}

/** How many events a watch can start from. */
const KEPT_EVENTS = 200;
const IS_CHANGED = 'the object has been modified; please apply your changes to the latest version and try again';

/** The objects of one cluster: server-side apply, compare-and-set, and the events of watches. No schema is checked. */
export class StandInCluster {
  readonly events: StoredEvent[] = [];
  onEvent: (event: StoredEvent) => void = () => undefined;
  private readonly objects = new Map<string, Stored>();
  private counter = 1;

  constructor(namespaces: ServedKind) {
    for (const name of ['default', 'kube-system'])
      this.apply(
        { kind: namespaces, name, namespace: '' },
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
        BY_SERVER,
      );
    this.events.length = 0;
  }

  get version(): number {
    return this.counter;
  }

  read(place: Place): Stored {
    const found = this.objects.get(keyOf(place));
    if (found === undefined) throw notFound(place);
    return found;
  }

  list(kind: ServedKind): readonly Stored[] {
    return [...this.objects].filter(([key]) => key.startsWith(`${kind.plural}/`)).map(([, object]) => object);
  }

  /** Returns the object, and whether it is new. */
  apply(
    place: Place,
    body: Fields,
    { manager, force, isDry }: Applying,
  ): { readonly object: Stored; readonly isNew: boolean } {
    this.requireNamespace(place);
    const before = this.objects.get(keyOf(place));
    const { resourceVersion } = body['metadata'] as { readonly resourceVersion?: string };
    if (resourceVersion !== undefined && resourceVersion !== before?.metadata.resourceVersion) throw changed(place);
    const next = before === undefined ? created(place) : structuredClone(before);
    const managers = next.metadata.managedFields ?? [];
    const own = managers.find((one) => one.manager === manager && one.operation === 'Apply');
    const wanted = fieldsOf(body);
    const conflicts = conflictsOf(
      next,
      body,
      wanted,
      managers.filter((one) => one !== own),
    );
    if (conflicts.length > 0 && !force) throw conflict(conflicts);
    for (const { owner, path } of conflicts) owner.fieldsV1 = without(owner.fieldsV1, path);
    for (const path of leavesOf(own?.fieldsV1 ?? {}))
      if (!has(wanted, path) && !managers.some((one) => one !== own && has(one.fieldsV1, path))) remove(next, path);
    merge(next, { ...body, metadata: ownMetadata(body) });
    const entry = {
      manager,
      operation: 'Apply',
      apiVersion: place.kind.apiVersion,
      time: nowText(),
      fieldsType: 'FieldsV1',
      fieldsV1: wanted,
    };
    const others = managers.filter((one) => one !== own && Object.keys(one.fieldsV1).length > 0);
    next.metadata.managedFields = Object.keys(wanted).length === 0 ? others : [entry, ...others];
    if (next.metadata.managedFields.length === 0) delete next.metadata.managedFields;
    addDefaults(place.kind, next);
    return { object: isDry ? next : this.store(place, before, next), isNew: before === undefined };
  }

  /** A merge patch: its manager owns what it changes. */
  patch(place: Place, body: Fields, manager: string): Stored {
    const before = this.read(place);
    const next = structuredClone(before);
    mergePatch(next, body);
    const set = fieldsOf(body);
    const changedPaths = [...leavesOf(set)].filter(
      (path) => !isDeepStrictEqual(valueAt(before, path), valueAt(next, path)),
    );
    const managers = next.metadata.managedFields ?? [];
    for (const path of changedPaths) for (const one of managers) one.fieldsV1 = without(one.fieldsV1, path);
    const fieldsV1 = [...leavesOf(set)]
      .filter((path) => !changedPaths.includes(path) || valueAt(next, path) === undefined)
      .reduce(without, set);
    const entry = {
      manager,
      operation: 'Update',
      apiVersion: place.kind.apiVersion,
      time: nowText(),
      fieldsType: 'FieldsV1',
      fieldsV1,
    };
    next.metadata.managedFields = [...managers, entry].filter((one) => Object.keys(one.fieldsV1).length > 0);
    return this.store(place, before, next);
  }

  /** Says who has set the fields, and changes nothing else. */
  writeManagers(place: Place, version: unknown, managers: readonly Manager[]): Stored {
    const before = this.read(place);
    if (before.metadata.resourceVersion !== version) throw changed(place);
    const next = structuredClone(before);
    next.metadata.managedFields = managers.filter((one) => Object.keys(one).length > 0);
    if (next.metadata.managedFields.length === 0) delete next.metadata.managedFields;
    return this.store(place, before, next);
  }

  delete(place: Place, { uid, resourceVersion }: { readonly uid?: string; readonly resourceVersion?: string }): Stored {
    const found = this.read(place);
    if (uid !== undefined && uid !== found.metadata.uid) throw differs(place, 'UID', uid, found.metadata.uid);
    if (resourceVersion !== undefined && resourceVersion !== found.metadata.resourceVersion)
      throw differs(place, 'ResourceVersion', resourceVersion, found.metadata.resourceVersion);
    this.objects.delete(keyOf(place));
    this.counter += 1;
    const after = { ...found, metadata: { ...found.metadata, resourceVersion: String(this.counter) } };
    this.tell({ version: this.counter, kind: place.kind, before: after, after: undefined });
    return found;
  }

  private store(place: Place, before: Stored | undefined, next: Stored): Stored {
    if (before !== undefined && isDeepStrictEqual(withoutTimes(before), withoutTimes(next))) return before;
    this.counter += 1;
    next.metadata.resourceVersion = String(this.counter);
    const isOther = place.kind.hasGeneration === true && !isDeepStrictEqual(before?.['spec'], next['spec']);
    if (isOther) next.metadata.generation = (before?.metadata.generation ?? 0) + 1;
    this.objects.set(keyOf(place), next);
    this.tell({ version: this.counter, kind: place.kind, before, after: next });
    if (isOther && place.kind.status !== undefined) setImmediate(() => this.control(place));
    return next;
  }

  /** What the controller of the kind does. */
  private control(place: Place): void {
    const before = this.objects.get(keyOf(place));
    if (before === undefined) return;
    const next = structuredClone(before);
    next['status'] = place.kind.status?.(next, nowText());
    const own = {
      manager: 'kube-controller-manager',
      operation: 'Update',
      apiVersion: place.kind.apiVersion,
      time: nowText(),
      fieldsType: 'FieldsV1',
      fieldsV1: fieldsOf({ status: next['status'] }),
      subresource: 'status',
    };
    const others = (next.metadata.managedFields ?? []).filter(({ manager }) => manager !== own.manager);
    next.metadata.managedFields = [...others, own];
    this.store(place, before, next);
  }

  private tell(event: StoredEvent): void {
    this.events.push(event);
    if (this.events.length > KEPT_EVENTS) this.events.shift();
    this.onEvent(event);
  }

  private requireNamespace({ kind, namespace }: Place): void {
    if (kind.isNamespaced && !this.objects.has(`namespaces//${namespace}`))
      throw new Refusal(404, 'NotFound', `namespaces "${namespace}" not found`);
  }
}

const BY_SERVER: Applying = { manager: 'kube-apiserver', force: true, isDry: false };

const nowText = (): string => `${new Date().toISOString().slice(0, 19)}Z`;
const keyOf = ({ kind, name, namespace }: Place): string => `${kind.plural}/${namespace}/${name}`;

const created = ({ kind, name, namespace }: Place): Stored => ({
  apiVersion: kind.apiVersion,
  kind: kind.kind,
  metadata: {
    name,
    ...(kind.isNamespaced ? { namespace } : {}),
    uid: randomUUID(),
    resourceVersion: '',
    creationTimestamp: nowText(),
  },
});

function ownMetadata(body: Fields): Fields {
  const { resourceVersion: _, ...metadata } = body['metadata'] as Fields;
  return metadata;
}

/** What nobody has set gets the server's value. */
function addDefaults({ defaults }: ServedKind, object: Stored): void {
  if (defaults === undefined) return;
  const all = defaults(object);
  const set = structuredClone(object);
  merge(object, all);
  merge(object, set);
}

interface Conflict {
  readonly owner: Manager;
  readonly path: readonly string[];
}

/** Who else has set a field to another value. */
function conflictsOf(found: Stored, body: Fields, wanted: FieldTree, others: readonly Manager[]): readonly Conflict[] {
  return [...leavesOf(wanted)].flatMap((path) => {
    // An item as such has no value of its own.
    if (path.at(-1) === '.' || isDeepStrictEqual(valueAt(found, path), valueAt(body, path))) return [];
    return others.filter(({ fieldsV1 }) => has(fieldsV1, path)).map((owner) => ({ owner, path }));
  });
}

function conflict(conflicts: readonly Conflict[]): Refusal {
  const words = conflicts.map(({ owner, path }) => ({ by: `conflict with "${owner.manager}"`, field: wordsOf(path) }));
  const count = `${words.length} conflict${words.length === 1 ? '' : 's'}`;
  return new Refusal(
    409,
    'Conflict',
    words.length === 1
      ? `Apply failed with ${count}: ${words[0]?.by}: ${words[0]?.field}`
      : `Apply failed with ${count}: ${words.map(({ by, field }) => `${by}:\n- ${field}`).join('\n')}`,
    words.map(({ by, field }) => ({ reason: 'FieldManagerConflict', message: by, field })),
  );
}

function mergePatch(into: Fields, patch: Fields): void {
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete into[name];
    else if (isFields(value)) {
      const below = isFields(into[name]) ? into[name] : {};
      mergePatch(below, value);
      into[name] = below;
    } else into[name] = structuredClone(value);
  }
}

/** The group is part of how the server names a kind. */
const named = ({ kind, name }: Place): string =>
  `${kind.plural}${kind.apiVersion.includes('/') ? `.${kind.apiVersion.split('/')[0]}` : ''} "${name}"`;

const notFound = (place: Place): Refusal => new Refusal(404, 'NotFound', `${named(place)} not found`);
const changed = (place: Place): Refusal =>
  new Refusal(409, 'Conflict', `Operation cannot be fulfilled on ${named(place)}: ${IS_CHANGED}`);
const differs = ({ kind, name }: Place, what: string, wanted: string, found: string): Refusal =>
  new Refusal(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${kind.kind} "${name}": the ${what} in the precondition (${wanted}) does not match the ${what} in record (${found}). The object might have been ${what === 'UID' ? 'deleted and then recreated' : 'modified'}`,
  );

function withoutTimes({ metadata, ...rest }: Stored): object {
  const managers = (metadata.managedFields ?? []).map(({ time: _, ...one }) => one);
  return { ...rest, metadata: { ...metadata, managedFields: managers } };
}
