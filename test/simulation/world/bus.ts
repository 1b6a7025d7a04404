import { createHash } from 'node:crypto';
import {
  decodeFact,
  decodeReport,
  decodeView,
  encodeFact,
  encodeReport,
  EMPTY_CONFIG,
  EMPTY_HASH,
  encodeView,
  factSubject,
  configKey,
  desiredSubject,
  ID_HEADER,
  reportSubject,
  type Config,
  type Fact,
  type NewFact,
  type NodeReport,
  type Targets,
  type ViewBucket,
  type ViewValues,
} from '#libs/contracts';
import type {
  ConfigName,
  Digest,
  Entry,
  GatherPort,
  Handlers,
  SnapshotInfo,
  StoredBlob,
  ViewBody,
  ViewKey,
} from '#libs/engine';

export const sha256: Digest = (text) => createHash('sha256').update(text).digest('hex');

export interface StoredMessage {
  readonly sequence: number;
  readonly subject: string;
  readonly text: string;
}

/** A change as it is stored in its stream. */
export interface StoredChange extends StoredMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly storedMs: number;
}

/** A report as it is stored in its stream. Its text is decoded once for all readers. */
export interface StoredReport extends StoredMessage {
  readonly report: NodeReport;
  readonly storedMs: number;
}

/** The value of a view. Its text is decoded once for all readers. */
interface StoredView {
  readonly revision: number;
  readonly ledger: number;
  readonly text: string;
  decoded?: unknown;
}
const ABSENT: StoredView = { revision: 0, ledger: 0, text: '' };

/** The server: streams, buckets and blobs, as they are on its disk. It keeps what it acknowledged. */
export class SimBus {
  readonly changes: StoredChange[] = [];
  /** The position up to which the stream is trimmed. People remember the rest, but services cannot read it. */
  trimmedChanges = 0;
  readonly reports: StoredReport[] = [];
  /** By report: when the scheduler read it first. It reads none in the middle of a turn. */
  readonly readMs: number[] = [];
  readonly ledger: {
    readonly sequence: number;
    readonly fact: Fact;
    readonly targets?: Targets;
    readonly atMs: number;
  }[] = [];
  /** The current configs, and all that were ever stored, which only oracles may read. */
  readonly configs = new Map<string, string>();
  readonly everConfigs = new Map<string, string>();
  /** Configs with a time to live, and when they expire. */
  readonly endsMs = new Map<string, number>();
  readonly targets = new Map<string, Targets>();
  /** The object store, by sha256: whether an object still has the right content. */
  readonly objects = new Map<string, 'right' | 'changed'>();
  /** The journals of targets, by node: each with its revision. */
  readonly journals = new Map<string, { readonly text: string; readonly revision: number }>();
  /** Configs by their text, each parsed once. */
  private readonly parsed = new Map<string, Config>();
  private readonly values = new Map<string, StoredView>();
  /** What nodes read, as it was after each write: `at` counts the writes to all views. */
  private readonly history = new Map<string, { readonly at: number; readonly stored: StoredView | undefined }[]>();
  /** Snapshots of services, by slot. Without text while one is being written, or if the write was interrupted. */
  readonly snapshots = new Map<string, { readonly info: SnapshotInfo; readonly text: string | undefined }>();
  /** The first sequence of the ledger that readers see. Oracles remember all of it. */
  first = 1;
  /** The highest ledger sequence that any view shows. */
  highestView = 0;
  /** The number of writes to any view. */
  viewsWritten = 0;
  /** Called after each append, each write of a view, and each stored message. */
  onAppend: (fact: Fact, sequence: number) => void = () => undefined;
  onView: (key: ViewKey) => void = () => undefined;
  onInput: (stream: 'changes' | 'reports') => void = () => undefined;
  onReport: (node: string) => void = () => undefined;

  get last(): number {
    return this.ledger.length;
  }

  publishChange(source: string, text: string, storedMs: number, id?: string): number {
    const sequence = this.changes.length + 1;
    const headers: Record<string, string> = id === undefined ? {} : { [ID_HEADER]: id };
    this.changes.push({ sequence, subject: desiredSubject(source), text, headers, storedMs });
    this.onInput('changes');
    return sequence;
  }

  publishReport(report: NodeReport, storedMs: number): void {
    const [subject, text] = [reportSubject(report.kind, report.node), encodeReport(report)];
    const sequence = this.reports.length + 1;
    this.reports.push({ sequence, subject, text, report: decodeReport(subject, text), storedMs });
    this.onReport(report.node);
    this.onInput('reports');
  }

  /** The scheduler has read all reports. */
  noteRead(nowMs: number): void {
    while (this.readMs.length < this.reports.length) this.readMs.push(nowMs);
  }

  /** All or nothing, and only if the ledger ends where expected. */
  append(facts: readonly NewFact[], expected: number, nowMs: number): boolean {
    if (expected !== this.last) return false;
    const at = new Date(nowMs).toISOString();
    for (const fact of facts) {
      const decoded = decodeFact(factSubject(fact), encodeFact(fact, at));
      const targets =
        decoded.type === 'config.rendered'
          ? (Object.assign({}, ...decoded.targets.map((key) => this.targets.get(key))) as Targets)
          : undefined;
      this.ledger.push({
        sequence: this.last + 1,
        fact: decoded,
        atMs: nowMs,
        ...(targets === undefined ? {} : { targets }),
      });
      this.onAppend(decoded, this.last);
    }
    return true;
  }

  /** Compare-and-set. Returns the new revision; undefined if the value has another one than the write names. */
  putJournal(node: string, text: string, revision: number): number | undefined {
    if ((this.journals.get(node)?.revision ?? 0) !== revision) return undefined;
    this.journals.set(node, { text, revision: revision + 1 });
    return revision + 1;
  }

  snapshotsOf(service: string): readonly SnapshotInfo[] {
    return [...this.snapshots.values()].map(({ info }) => info).filter(({ name }) => name.startsWith(`${service}.v`));
  }

  entries(after: number, upTo: number, readMs: number, reads: ReadonlySet<string>): readonly Entry[] {
    const found: Entry[] = [];
    for (let i = after; i < upTo; i++) {
      const stored = this.ledger[i];
      if (stored !== undefined && reads.has(stored.fact.type)) found.push({ ...stored, readMs });
    }
    return found;
  }

  revision(key: ViewKey): StoredView {
    return this.values.get(`${key.bucket}/${key.key}`) ?? ABSENT;
  }

  /** Compare-and-set on the revision that was read. */
  putView(key: ViewKey, body: ViewBody | undefined, ledger: number, revision: number): boolean {
    const name = `${key.bucket}/${key.key}`;
    const known = this.revision(key);
    if (known.revision !== revision || known.ledger > ledger) return false;
    if (body === undefined) this.values.delete(name);
    else
      this.values.set(name, {
        revision: revision + 1,
        ledger,
        text: encodeView(key.bucket, { ...body, ledger } as never),
      });
    this.viewsWritten += 1;
    if (key.bucket === 'leases' || key.bucket === 'status') this.keepHistory(name);
    this.highestView = Math.max(this.highestView, ledger);
    this.onView(key);
    return true;
  }

  view<B extends ViewBucket>(bucket: B, key: string): ViewValues[B] | undefined {
    const stored = this.values.get(`${bucket}/${key}`);
    if (stored === undefined) return undefined;
    stored.decoded ??= decodeView(bucket, stored.text);
    return stored.decoded as ViewValues[B];
  }

  /** What a server has that got only so many writes. */
  viewAt<B extends ViewBucket>(bucket: B, key: string, at: number): ViewValues[B] | undefined {
    const stored = this.history.get(`${bucket}/${key}`)?.findLast((one) => one.at <= at)?.stored;
    if (stored === undefined) return undefined;
    stored.decoded ??= decodeView(bucket, stored.text);
    return stored.decoded as ViewValues[B];
  }

  private keepHistory(name: string): void {
    const all = this.history.get(name) ?? [];
    this.history.set(name, all);
    all.push({ at: this.viewsWritten, stored: this.values.get(name) });
  }

  views<B extends ViewBucket>(bucket: B): readonly ViewValues[B][] {
    return this.viewKeysOf(bucket).flatMap((key) => this.view(bucket, key) ?? []);
  }

  viewKeysOf(bucket: ViewBucket): readonly string[] {
    return [...this.values.keys()]
      .filter((name) => name.startsWith(`${bucket}/`))
      .map((name) => name.slice(bucket.length + 1));
  }

  /** The stored configs as a sweep sees them. */
  get storedConfigs(): readonly StoredBlob[] {
    return [...this.configs.keys()].map((key) => ({ key, storedMs: 0, marked: this.endsMs.has(key) }));
  }

  readonly blobPort: Handlers<Omit<GatherPort, 'input-end'>> = {
    'read-configs': ({ names }) => names.map(({ node, hash }) => this.parsedConfig(this.configText(node, hash))),
    'put-configs': ({ configs }) => {
      for (const { node, hash, text } of configs) {
        const key = configKey(node, hash);
        this.configs.set(key, text);
        this.everConfigs.set(key, text);
        this.endsMs.delete(key);
      }
    },
    'put-targets': ({ change, targets }) => {
      const key = `${change}.${sha256(JSON.stringify(targets))}`;
      this.targets.set(key, targets);
      return [key];
    },
    'missing-objects': ({ hashes }) => new Set(hashes.filter((hash) => !this.objects.has(hash))),
    pause: () => undefined,
  };

  configText(node: string, hash: string): string | undefined {
    return this.configs.get(configKey(node, hash));
  }

  /** For oracles: also returns configs that were deleted. */
  everConfig({ node, hash }: ConfigName): Config | undefined {
    return hash === EMPTY_HASH ? EMPTY_CONFIG : this.parsedConfig(this.everConfigs.get(configKey(node, hash)));
  }

  private parsedConfig(text: string | undefined): Config | undefined {
    if (text === undefined) return undefined;
    const known = this.parsed.get(text) ?? (JSON.parse(text) as Config);
    this.parsed.set(text, known);
    return known;
  }
}
