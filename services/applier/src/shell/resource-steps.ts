import { withoutPath, type ConfigEntry } from '#libs/contracts';
import { wordsFor } from '#libs/manifests/lean';
import {
  UNNEEDED,
  type CheckRefusal,
  type Difference,
  type EntryContext,
  type Item,
  type Left,
  type LeftToOthers,
  type Original,
  type Originals,
  type Outcomes,
  type Refusal,
  type StepOf,
} from '../core/index.js';
import {
  BadAnswerError,
  refusalOf,
  NeverRanError,
  RefusedError,
  UnreachableError,
  type Backend,
  type CheckContext,
  type Clock,
  type SaveContext,
  type Storage,
} from './ports.js';
import type { FileSystems } from './backends/paths/file-systems.js';
import { ResourceFolders } from './resource-folders.js';

/** What is checked of entries besides what their backends check. */
export interface EntryChecks {
  /** Throws Refused if the probe cannot run here. */
  checkProbe(entry: ConfigEntry): void;
  /** Only for a machine: its file systems, and why the place of a path is no longer the one that is known. */
  readonly fileSystems?: FileSystems;
  movedPath?(path: unknown): Promise<string | undefined>;
}

/** Carries out the steps that read and change the resources of a node, with the backend of each kind. */
export class ResourceSteps {
  private readonly folders: ResourceFolders;
  /** During a rollback, and until it has succeeded. */
  isRollingBack = false;

  constructor(
    private readonly storage: Pick<Storage, 'rollBackWith'>,
    private readonly backends: ReadonlyMap<string, Backend>,
    private readonly checks: EntryChecks,
    private readonly clock: Clock,
  ) {
    this.folders = new ResourceFolders(checks.fileSystems, backends);
  }

  /** Whether the node differs from an entry. */
  async isNeeded(entry: ConfigEntry): Promise<boolean> {
    const backend = this.backendOf(entry.kind);
    await this.folders.requireAnswer(this.folders.of(entry));
    return (await backend.differs(entry)) !== undefined;
  }

  /** Why the entries cannot be applied here, and which resources cannot be restored. */
  async check({ entries, originals, untilMs, ...context }: StepOf<'check'>): Promise<Outcomes['check']> {
    const checked = checkContext({ ...context, originals }, this.leftUntil(untilMs));
    const refusals: CheckRefusal[] = [...(await this.refusals(entries, checked, wordsFor))];
    const shared: Record<string, string> = {};
    const managed = new Set(entries.flatMap((entry) => this.folders.of(entry).keys));
    for (const [key, original] of Object.entries(originals)) {
      if (managed.has(key)) continue;
      const refusal = await refused(nameOfKey(key), async () => {
        await this.folders.requireAnswer({ kind: original.kind, keys: [key] });
        const why =
          original.isOwn === true
            ? `what was at ${nameOfKey(key)} before Sluice is not known, because the state folder was lost or is an older copy`
            : await this.backendOf(original.kind).whyShared?.(key, original, checked);
        if (why !== undefined) shared[key] = why;
      });
      if (refusal !== undefined) refusals.push(nodeFault(refusal));
    }
    return { refusals, shared };
  }

  /**
   * Why this node cannot or may not apply each of these entries. This is the one rule: for a lease before it starts,
   * for drift that is found, and for a plan that wants to know in advance.
   */
  async refusals(
    entries: readonly ConfigEntry[],
    checked: CheckContext,
    nameOf: (entry: ConfigEntry) => string = () => '',
  ): Promise<readonly (Refusal & { readonly entry: ConfigEntry })[]> {
    await this.folders.tryAll(entries.map((entry) => this.folders.of(entry)));
    const refusals: (Refusal & { readonly entry: ConfigEntry })[] = [];
    for (const entry of entries) {
      if (checked.leftMs() <= 0) break;
      const refusal = await refused(nameOf(entry), async () => {
        if (entry.kind === 'Probe') return this.checks.checkProbe(entry);
        await this.folders.requireAnswer(this.folders.of(entry));
        const moved = await this.checks.movedPath?.(entry.spec['path']);
        if (moved !== undefined) throw new RefusedError('node', moved);
        return this.backendOf(entry.kind).check(entry, checked);
      });
      if (refusal !== undefined) refusals.push({ ...refusal, entry });
    }
    return refusals;
  }

  async readBefore({ entries, originals: known, had, untilMs }: StepOf<'read-before'>): Promise<Originals | Refusal> {
    const originals: Record<string, Original> = {};
    const own = entries.map((entry) => this.folders.of(entry));
    await this.folders.tryAll(own.filter(({ keys }) => keys.some((key) => known[key] === undefined)));
    const managed = new Set([...Object.keys(known), ...own.flatMap(({ keys }) => keys)]);
    const saving: SaveContext = { originals: known, managed, leftMs: this.leftUntil(untilMs) };
    for (const entry of entries) {
      const refusal = await refused(withPath(entry), async () => {
        const backend = this.backendOf(entry.kind);
        const unknown = backend.resources(entry).filter((key) => known[key] === undefined);
        if (unknown.length > 0) await this.folders.requireAnswer(this.folders.of(entry));
        for (const key of unknown) {
          const original = await backend.original(key, entry, saving);
          originals[key] = (await this.isOwn(key, backend, had)) ? { ...original, isOwn: true } : original;
        }
      });
      if (refusal !== undefined) return refusal;
    }
    return originals;
  }

  /** Whether what is there now is what Sluice has put there, according to what the node had. */
  private async isOwn(key: string, backend: Backend, had: readonly ConfigEntry[]): Promise<boolean> {
    const entry = had.find((one) => one.kind === backend.kind && backend.resources(one).includes(key));
    return entry !== undefined && (await backend.differs(entry)) === undefined;
  }

  async snapshot({ entries, untilMs }: StepOf<'snapshot'>): Promise<Originals | Refusal> {
    const originals: Record<string, Original> = {};
    const leftMs = this.leftUntil(untilMs);
    for (const entry of entries) {
      const refusal = await refused(withPath(entry), async () => {
        await this.folders.requireAnswer(this.folders.of(entry));
        Object.assign(originals, await this.backendOf(entry.kind).snapshot?.(entry, leftMs));
      });
      if (refusal !== undefined) return nodeFault(refusal);
    }
    return originals;
  }

  async checkCommand({ entry, untilMs }: StepOf<'check-command'>): Promise<Outcomes['check-command']> {
    let isUnneeded = false;
    const leftMs = this.leftUntil(untilMs);
    const refusal = await refused(wordsFor(entry), async () => {
      isUnneeded = (await this.backendOf(entry.kind).isUnneeded?.(entry, leftMs)) === true;
    });
    return isUnneeded ? UNNEEDED : refusal;
  }

  async apply({ entry, untilMs, isRollback }: StepOf<'apply'>): Promise<Outcomes['apply']> {
    const leftMs = this.leftUntil(untilMs);
    const work = async (): Promise<void> => {
      const backend = this.backendOf(entry.kind);
      if (this.isRollingBack) await this.folders.requireAnswer(this.folders.of(entry));
      await backend.apply(entry, leftMs, isRollback);
    };
    let neverRan = false;
    const noting = (): Promise<void> =>
      work().catch((error: unknown) => {
        neverRan = error instanceof NeverRanError;
        throw error;
      });
    const where = this.backends.get(entry.kind)?.isInternal === true ? '' : withPath(entry);
    const refusal = await refused(where, () => (isRollback === true ? this.storage.rollBackWith(noting) : noting()));
    return refusal !== undefined && neverRan ? { ...refusal, neverRan } : refusal;
  }

  undo({ entry, untilMs }: StepOf<'undo'>): Promise<Refusal | undefined> {
    return refused('', async () => this.backendOf(entry.kind).undo?.(entry, this.leftUntil(untilMs)));
  }

  /** If an original cannot be restored, that is never an error in the new config, which does not need it. */
  async restore({ key, original, isRollback }: StepOf<'restore'>): Promise<Refusal | undefined> {
    const work = async (): Promise<void> => {
      if (this.isRollingBack) await this.folders.requireAnswer({ kind: original.kind, keys: [key] });
      await this.backendOf(original.kind).restore(key, original);
    };
    const refusal = await refused(nameOfKey(key), () =>
      isRollback === true ? this.storage.rollBackWith(work) : work(),
    );
    return refusal === undefined ? undefined : nodeFault(refusal);
  }

  async awaitReady({ items, untilMs }: StepOf<'await-ready'>): Promise<Outcomes['await-ready']> {
    const byKind = Map.groupBy(
      items.flatMap((item) => (item.do === 'apply' ? [item.entry] : [])),
      ({ kind }) => kind,
    );
    const waiting: string[] = [];
    const refusal = await refused('', async () => {
      for (const [kind, entries] of byKind)
        waiting.push(...((await this.backendOf(kind).notReady?.(entries, this.leftUntil(untilMs))) ?? []));
    });
    return refusal ?? waiting;
  }

  /** If it cannot be read, that ends the wait, and fails nothing. */
  async awaitOthers({ items, untilMs }: Omit<StepOf<'await-others'>, 'do'>): Promise<Outcomes['await-others']> {
    const byKind = Map.groupBy(items, (item) => (item.do === 'apply' ? item.entry.kind : item.original.kind));
    const outcomes: Outcomes['await-others'][] = [];
    const refusal = await refused('', async () => {
      for (const [kind, some] of byKind) {
        const outcome = await this.backendOf(kind).leftToOthers?.(some, this.leftUntil(untilMs));
        if (outcome !== undefined) outcomes.push(outcome);
      }
    });
    if (refusal !== undefined) return { what: [refusal.reason], isOver: true };
    return together(outcomes);
  }

  async compare({
    items,
    untilMs = Infinity,
    sinceMs = this.clock(),
  }: StepOf<'compare'>): Promise<readonly Difference[]> {
    const kindOf = (item: Item): string => (item.do === 'apply' ? item.entry.kind : item.original.kind);
    for (const [backend, some] of Map.groupBy(items, (item) => this.backends.get(kindOf(item)))) {
      const entries = some.flatMap((item) => (item.do === 'apply' ? [item.entry] : []));
      await backend?.forgetBefore?.(entries, sinceMs);
    }
    return this.differences(items, this.leftUntil(untilMs));
  }

  /** The differences, and why this node would not correct them. What was not read when it is ended is left out. */
  async checkDrift(
    { items, checks }: Pick<StepOf<'start-drift-check'>, 'items' | 'checks'>,
    ending: AbortSignal,
  ): Promise<readonly Difference[]> {
    const leftMs = (): number => (ending.aborted ? 0 : Infinity);
    const differences = await this.differences(items, leftMs, ending);
    const read = differences.flatMap(({ entry, unreadable }) => (unreadable === true ? [] : (entry ?? [])));
    const refusals = await this.refusals(read, { ...checkContext(checks, leftMs), ending });
    const reasons = new Map(refusals.filter(isOfPlace).map(({ entry, reason }) => [entry, reason]));
    return differences.map((difference) => {
      const reason = difference.entry === undefined ? undefined : reasons.get(difference.entry);
      return reason === undefined ? difference : { ...difference, refused: withoutPath(difference.what, reason) };
    });
  }

  private async differences(
    items: readonly Item[],
    leftMs: () => number,
    ending?: AbortSignal,
  ): Promise<readonly Difference[]> {
    const differences: Difference[] = [];
    await this.folders.tryAll(items.map((item) => this.folders.ofItem(item)));
    for (const item of items) {
      if (ending?.aborted === true) break;
      const { what, how, ...rest } = await this.differenceOf(item, leftMs, ending);
      if (how !== undefined)
        differences.push({
          what,
          how,
          ...rest,
          ...(item.do === 'apply' ? { entry: item.entry } : {}),
          ...((await this.isForgotten(item)) ? { forgotten: true } : {}),
        });
    }
    return differences;
  }

  private async differenceOf(
    item: Item,
    leftMs: () => number,
    ending?: AbortSignal,
  ): Promise<Pick<Difference, 'what' | 'unreadable' | 'unreachable' | 'late'> & { readonly how: string | undefined }> {
    const what =
      item.do === 'apply'
        ? (this.backends.get(item.entry.kind)?.title(item.entry) ?? item.entry.kind)
        : nameOfKey(item.key);
    if (leftMs() <= 0) return { what, how: 'was not read in time', unreadable: true, late: true };
    // What looks different only because its time ended is not known to differ.
    const late = (): Pick<Difference, 'late'> => (leftMs() <= 0 ? { late: true } : {});
    try {
      await this.folders.requireAnswer(this.folders.ofItem(item));
      if (item.do === 'restore')
        return { what, how: await this.backendOf(item.original.kind).differsFromOriginal(item.key, item.original.was) };
      const how = await this.backendOf(item.entry.kind).differs(item.entry, leftMs, ending);
      return { what, how, ...late() };
    } catch (error) {
      // A drift check tells what can be read, and what cannot.
      const isTold = ending !== undefined && error instanceof BadAnswerError;
      const gone = error instanceof UnreachableError && !isTold ? { unreachable: true as const } : {};
      return {
        what,
        how: `cannot be read: ${withoutPath(what, (error as Error).message)}`,
        unreadable: true,
        ...gone,
        ...late(),
      };
    }
  }

  private async isForgotten(item: Item): Promise<boolean> {
    return (
      item.do === 'apply' &&
      (await this.backends
        .get(item.entry.kind)
        ?.isForgotten?.(item.entry)
        .catch(() => false)) === true
    );
  }

  private leftUntil(untilMs: number): () => number {
    return () => Math.max(0, untilMs - this.clock());
  }

  private backendOf(kind: string): Backend {
    const backend = this.backends.get(kind);
    if (backend === undefined) throw new RefusedError('node', `this node does not support kind ${kind}`);
    return backend;
  }
}

/** What several backends, or places, have left. Waiting is of use as long as any of them may be done. */
export function together(outcomes: readonly LeftToOthers[]): LeftToOthers {
  const open = outcomes.filter(({ what }) => what.length > 0);
  return {
    what: open.flatMap(({ what }) => what),
    isOver: open.length > 0 && open.every(({ isOver }) => isOver),
    left: Object.assign({}, ...outcomes.map(({ left }) => left)) as Left,
  };
}

/** The config is not to blame. */
const nodeFault = (refusal: Refusal): Refusal =>
  refusal.fault === 'content' ? { ...refusal, fault: 'node' } : refusal;

/** Not of a target that does not answer now. */
const isOfPlace = ({ fault }: Refusal): boolean => fault !== 'unreachable';

/** The context of a check, before any entry is checked. */
export const checkContext = (
  { config, from, originals }: EntryContext,
  leftMs: () => number = () => Infinity,
): CheckContext => ({
  config,
  from,
  taken: new Set(Object.keys(originals)),
  places: new Map(),
  leftMs,
});

/** What people call a resource: a path without its prefix. */
const nameOfKey = (key: string): string => key.slice(key.indexOf(':') + 1);

/** What people call an entry, and its path if it has one. */
const withPath = (entry: ConfigEntry): string => {
  const { path } = entry.spec;
  return `${wordsFor(entry)}${typeof path === 'string' ? ` (${path})` : ''}`;
};

/** The refusal with which the work ends, if it fails. */
export async function refused(where: string, work: () => Promise<void>): Promise<Refusal | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return refusalOf(error, where);
  }
}
