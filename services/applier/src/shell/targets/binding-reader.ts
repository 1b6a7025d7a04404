import type { BoundField, BoundValue } from '#libs/contracts';
import { fieldAt, textOfValue } from '#libs/manifests/lean';
import type { Log } from '../../core/index.js';

/** An object that bindings refer to. */
export type BoundObject = Omit<BoundField, 'fieldPath'>;

/** Where the objects are. */
export interface ObjectSource {
  /** The object as its server has it now, or why it cannot be read. Rejects if that is not known. */
  read(object: BoundObject): Promise<object | string>;
  /** Calls back whenever the object may have changed, and once when that can be noticed. */
  follow(object: BoundObject, onChange: () => void): () => void;
  stop(): void;
}

/** Where what was read is kept, by node. */
export interface ValueBucket {
  /** As the leader of the bucket has it. */
  read(node: string): Promise<{ readonly values: readonly BoundValue[]; readonly revision: number }>;
  /** Returns false if somebody else has written since that revision. */
  write(node: string, values: readonly BoundValue[], revision: number): Promise<boolean>;
}

export interface BindingReaderOptions {
  readonly node: string;
  readonly objects: ObjectSource;
  readonly bucket: ValueBucket;
  readonly log: Pick<Log, 'warn'>;
  /** The least time between two reports. */
  readonly pauseMs?: number;
}

const PAUSE_MS = 1_000;
/** A value that changes all the time is reported so often. */
const LONGEST_PAUSE_MS = 60_000;
const AGAIN_MS = 30_000;

/**
 * Reads the objects that the bindings of a node refer to, and reports their fields when one of them has changed. It
 * reads the last report first, then the objects, and then replaces exactly that report. So what it reports was read
 * after what it replaces, also if two copies believe that they own the node.
 */
export class BindingReader {
  private fields: readonly BoundField[] = [];
  private readonly follows = new Map<string, () => void>();
  private timer: NodeJS.Timeout | undefined;
  private isBusy = false;
  private isDirty = false;
  private isStopped = false;
  private failure = '';
  private pauseMs: number;
  private reportedMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: BindingReaderOptions) {
    this.pauseMs = this.leastMs;
  }

  /** These fields are wanted from now on. */
  want(fields: readonly BoundField[]): void {
    if (this.isStopped || JSON.stringify(fields) === JSON.stringify(this.fields)) return;
    this.fields = fields;
    const objects = new Map(fields.map((field) => [keyOf(field), field]));
    for (const [key, end] of this.follows) {
      if (objects.has(key)) continue;
      end();
      this.follows.delete(key);
    }
    for (const [key, object] of objects)
      if (!this.follows.has(key))
        this.follows.set(
          key,
          this.options.objects.follow(object, () => this.soon()),
        );
    this.soon(0);
  }

  /** Objects may have changed unnoticed. */
  soon(ms = this.waitMs()): void {
    this.isDirty = true;
    if (this.isBusy || this.isStopped) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.look(), ms).unref();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
    for (const end of this.follows.values()) end();
    this.follows.clear();
    this.options.objects.stop();
  }

  private async look(): Promise<void> {
    this.isBusy = true;
    this.isDirty = false;
    let againMs: number | undefined;
    try {
      if (!(await this.report())) againMs = this.leastMs;
    } catch (error) {
      this.noteFailure(error as Error);
      againMs = AGAIN_MS;
    }
    this.isBusy = false;
    if (againMs !== undefined) this.soon(againMs);
    else if (this.isDirty) this.soon();
  }

  /** Returns whether everything is reported. */
  private async report(): Promise<boolean> {
    const { node, bucket, objects } = this.options;
    const { fields } = this;
    const { values: before, revision } = await bucket.read(node);
    const read = new Map<string, object | string>();
    for (const field of fields) if (!read.has(keyOf(field))) read.set(keyOf(field), await objects.read(field));
    const values = fields.map((field): BoundValue => valueOf(field, read.get(keyOf(field)) ?? ''));
    if (this.isStopped || JSON.stringify(values) === JSON.stringify(before)) return true;
    if (!(await bucket.write(node, values, revision))) return false;
    this.noteReport();
    this.failure = '';
    return fields === this.fields;
  }

  /** A target that does not answer is in the log already. */
  private noteFailure({ name, message }: Error): void {
    const { node, log } = this.options;
    if (name === 'UnreachableError' || message === this.failure) return;
    this.failure = message;
    log.warn({ node, error: message }, 'the values of bindings cannot be read or reported; trying again');
  }

  /** Values that change all the time are reported less and less often. */
  private noteReport(): void {
    const nowMs = performance.now();
    const isQuiet = nowMs - this.reportedMs > 2 * this.pauseMs;
    this.pauseMs = isQuiet ? this.leastMs : Math.min(LONGEST_PAUSE_MS, 2 * this.pauseMs);
    this.reportedMs = nowMs;
  }

  private waitMs(): number {
    return Math.max(this.leastMs / 4, this.reportedMs + this.pauseMs - performance.now());
  }

  private get leastMs(): number {
    return this.options.pauseMs ?? PAUSE_MS;
  }
}

const keyOf = ({ from, apiVersion, kind, namespace, name }: BoundObject): string =>
  JSON.stringify([from, apiVersion, kind, namespace, name]);

function valueOf(
  { from, apiVersion, kind, namespace, name, fieldPath }: BoundField,
  object: object | string,
): BoundValue {
  const field = { from, apiVersion, kind, namespace, name, fieldPath };
  if (typeof object === 'string') return { ...field, missing: object };
  return { ...field, ...textOfValue(fieldAt(object, fieldPath)) } as BoundValue;
}
