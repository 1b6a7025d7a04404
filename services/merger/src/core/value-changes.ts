import type { BoundField, BoundValue } from '#libs/contracts';
import {
  BOUND_VALUES,
  boundFieldKey,
  boundFieldText,
  boundValueText,
  manifestOf,
  MAX_CHANGE_BYTES,
  utf8Bytes,
} from '#libs/manifests';
import type { WantedValues } from './bindings.js';

/** Values to publish for one node. Without values, what was published is deleted. */
export interface NewValues {
  readonly node: string;
  readonly values: readonly BoundValue[];
  /** What people read: which value has changed, and how. */
  readonly words: readonly string[];
  /** The change that this replaces; empty if there is none. */
  readonly after: string;
}

/** The content of a change. */
export interface ValueChange {
  readonly apply?: readonly object[];
  readonly delete?: readonly { readonly kind: string; readonly name: string }[];
  readonly message: string;
  readonly author: string;
}

/**
 * One that is rolled out and one that waits for it. A value that changes faster than it can be rolled out must not fill
 * the queue: the last one is published when there is room.
 */
const MOST_OPEN = 2;

/**
 * What to publish for a node, given what its applier has read; undefined if nothing. What was published and is not in
 * that any more stays, because the bucket may have been lost.
 */
export function newValuesOf(wanted: WantedValues, read: readonly BoundValue[]): NewValues | undefined {
  const { node, fields, published, open } = wanted;
  const after = published?.change ?? '';
  if (fields.length === 0)
    return {
      node,
      values: [],
      words: [`${node} has no bindings any more, which deletes the values of ${after}`],
      after,
    };
  if (open >= MOST_OPEN) return undefined;
  const [before, now] = [byField(published?.values ?? []), byField(read)];
  const values: BoundValue[] = [];
  const words: string[] = [];
  for (const field of fields) {
    const key = boundFieldKey(field);
    const [was, is] = [before.get(key), now.get(key)];
    if (is !== undefined && (is.value !== was?.value || is.missing !== was?.missing))
      words.push(wordsOf(node, wanted.names.get(key) ?? '', field, was, is));
    const value = is ?? was;
    if (value !== undefined) values.push(value);
  }
  return words.length === 0 ? undefined : { node, values, words, after };
}

const byField = (values: readonly BoundValue[]): ReadonlyMap<string, BoundValue> =>
  new Map(values.map((one) => [boundFieldKey(one), one]));

function wordsOf(node: string, name: string, field: BoundField, was: BoundValue | undefined, is: BoundValue): string {
  const binding = name === '' ? 'a binding' : `binding ${name}`;
  const changed =
    was === undefined ? `is ${boundValueText(is)}` : `changed from ${boundValueText(was)} to ${boundValueText(is)}`;
  return `${binding} of ${node} ${changed}: ${boundFieldText(field)}`;
}

/** A change must fit into a message, with its envelope. */
const MOST_BYTES = MAX_CHANGE_BYTES / 2;
/** How many values the message of a change names. */
const MOST_NAMED = 5;

/** As few changes as possible: values that change together are rolled out together. */
export function changesOf(news: readonly NewValues[]): readonly ValueChange[] {
  const changes: ValueChange[] = [];
  let batch: NewValues[] = [];
  let bytes = 0;
  for (const one of news) {
    const size = utf8Bytes(JSON.stringify(one));
    if (batch.length > 0 && bytes + size > MOST_BYTES) {
      changes.push(changeOf(batch));
      [batch, bytes] = [[], 0];
    }
    batch.push(one);
    bytes += size;
  }
  if (batch.length > 0) changes.push(changeOf(batch));
  return changes;
}

function changeOf(news: readonly NewValues[]): ValueChange {
  const gone = news.filter(({ values }) => values.length === 0);
  const set = news.filter(({ values }) => values.length > 0);
  const words = news.flatMap((one) => one.words);
  const more = words.length > MOST_NAMED ? `; and ${words.length - MOST_NAMED} more` : '';
  return {
    ...(set.length > 0 ? { apply: set.map(manifest) } : {}),
    ...(gone.length > 0 ? { delete: gone.map(({ node }) => ({ kind: BOUND_VALUES, name: node })) } : {}),
    message: `${words.slice(0, MOST_NAMED).join('; ')}${more}`,
    author: 'sluice',
  };
}

function manifest({ node, values, after }: NewValues): object {
  const specs = values.map(({ namespace, ...one }) => (namespace === '' ? one : { ...one, namespace }));
  const spec = { values: specs, ...(after === '' ? {} : { after }) };
  return manifestOf({ kind: BOUND_VALUES, name: node, labels: {}, spec: spec as never });
}
