import {
  EMPTY_CONFIG,
  type Action,
  type Config,
  type ConfigEntry,
  type LeaseView,
  type StatusView,
} from '#libs/contracts';
import {
  newJournal,
  UNREACHABLE,
  type Difference,
  type Item,
  type Journal,
  type Kinds,
  type Original,
  type Originals,
  type Outcome,
  type OwnReport,
  type ProbeResult,
  type Refusal,
  type Step,
} from '../core/index.js';

/** Kinds of a node that lives in memory: files, each a path and a content. */
export const MEMORY_KINDS: Kinds = {
  order: ['File', 'Exec'],
  entries: (config) => config.fragments,
  forgotten: [],
  snapshots: [],
  mayCutOff: () => false,
  controlPlane: [],
  controlPlaneBefore: [],
  resources: (entry) => (entry.kind === 'File' ? [`path:${String(entry.spec['path'])}`] : []),
};
export const EMPTY = '0'.repeat(64);
export const NO_SPACE: Refusal = { fault: 'node', reason: 'journal.json: no space left on device' };

/** Files by path, each with its content: what the backend for File works on. */
export class MemoryFiles extends Map<string, string> {
  originals(entries: readonly ConfigEntry[], known: Originals): Originals {
    const keys = entries.flatMap((entry) => MEMORY_KINDS.resources(entry)).filter((key) => known[key] === undefined);
    return Object.fromEntries(
      keys.map((key) => [key, { kind: 'File', was: this.get(key.slice(5)) ?? null, made: [] }]),
    );
  }

  apply(entry: ConfigEntry): undefined {
    this.set(String(entry.spec['path']), String(entry.spec['content']));
  }

  restore(key: string, original: Original): undefined {
    if (original.was === null) this.delete(key.slice(5));
    else this.set(key.slice(5), String(original.was));
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

  private matches(item: Item): boolean {
    if (item.do === 'restore') return (this.get(item.key.slice(5)) ?? null) === item.original.was;
    const { kind, spec } = item.entry;
    return kind !== 'File' || this.get(String(spec['path'])) === spec['content'];
  }
}

/** What a bus has for one node. */
export interface MemoryBus {
  up: boolean;
  lease: LeaseView | undefined;
  status: StatusView | undefined;
  readonly configs: Map<string, Config>;
  readonly reports: OwnReport[];
}

/** A machine in memory: what is here survives a kill of its applier. `probes` and `refuses` are the world around. */
export class MemoryNode {
  journal: string;
  readonly configs = new Map<string, Config>();
  readonly contents = new Map<string, string>();
  readonly files = new MemoryFiles();
  /** What the services of the machine were last started with. */
  running: ReadonlyMap<string, string> = new Map();
  rebootAsked = false;
  probes: (name: string, files: ReadonlyMap<string, string>) => boolean | 'late' = () => true;
  guard: (lease: string, atMs: number) => Refusal | undefined = () => undefined;
  refuses: (entry: ConfigEntry) => Refusal | undefined = () => undefined;
  /** The disk of the state folder is full: neither journals nor configs can be written. */
  isFull = false;
  refusesAction: (action: Action) => Refusal | undefined = () => undefined;
  /** All that comes up with the machine is up. */
  settles: () => void = () => undefined;
  /** What differs was forgotten. */
  forgets = false;
  unitFails: () => boolean = () => false;

  constructor(
    readonly node: string,
    readonly bus: MemoryBus,
  ) {
    this.journal = JSON.stringify(newJournal(node, EMPTY));
  }

  readJournal(): Journal {
    return JSON.parse(this.journal) as Journal;
  }

  /** Carries out a step as the shell does, at once. */
  perform(step: Step): Outcome | typeof UNREACHABLE {
    switch (step.do) {
      case 'write-journal':
        if (this.isFull) return NO_SPACE;
        this.journal = JSON.stringify(step.journal);
        return undefined;
      case 'load-config':
        return step.hash === EMPTY ? EMPTY_CONFIG : this.configs.get(step.hash);
      case 'tidy':
        for (const hash of this.configs.keys()) if (!step.configs.includes(hash)) this.configs.delete(hash);
        return undefined;
      case 'check':
        return step.config.fragments.flatMap((entry) => this.refuses(entry) ?? []);
      case 'read-before':
        return this.files.originals(step.entries, step.known);
      case 'snapshot':
        return this.files.originals(step.entries, {});
      case 'run-probes':
        return step.probes.map(({ name }) => this.probed(name));
      case 'apply':
        return this.refuses(step.entry) ?? this.files.apply(step.entry);
      case 'restore':
        return this.files.restore(step.key, step.original);
      case 'act':
        return this.refusesAction(step.action) ?? this.act(step.action);
      case 'read-unit':
        return this.unitFails() ? { fault: 'node', reason: `${step.unit} has failed` } : undefined;
      case 'wait':
        return undefined;
      case 'settle':
        return this.settles();
      case 'guard':
        return this.guard(step.lease, step.atMs);
      case 'compare':
        return this.files
          .differences(step.items)
          .map((difference) => (this.forgets ? { ...difference, forgotten: true } : difference));
      default:
        return this.bus.up ? this.ask(step) : UNREACHABLE;
    }
  }

  /** All that ran is restarted with what stands there. */
  boot(): void {
    this.rebootAsked = false;
    this.running = new Map(this.files);
  }

  private probed(name: string): ProbeResult {
    const answer = this.probes(name, this.files);
    if (answer === true) return { name, passed: true, reason: '' };
    return { name, passed: false, reason: 'it says no', ...(answer === 'late' ? { isCutShort: true } : {}) };
  }

  private act(action: Action): undefined {
    if (action.kind === 'reboot') this.rebootAsked = true;
    if (action.kind === 'reload' || action.kind === 'restart') this.running = new Map(this.files);
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

export const newBus = (): MemoryBus => ({
  up: true,
  lease: undefined,
  status: undefined,
  configs: new Map(),
  reports: [],
});

/** Takes a report as the scheduler does: the latest of the highest incarnation is shown. */
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
      skipped: '',
      change: '',
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
