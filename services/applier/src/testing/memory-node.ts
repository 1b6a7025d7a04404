import {
  EMPTY_CONFIG,
  type Action,
  type Config,
  type ConfigEntry,
  type LeaseView,
  type StatusView,
} from '#libs/contracts';
import { objectRefOf } from '#libs/manifests/lean';
import {
  entriesWithObject,
  newJournal,
  UNNEEDED,
  UNREACHABLE,
  type Difference,
  type Item,
  type Journal,
  type Kinds,
  type Original,
  type Originals,
  type Outcome,
  type Outcomes,
  type OwnReport,
  type ProbeResult,
  type Refusal,
  type Step,
  type StepOf,
} from '../core/index.js';

/** Kinds of a node in memory: files, each with a path and a content. */
export const MEMORY_KINDS: Kinds = {
  order: ['File', 'Exec'],
  entries: (config) => config.fragments,
  forgotten: [],
  snapshots: [],
  independent: ['File'],
  mayCutOff: () => false,
  controlPlane: [],
  controlPlaneBefore: [],
  resources: (entry) => (entry.kind === 'File' ? [`path:${String(entry.spec['path'])}`] : []),
};
export const EMPTY = '0'.repeat(64);
export const NO_ANSWER: Refusal = { fault: 'unreachable', reason: 'no answer in 5 s' };
export const NO_SPACE: Refusal = { fault: 'node', reason: 'journal.json: no space left on device' };

/**
 * Files by path, each with its content, and the contents that the state folder keeps by their digest. The backend for
 * File works on them.
 */
export class MemoryFiles extends Map<string, string> {
  /** Contents of originals and of objects. */
  readonly contents = new Map<string, string>();

  constructor(
    files: Iterable<readonly [string, string]> = [],
    /** Every content is its own digest, and the content of an object is its sha256. */
    readonly digestOf: (content: string) => string = (content) => content,
  ) {
    super(files);
  }

  originals(entries: readonly ConfigEntry[], known: Originals): Originals {
    const keys = entries.flatMap((entry) => MEMORY_KINDS.resources(entry)).filter((key) => known[key] === undefined);
    return Object.fromEntries(keys.map((key) => [key, this.original(key)]));
  }

  /** As it is before a lease. The config in force has the content, unless that is an object or has drifted. */
  snapshot(entries: readonly ConfigEntry[]): Originals {
    return Object.fromEntries(
      entries.flatMap((entry) => {
        const isInConfig = objectRefOf(entry) === undefined && this.matches({ do: 'apply', entry });
        return MEMORY_KINDS.resources(entry).map((key) => [key, isInConfig ? IN_CONFIG : this.original(key)]);
      }),
    );
  }

  apply(entry: ConfigEntry): undefined {
    const content = contentOf(entry);
    this.set(String(entry.spec['path']), this.contents.get(content) ?? content);
  }

  restore(key: string, { was }: Original): Refusal | undefined {
    const path = key.slice(5);
    if (was === null) this.delete(path);
    if (typeof was !== 'string') return undefined;
    const content = this.contents.get(was);
    if (content === undefined) return { fault: 'node', reason: `the content of ${path} is lost` };
    this.set(path, content);
    return undefined;
  }

  /** Forgets the contents that the journal does not refer to, unless the next lease may need them. */
  tidy({ originals, work, lastDealt }: Journal): void {
    if (lastDealt?.verdict === 'failed' || lastDealt?.verdict === 'refused') return;
    const originalsInUse = new Set(
      [...Object.values(originals), ...Object.values(work?.before ?? {})].map(({ was }) => was),
    );
    for (const digest of this.contents.keys()) if (!originalsInUse.has(digest)) this.contents.delete(digest);
  }

  differences(items: readonly Item[]): readonly Difference[] {
    return items
      .filter((item) => !this.matches(item))
      .map((item) => ({
        what: titleOf(item),
        how: 'differs',
        ...(item.do === 'apply' ? { entry: item.entry } : {}),
      }));
  }

  private original(key: string): Original {
    const content = this.get(key.slice(5));
    if (content === undefined) return { kind: 'File', was: null, made: [] };
    const digest = this.digestOf(content);
    this.contents.set(digest, content);
    return { kind: 'File', was: digest, made: [] };
  }

  private matches(item: Item): boolean {
    if (item.do === 'apply')
      return item.entry.kind !== 'File' || this.holds(String(item.entry.spec['path']), contentOf(item.entry));
    const { was } = item.original;
    const path = item.key.slice(5);
    return was === null ? !this.has(path) : typeof was !== 'string' || this.holds(path, was);
  }

  /** Whether there is a file with this content. */
  holds(path: string, digest: string): boolean {
    const content = this.get(path);
    return content !== undefined && this.digestOf(content) === digest;
  }
}

/** A file with the content that its entry has: there is nothing else to know of it. */
const IN_CONFIG: Original = { kind: 'File', was: true, made: [], entryFirst: true };

/** What an entry makes of its file. Of an object, the sha256 is enough. */
export const contentOf = (entry: ConfigEntry): string => objectRefOf(entry)?.sha256 ?? String(entry.spec['content']);

/** What a bus has for one node. */
export interface MemoryBus {
  up: boolean;
  lease: LeaseView | undefined;
  status: StatusView | undefined;
  readonly configs: Map<string, Config>;
  /** The objects in the object store, by sha256: what they contain. */
  readonly objects: Map<string, 'right' | 'changed'>;
  readonly reports: OwnReport[];
}

/** A machine in memory, which survives a kill of its applier. `probes` and `refuses` simulate its surroundings. */
export class MemoryNode {
  journal: string;
  readonly configs = new Map<string, Config>();
  /** Objects that were downloaded, by sha256. */
  readonly objects = new Set<string>();
  readonly files = new MemoryFiles();
  /** The content with which the services of the machine were last started. */
  running: ReadonlyMap<string, string> = new Map();
  rebootAsked = false;
  probes: (name: string, files: ReadonlyMap<string, string>) => boolean | 'late' = () => true;
  /** Why a probe fails. */
  probeReason = 'it says no';
  guard: (lease: string, atMs: number) => Refusal | undefined = () => undefined;
  refuses: (entry: ConfigEntry) => Refusal | undefined = () => undefined;
  /** The disk of the state folder is full: neither journals nor configs can be written. */
  isFull = false;
  readonly ran: string[] = [];
  needs: (command: ConfigEntry) => boolean = () => true;
  undoes: (command: ConfigEntry) => Refusal | undefined = () => undefined;
  refusesToApply: (entry: ConfigEntry) => Outcomes['apply'] = () => undefined;
  refusesAction: (action: Action) => Refusal | undefined = () => undefined;
  /** Everything that starts with the machine has started. */
  settles: () => void = () => undefined;
  /** The differences exist because the content was lost. */
  forgets = false;
  unitFails: () => boolean = () => false;
  /** What is not ready after it was applied. */
  notReady: (items: readonly Item[]) => Outcomes['await-ready'] = () => [];
  /** What another program has not done yet. */
  leftToOthers: (items: readonly Item[]) => Outcomes['await-others'] = () => ({ what: [], isOver: false });
  /** A target that does not answer can neither be read nor changed. Its applier and its journal are elsewhere. */
  isGone = false;

  constructor(
    readonly node: string,
    readonly bus: MemoryBus,
  ) {
    this.journal = JSON.stringify(newJournal(node, EMPTY));
  }

  readJournal(): Journal {
    return JSON.parse(this.journal) as Journal;
  }

  /** Carries out a step like the shell, but at once. */
  perform(step: Step): Outcome | typeof UNREACHABLE {
    return (this.isGone ? unanswered(step) : undefined) ?? this.answer(step);
  }

  private answer(step: Step): Outcome | typeof UNREACHABLE {
    switch (step.do) {
      case 'write-journal':
        if (this.isFull) return NO_SPACE;
        this.journal = JSON.stringify(step.journal);
        return undefined;
      case 'load-config':
        return step.hash === EMPTY ? EMPTY_CONFIG : this.configs.get(step.hash);
      case 'tidy':
        for (const hash of this.configs.keys()) if (!step.configs.includes(hash)) this.configs.delete(hash);
        this.files.tidy(step.journal);
        this.objects.clear();
        return undefined;
      case 'fetch-object':
        return this.fetchObject(step.entry);
      case 'prefetch':
        return this.prefetch(step.hash);
      case 'check':
        return {
          refusals: step.entries.flatMap((entry) => {
            const refusal = this.refuses(entry);
            return refusal === undefined ? [] : [{ ...refusal, entry }];
          }),
          shared: {},
        };
      case 'read-before':
        return this.files.originals(step.entries, step.originals);
      case 'snapshot':
        return this.files.snapshot(step.entries);
      case 'run-probes':
        return this.resultsOf(step.probes);
      case 'start-probes':
        return undefined;
      case 'undo':
        return this.undoes(step.entry);
      case 'check-command':
        return this.refuses(step.entry) ?? (this.needs(step.entry) ? undefined : UNNEEDED);
      case 'apply':
        return (
          this.refuses(step.entry) ??
          this.refusesToApply(step.entry) ??
          this.withoutObject(step.entry) ??
          this.applied(step.entry)
        );
      case 'restore':
        return this.files.restore(step.key, step.original);
      case 'act':
        return this.refusesAction(step.action) ?? this.act(step.action);
      case 'read-unit':
        return this.unitFails() ? { fault: 'node', reason: `${step.unit} has failed` } : undefined;
      case 'wait':
        return undefined;
      case 'reset-failed':
        return undefined;
      case 'settle':
        return this.settles();
      case 'guard':
        return this.guard(step.lease, step.atMs);
      case 'await-ready':
        return this.notReady(step.items);
      case 'await-others':
        return this.leftToOthers(step.items);
      case 'compare':
        return this.differences(step.items);
      case 'start-drift-check':
        return undefined;
      default:
        return this.bus.up ? this.ask(step) : UNREACHABLE;
    }
  }

  /** The result of a drift check. */
  drift({ items }: Pick<StepOf<'start-drift-check'>, 'items'>): readonly Difference[] {
    if (this.isGone) return notRead(items);
    return this.differences(items).map((difference) => {
      const refused = difference.entry === undefined ? undefined : this.refuses(difference.entry)?.reason;
      return refused === undefined ? difference : { ...difference, refused };
    });
  }

  private differences(items: readonly Item[]): readonly Difference[] {
    return this.files
      .differences(items)
      .map((difference) => (this.forgets ? { ...difference, forgotten: true } : difference));
  }

  /** All running services are restarted with the current content. */
  boot(): void {
    this.rebootAsked = false;
    this.running = new Map(this.files);
  }

  private withoutObject(entry: ConfigEntry): Refusal | undefined {
    const sha256 = objectRefOf(entry)?.sha256;
    const isHere =
      sha256 === undefined || this.objects.has(sha256) || this.files.get(String(entry.spec['path'])) === sha256;
    return isHere ? undefined : { fault: 'node', reason: 'the object is not on this machine' };
  }

  resultsOf(probes: readonly ConfigEntry[]): readonly ProbeResult[] {
    return probes.map(({ name }) =>
      this.isGone ? { name, passed: false, reason: NO_ANSWER.reason, unreachable: true } : this.probed(name),
    );
  }

  /** Files are written; commands run, and are kept by name. */
  private applied(entry: ConfigEntry): undefined {
    if (entry.kind === 'File') return this.files.apply(entry);
    this.ran.push(entry.name);
    return undefined;
  }

  private probed(name: string): ProbeResult {
    const answer = this.probes(name, this.files);
    if (answer === true) return { name, passed: true, reason: '' };
    return { name, passed: false, reason: this.probeReason, ...(answer === 'late' ? { isCutShort: true } : {}) };
  }

  private act(action: Action): undefined {
    if (action.kind === 'reboot') this.rebootAsked = true;
    if (action.kind === 'reload' || action.kind === 'restart') this.running = new Map(this.files);
  }

  private fetchObject(entry: ConfigEntry): Outcomes['fetch-object'] | typeof UNREACHABLE {
    const sha256 = contentOf(entry);
    if (this.files.get(String(entry.spec['path'])) === sha256 || this.objects.has(sha256)) return undefined;
    if (!this.bus.up) return UNREACHABLE;
    const found = this.bus.objects.get(sha256);
    if (found === undefined) return { fault: 'node', reason: 'no such object', mayCome: true };
    if (found === 'changed') return { fault: 'node', reason: 'the object was changed' };
    return void this.objects.add(sha256);
  }

  private prefetch(hash: string): Outcomes['prefetch'] | typeof UNREACHABLE {
    const config = this.configs.get(hash) ?? this.bus.configs.get(hash);
    if (!this.bus.up) return UNREACHABLE;
    if (config === undefined || this.isFull) return { isOver: false };
    this.configs.set(hash, config);
    for (const entry of entriesWithObject(config)) {
      const trouble = this.fetchObject(entry);
      if (trouble === UNREACHABLE) return UNREACHABLE;
      if (trouble !== undefined) return { isOver: trouble.mayCome !== true };
    }
    return { isOver: true };
  }

  private ask(step: Extract<Step, { do: 'fetch-config' | 'read-status' | 'read-lease' | 'report' }>): Outcome {
    if (step.do === 'read-status') return this.bus.status;
    if (step.do === 'read-lease') return this.bus.lease;
    if (step.do === 'report') return void this.bus.reports.push(step.report);
    const config = this.bus.configs.get(step.hash);
    if (config === undefined) return { fault: 'node', reason: 'no such config' };
    if (this.isFull && step.mustKeep) return NO_SPACE;
    if (!this.isFull) this.configs.set(step.hash, config);
    return config;
  }
}

/** The outcome of a step that needs the target, if that does not answer; undefined for any other step. */
export function unanswered(step: Step): Outcome | undefined {
  switch (step.do) {
    case 'check':
      return { refusals: step.entries.map((entry) => ({ ...NO_ANSWER, entry })), shared: {} };
    case 'compare':
      return notRead(step.items);
    case 'read-before':
    case 'snapshot':
    case 'check-command':
    case 'apply':
    case 'undo':
    case 'restore':
    case 'act':
      return NO_ANSWER;
    default:
      return undefined;
  }
}

/** What a comparison finds on a target that does not answer. */
export const notRead = (items: readonly Item[]): readonly Difference[] =>
  items.map((item) => ({
    what: titleOf(item),
    how: `cannot be read: ${NO_ANSWER.reason}`,
    unreadable: true,
    unreachable: true,
    ...(item.do === 'apply' ? { entry: item.entry } : {}),
  }));

export const newBus = (): MemoryBus => ({
  up: true,
  lease: undefined,
  status: undefined,
  configs: new Map(),
  objects: new Map(),
  reports: [],
});

/** Processes a report like the scheduler: the status shows the latest of the highest incarnation. */
export function takeReports(bus: MemoryBus): void {
  for (const report of bus.reports) {
    const known = bus.status;
    if (
      known !== undefined &&
      (report.incarnation < known.incarnation || (report.incarnation === known.incarnation && report.seq <= known.seq))
    )
      continue;
    bus.status = {
      ledger: (known?.ledger ?? 0) + 1,
      node: report.node,
      incarnation: report.incarnation,
      nonce: report.nonce,
      seq: report.seq,
      hash: report.hash,
      lease: report.lease,
      verdict: report.verdict,
      reason: report.reason,
      restored: report.restored,
      desired: '',
      pool: 'default',
      deferred: '',
      incompatible: false,
      incompatibleReasons: [],
      drifted: report.kind === 'drifted' ? report.differences : [],
      driftedSince: '',
      leftovers: report.leftovers,
      failingProbes:
        report.kind === 'applied' || report.kind === 'probed' ? report.failingProbes : (known?.failingProbes ?? []),
      notUndone: report.notUndone,
      skipped: '',
      change: '',
      leaseLedger: 0,
    };
    if (bus.lease?.lease === report.lease && bus.lease.phase === 'applying')
      bus.lease = {
        ...bus.lease,
        ledger: bus.lease.ledger + 1,
        phase: 'released',
        because: report.verdict === 'refused' ? 'stale' : report.verdict,
      };
  }
}

export function lease(part: Partial<LeaseView>): LeaseView {
  return {
    ledger: 1,
    node: 'n',
    pool: 'default',
    lease: 'l1',
    change: 'c1',
    kind: 'forward',
    phase: 'applying',
    hash: '',
    from: EMPTY,
    actions: [],
    applyMs: 60_000,
    drainMs: 0,
    because: '',
    reason: '',
    grantedAt: '',
    settledAt: '',
    ...part,
  };
}

const titleOf = (item: Item): string =>
  item.do === 'restore' ? item.key.slice(5) : String(item.entry.spec['path'] ?? item.entry.name);
