import { JetStreamApiError, type JsMsg } from '@nats-io/jetstream';
import { BOUND_VALUES_BUCKET, nodeToken, type BoundValue } from '#libs/contracts';
import type { Bus } from './connection.js';
import { REFUSALS } from './errors.js';
import { isDeletion, isStoredDeletion } from './messages.js';
import { StreamReader } from './stream-reader.js';
import { kvStream, kvSubject } from './topology.js';

/** What an applier has read for the bindings of a node. */
export interface ReadValues {
  readonly node: string;
  readonly values: readonly BoundValue[];
}

/** The same, and what a write that replaces it must name. */
export interface StoredValues {
  readonly values: readonly BoundValue[];
  readonly revision: number;
}

/** The bucket with what appliers have read: one value per node, written by compare-and-set. */
export class BoundValueStore {
  constructor(private readonly bus: Bus) {}

  /** As the stream's leader has it. */
  async read(node: string): Promise<StoredValues> {
    const message = await this.bus.stored(kvStream(BOUND_VALUES_BUCKET), { last_by_subj: subjectOf(node) });
    if (message === null) return { values: [], revision: 0 };
    return { values: isStoredDeletion(message) ? [] : valuesIn(message.string()), revision: message.seq };
  }

  /** Returns false if somebody else has written since this revision, which is 0 if there was no value. */
  async write(node: string, values: readonly BoundValue[], revision: number): Promise<boolean> {
    try {
      const text = JSON.stringify({ node, values } satisfies ReadValues);
      await this.bus.publish(subjectOf(node), text, { expect: { lastSubjectSequence: revision } });
      return true;
    } catch (error) {
      if (error instanceof JetStreamApiError && REFUSALS.has(error.code)) return false;
      throw error;
    }
  }

  /** Deletes what was read for a node that has left for good. */
  async remove(node: string): Promise<void> {
    await this.bus.jsm.streams.purge(kvStream(BOUND_VALUES_BUCKET), { filter: subjectOf(node) });
  }

  /** Calls back for each value, and for each that is written, until the signal aborts. */
  async watch(signal: AbortSignal, take: (read: ReadValues) => void): Promise<void> {
    const reading = { stream: kvStream(BOUND_VALUES_BUCKET), lastPerSubject: true };
    const reader = await this.bus.whileElecting(() => StreamReader.open(this.bus, reading));
    const close = (): void => reader.close();
    signal.addEventListener('abort', close, { once: true });
    if (signal.aborted) close();
    try {
      for await (const message of reader) {
        if (signal.aborted) return;
        const read = readIn(message);
        if (read !== undefined) take(read);
      }
    } finally {
      signal.removeEventListener('abort', close);
      reader.close();
    }
  }
}

const subjectOf = (node: string): string => kvSubject(BOUND_VALUES_BUCKET, nodeToken(node));

function readIn(message: JsMsg): ReadValues | undefined {
  if (isDeletion(message)) return undefined;
  try {
    const { node } = message.json<Partial<ReadValues>>();
    return typeof node === 'string' ? { node, values: valuesIn(message.string()) } : undefined;
  } catch {
    return undefined;
  }
}

/** What something other than Sluice has written is left out. */
function valuesIn(text: string): readonly BoundValue[] {
  try {
    const { values } = JSON.parse(text) as { readonly values?: unknown };
    return Array.isArray(values) ? values.filter(isValue) : [];
  } catch {
    return [];
  }
}

const TEXTS = ['from', 'apiVersion', 'kind', 'namespace', 'name', 'fieldPath'] as const;

function isValue(value: unknown): value is BoundValue {
  const one = (value ?? {}) as Readonly<Record<string, unknown>>;
  return TEXTS.every((field) => typeof one[field] === 'string') && typeof (one['value'] ?? one['missing']) === 'string';
}
