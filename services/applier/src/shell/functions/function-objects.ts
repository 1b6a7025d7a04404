import type { FunctionKind } from '#libs/manifests/lean';
import { BadAnswerError, RefusedError, UnreachableError, type Clock } from '../ports.js';
import { isComparable } from './certificates.js';
import { FailedCallError, type FunctionAnswer, type FunctionClient, type Method } from './function-client.js';
import { certificatesOf, difference, hasCertificates, knownOf, wireOf, type WireObject } from './wire.js';

/** How long what was read of a collection is used. A list is read once for many objects, and after each write. */
const LIST_MS = 1_000;
/** A call that has no answer, a doubled object and a lost one can follow each other. */
const MOST_TRIES = 5;
/** How long to wait for what the function does not have yet, such as an interface, and how often to try. */
const DEPENDENCY_MS = 30_000;
const DEPENDENCY_AGAIN_MS = 500;
const PATIENT_AGAIN_MS = 60_000;

/** The field that names an object. */
const NAME = 'name';

export interface ObjectOptions {
  readonly listMs?: number;
  readonly dependencyMs?: number;
  /** The time that leases are read at. Default: that of this process. */
  readonly clock?: Clock;
  /** The interface of this replica for the network in a spec; undefined if it has none. Default: the same name. */
  readonly interfaceOf?: (network: string) => string | undefined;
}

/** An object that should exist in this form, or not at all. */
export interface Wanted {
  readonly kind: FunctionKind;
  readonly name: string;
  readonly object: WireObject | undefined;
}

/** Something that another object still prevents. It is tried again after each other write. */
class BlockedError extends RefusedError {
  constructor(message: string) {
    super('node', message);
  }
}

/** The function lacks something that the object refers to. */
export class MissingDependencyError extends RefusedError {
  constructor(message: string) {
    super('node', message);
  }
}

/** The objects of one replica. Whatever it does may be repeated, and continues where it was interrupted. */
export class FunctionObjects {
  private readonly lists = new Map<string, { readonly list: Promise<readonly WireObject[]>; readonly atMs: number }>();
  private readonly blocked = new Map<string, { readonly wanted: Wanted; readonly why: string }>();
  /** The last certificates that were written, for objects that cannot be compared. */
  private readonly written = new Map<string, string>();
  private patientUntilMs = -Infinity;
  /** What was brought, and not compared since: so it was there a moment ago. */
  private readonly brought = new Map<string, Wanted>();
  private readonly clock: Clock;

  constructor(
    private readonly client: FunctionClient,
    private readonly options: ObjectOptions = {},
  ) {
    this.clock = options.clock ?? (() => performance.now());
  }

  /** The object that a fragment becomes on this replica. */
  wireOf(kind: FunctionKind, name: string, spec: WireObject): WireObject {
    const { interfaceOf } = this.options;
    return interfaceOf === undefined
      ? wireOf(kind, name, spec)
      : wireOf(kind, name, translated(kind, spec, interfaceOf));
  }

  /** All objects of this name: several if a POST was repeated. */
  async read(kind: FunctionKind, name: string, timeoutMs?: number): Promise<readonly WireObject[]> {
    return (await this.list(kind, timeoutMs)).filter((object) => object[NAME] === name);
  }

  /** The same as of now. Doubles are only in the list. */
  private async readNow(kind: FunctionKind, name: string, timeoutMs: number): Promise<readonly WireObject[]> {
    if (kind.post === 'doubles') return this.read(kind, name, timeoutMs);
    const path = pathOf(kind, name);
    const found = await this.get(path, timeoutMs, (answer) => {
      if (answer.status === 404) return [];
      const { body } = succeeded(answer, 'GET', path);
      if (!isObject(body)) throw new RefusedError('node', `GET ${path} is answered without an object`);
      return [body];
    });
    const known = this.lists.get(kind.path);
    if (known !== undefined) {
      const others = (await known.list).filter((object) => object[NAME] !== name);
      this.lists.set(kind.path, { ...known, list: Promise.resolve([...others, ...found]) });
    }
    return found;
  }

  /** All objects of the kind's collection. */
  async list(kind: FunctionKind, timeoutMs?: number): Promise<readonly WireObject[]> {
    const known = this.lists.get(kind.path);
    const { listMs = LIST_MS } = this.options;
    const nowMs = this.clock();
    if (known !== undefined && nowMs - known.atMs < listMs) return known.list;
    const list = this.fetchList(kind, timeoutMs);
    this.lists.set(kind.path, { list, atMs: nowMs });
    list.catch(() => this.lists.delete(kind.path));
    return list;
  }

  /** Lists from before this time are not used any more. */
  forgetBefore(sinceMs: number): void {
    for (const [path, { atMs }] of this.lists) {
      if (atMs < sinceMs) this.lists.delete(path);
    }
  }

  /** Why the replica does not have the object as wanted; undefined if it does. */
  async differs(wanted: Wanted): Promise<string | undefined> {
    if (await this.client.settled()) this.lists.clear();
    const found = await this.read(wanted.kind, wanted.name);
    const how = differenceOf(wanted, found);
    if (this.brought.delete(keyOf(wanted)) && wanted.object !== undefined && found.length === 0) throw lost(wanted);
    const blocked = this.blocked.get(keyOf(wanted))?.why;
    return how === undefined || blocked === undefined ? how : `${how}: ${blocked}`;
  }

  /**
   * Creates, updates or deletes the object, unless it already is as wanted. If another object prevents that, it is
   * tried again after the next write: an item later in the same work may free it, and a comparison tells if none did.
   */
  async bring(wanted: Wanted, leftMs: () => number = () => Infinity): Promise<void> {
    const key = keyOf(wanted);
    try {
      const wrote = await this.make(wanted, leftMs);
      this.blocked.delete(key);
      if (wrote) await this.bringBlocked(leftMs);
    } catch (error) {
      if (!(error instanceof BlockedError)) throw error;
      this.blocked.set(key, { wanted, why: error.message });
    }
  }

  /** Throws if something that was brought is gone: then the replica has restarted, and lacks what was there. */
  private async requireBrought(): Promise<void> {
    this.lists.clear();
    for (const [key, wanted] of [...this.brought]) {
      if ((await this.read(wanted.kind, wanted.name)).length > 0) continue;
      this.brought.delete(key);
      throw lost(wanted);
    }
  }

  private async bringBlocked(leftMs: () => number): Promise<void> {
    for (let isMoving = true; isMoving;) {
      isMoving = false;
      for (const [key, { wanted }] of [...this.blocked]) {
        try {
          await this.make(wanted, leftMs);
          this.blocked.delete(key);
          isMoving = true;
        } catch (error) {
          if (!(error instanceof RefusedError) || error instanceof UnreachableError) throw error;
          this.blocked.set(key, { wanted, why: error.message });
        }
      }
    }
  }

  /** Reads, and writes until what it reads is as wanted. Whether it wrote. */
  private async make(wanted: Wanted, leftMs: () => number): Promise<boolean> {
    const { kind, name, object } = wanted;
    let failed: Error | undefined;
    let tries = 0;
    for (;;) {
      // After a call without an answer too: what it did is seen before anything else is tried.
      const timeoutMs = this.timeoutFor(leftMs);
      const found = await (tries > 0 ? this.readNow(kind, name, timeoutMs) : this.read(kind, name, timeoutMs));
      const how = differenceOf(wanted, found) ?? this.unseen(wanted, tries > 0);
      if (how === undefined) {
        if (object === undefined) this.brought.delete(keyOf(wanted));
        else this.brought.set(keyOf(wanted), wanted);
        return tries > 0;
      }
      if (tries >= MOST_TRIES)
        throw failed ?? new RefusedError('node', `${how}, although it was written ${tries} times`);
      try {
        await this.write(wanted, found, leftMs);
        if (object !== undefined) this.written.set(keyOf(wanted), certificatesOf(kind, object).join(' '));
        tries += 1;
      } catch (error) {
        if (error instanceof UnreachableError || error instanceof FailedCallError) {
          failed = error;
          tries += 1;
        } else {
          if (!(error instanceof MissingDependencyError)) throw error;
          await this.requireBrought();
          if (!this.hasPatience(leftMs)) throw error;
          await new Promise((resolve) => setTimeout(resolve, DEPENDENCY_AGAIN_MS));
        }
      }
    }
  }

  /** A function does not return all certificates. So each process writes them once, which changes nothing else. */
  private unseen({ kind, name, object }: Wanted, isWritten: boolean): string | undefined {
    const certificates = object === undefined ? [] : certificatesOf(kind, object);
    if (isWritten || certificates.every(isComparable)) return undefined;
    return this.written.get(`${kind.path}/${name}`) === certificates.join(' ')
      ? undefined
      : 'its certificates are not known';
  }

  private async write(wanted: Wanted, found: readonly WireObject[], leftMs: () => number): Promise<void> {
    const { kind, name, object } = wanted;
    // A PUT deletes all objects of the name and creates one, so it also ends doubles.
    const method: Method = object === undefined ? 'DELETE' : found.length === 0 ? 'POST' : 'PUT';
    const path = method === 'POST' ? `sdewan/${kind.path}` : pathOf(kind, name);
    const answer = await this.client
      .call(method, path, object, this.timeoutFor(leftMs))
      .finally(() => this.hasWritten(kind));
    if (answer.status < 300 || (method === 'DELETE' && answer.status === 404)) return;
    const refusal = await this.refusal(wanted, answer, method, this.timeoutFor(leftMs));
    // Two peers may exchange connections: as long as one of them waits, what it had must be free for the other.
    if (method === 'PUT' && !(refusal instanceof BlockedError)) await this.bringBack(wanted, found, leftMs);
    if (refusal !== undefined) throw refusal;
  }

  /** Why the function refused the write; undefined if reading again will tell. */
  private async refusal(
    wanted: Wanted,
    answer: FunctionAnswer,
    method: Method,
    timeoutMs: number,
  ): Promise<Error | undefined> {
    const { kind, name } = wanted;
    const { status, message } = answer;
    const answered = `the network function answered ${status}${message === '' ? '' : ` (${message})`}`;
    if (method === 'DELETE')
      return status === 400 && /is used/.test(message)
        ? new BlockedError(`${answered}: something still refers to it`)
        : new RefusedError('node', answered);
    if (status === 409) {
      // Somebody was faster, or a call that had no answer has done it.
      if (method === 'POST' && (await this.readNow(kind, name, timeoutMs)).length > 0) return undefined;
      return new BlockedError(`${answered}: its name, or that of one of its connections, is taken by another section`);
    }
    if (status === 428 || (status === 400 && isAboutDependency(kind, message)))
      return new MissingDependencyError(`${answered}: it refers to something that this replica does not have`);
    return new RefusedError(status === 400 ? 'content' : 'node', answered);
  }

  /** A PUT that fails may have deleted the object. */
  private async bringBack({ kind, name }: Wanted, found: readonly WireObject[], leftMs: () => number): Promise<void> {
    const [before] = found;
    if (before === undefined || hasCertificates(kind, before)) return;
    if ((await this.readNow(kind, name, this.timeoutFor(leftMs))).length > 0) return;
    await this.client.call('POST', `sdewan/${kind.path}`, knownOf(kind, name, before), this.timeoutFor(leftMs));
    this.lists.delete(kind.path);
  }

  private async fetchList(kind: FunctionKind, timeoutMs?: number): Promise<readonly WireObject[]> {
    const path = `sdewan/${kind.path}`;
    return this.get(path, timeoutMs, (answer) => {
      const { body } = succeeded(answer, 'GET', path);
      const list = isObject(body) ? body[kind.collection] : undefined;
      if (Array.isArray(list)) return list.filter(isObject);
      // An empty table of Lua may become an empty object.
      if (isObject(list) && Object.keys(list).length === 0) return [];
      throw new RefusedError('node', `GET ${path} is answered without a list of ${kind.collection}`);
    });
  }

  /**
   * Reads once more after a bad answer. A second one says nothing about any change: like no answer at all, it does not
   * tell what the replica has.
   */
  private async get<T>(
    path: string,
    timeoutMs: number = this.client.callTimeoutMs,
    understood: (answer: FunctionAnswer) => T,
  ): Promise<T> {
    const endMs = performance.now() + timeoutMs;
    for (let isAgain = false; ; isAgain = true) {
      try {
        const leftMs = Math.max(1, endMs - performance.now());
        return understood(await this.client.call('GET', path, undefined, leftMs));
      } catch (error) {
        if (!(error instanceof RefusedError) || error instanceof UnreachableError) throw error;
        if (isAgain) throw new BadAnswerError(error.message);
      }
    }
  }

  /** An object of a kind without doubles is read alone after a write, which brings the list up to date. */
  private hasWritten({ post, path }: FunctionKind): void {
    if (post === 'doubles') this.lists.delete(path);
  }

  /** Whether to wait for something that the replica lacks. Once per change, not once per object. */
  private hasPatience(leftMs: () => number): boolean {
    const nowMs = performance.now();
    const ms = Math.min(this.options.dependencyMs ?? DEPENDENCY_MS, leftMs() / 2);
    if (nowMs > this.patientUntilMs + PATIENT_AGAIN_MS) this.patientUntilMs = nowMs + ms;
    return nowMs < this.patientUntilMs;
  }

  private timeoutFor(leftMs: () => number): number {
    const left = leftMs();
    if (left <= 0) throw new UnreachableError('the time is over');
    return Math.min(this.client.callTimeoutMs, left);
  }
}

export const keyOf = ({ kind, name }: Pick<Wanted, 'kind' | 'name'>): string => `${kind.path}/${name}`;

/** What the replica lost is not known, as if it did not answer. */
const lost = ({ kind, name }: Wanted): Error =>
  new UnreachableError(`the replica has lost its ${kind.kind}/${name} in the middle of the work: it has restarted`);

const pathOf = (kind: FunctionKind, name: string): string => `sdewan/${kind.path}/${encodeURIComponent(name)}`;

function differenceOf({ kind, object }: Wanted, found: readonly WireObject[]): string | undefined {
  const [first] = found;
  if (object === undefined) return first === undefined ? undefined : 'it is still there';
  if (first === undefined) return 'it is missing';
  if (found.length > 1) return `there are ${found.length} of it`;
  return difference(kind, object, first);
}

function succeeded(answer: FunctionAnswer, method: Method, path: string): FunctionAnswer {
  if (answer.status === 200) return answer;
  throw new RefusedError('node', `${method} ${path} is answered ${answer.status} (${answer.message})`);
}

/** Fields that name something else. The function names the outer one if they are in a list. */
function isAboutDependency(kind: FunctionKind, message: string): boolean {
  if (/is not defin/.test(message)) return true;
  return Object.entries(kind.fields).some(
    ([key, field]) =>
      (field.refersTo !== undefined || field.needs !== undefined) && message.includes(`Field[${field.wire ?? key}]`),
  );
}

/** The spec with the interfaces of this replica in place of networks. */
function translated(
  kind: FunctionKind,
  spec: WireObject,
  interfaceOf: (network: string) => string | undefined,
): WireObject {
  const own = (network: unknown): string => {
    const found = interfaceOf(String(network));
    if (found === undefined)
      throw new RefusedError('node', `this replica has no interface for the network ${String(network)}`);
    return found;
  };
  if (kind.kind === 'FirewallZone') return { ...spec, network: (spec['network'] as readonly unknown[]).map(own) };
  if (kind.kind !== 'Mwan3Policy') return spec;
  const members = (spec['members'] as readonly WireObject[]).map((member) => ({
    ...member,
    network: own(member['network']),
  }));
  return { ...spec, members };
}

const isObject = (value: unknown): value is WireObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
