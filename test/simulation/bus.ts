import {
  decodeFact, decodeView, encodeFact, encodeReport, encodeView, factSubject, nodeToken, reportSubject,
  type Fact, type NewFact, type NodeReport, type Targets, type ViewBucket, type ViewValues,
} from '#libs/contracts';
import type { Entry, ViewBody, ViewKey } from '#libs/kernel';

export interface Stored {
  readonly sequence: number;
  readonly subject: string;
  readonly text: string;
}

/** The server: streams, buckets and blobs, as they are on its disk. It keeps what it acknowledged. */
export class SimBus {
  readonly changes: Stored[] = [];
  readonly reports: Stored[] = [];
  readonly ledger: { readonly sequence: number; readonly fact: Fact; readonly targets?: Targets; readonly atMs: number }[] = [];
  readonly configs = new Map<string, string>();
  readonly targets = new Map<string, Targets>();
  private readonly values = new Map<string, { readonly revision: number; readonly ledger: number; readonly text: string }>();
  /** Called after each append, view and stored message. */
  onAppend: (fact: Fact, sequence: number) => void = () => undefined;
  onView: (key: ViewKey) => void = () => undefined;
  onInput: () => void = () => undefined;

  get last(): number {
    return this.ledger.length;
  }

  publishChange(source: string, text: string): number {
    const sequence = this.changes.length + 1;
    this.changes.push({ sequence, subject: `config.desired.${source}`, text });
    this.onInput();
    return sequence;
  }

  publishReport(report: NodeReport): void {
    this.reports.push({ sequence: this.reports.length + 1, subject: reportSubject(report.kind, report.node), text: encodeReport(report) });
    this.onInput();
  }

  /** All or nothing, and only on the expected end. */
  append(facts: readonly NewFact[], expected: number, nowMs: number): boolean {
    if (expected !== this.last) return false;
    const at = new Date(nowMs).toISOString();
    for (const fact of facts) {
      const decoded = decodeFact(factSubject(fact), encodeFact(fact, at));
      const targets = decoded.type === 'config.rendered' ? Object.assign({}, ...decoded.targets.map((key) => this.targets.get(key))) as Targets : undefined;
      this.ledger.push({ sequence: this.last + 1, fact: decoded, atMs: nowMs, ...(targets === undefined ? {} : { targets }) });
      this.onAppend(decoded, this.last);
    }
    return true;
  }

  entries(after: number, upTo: number, readMs: number, reads: ReadonlySet<string>): readonly Entry[] {
    return this.ledger.slice(after, upTo).filter(({ fact }) => reads.has(fact.type)).map((stored) => ({ ...stored, readMs }));
  }

  revision(key: ViewKey): { readonly revision: number; readonly ledger: number; readonly text: string } {
    return this.values.get(`${key.bucket}/${key.key}`) ?? { revision: 0, ledger: 0, text: '' };
  }

  /** Compare-and-set on the revision that was read. */
  putView(key: ViewKey, body: ViewBody, ledger: number, revision: number): boolean {
    const name = `${key.bucket}/${key.key}`;
    const known = this.revision(key);
    if (known.revision !== revision || known.ledger > ledger) return false;
    const text = encodeView(key.bucket, { ...body, ledger } as never);
    this.values.set(name, { revision: revision + 1, ledger, text });
    this.onView(key);
    return true;
  }

  view<B extends ViewBucket>(bucket: B, key: string): ViewValues[B] | undefined {
    const stored = this.values.get(`${bucket}/${key}`);
    return stored === undefined ? undefined : decodeView(bucket, stored.text);
  }

  viewKeysOf(bucket: ViewBucket): readonly string[] {
    return [...this.values.keys()].filter((name) => name.startsWith(`${bucket}/`)).map((name) => name.slice(bucket.length + 1));
  }

  config(node: string, hash: string): string | undefined {
    return this.configs.get(`${nodeToken(node)}.${hash}`);
  }
}
