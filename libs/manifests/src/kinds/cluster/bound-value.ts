import type { BoundField, BoundValue, Fragment } from '#libs/contracts';
import { utf8Bytes } from '../../utf8.js';

/** Values are in configs, in the ledger and in views. */
export const MOST_VALUE_BYTES = 4_096;
/** Of one node, from all its fragments: they must fit into a message. */
export const MOST_BOUND_VALUES = 100;

/** The kind with the values of the bindings of a node, whose name is that of the node. */
export const BOUND_VALUES = 'BoundValues';
export const boundValuesId = (node: string): string => `${BOUND_VALUES}/${node}`;

/** Identifies a field. */
export const boundFieldKey = ({ from, apiVersion, kind, namespace, name, fieldPath }: BoundField): string =>
  JSON.stringify([from, apiVersion, kind, namespace, name, fieldPath]);

/** For people. */
export const boundFieldText = ({ from, kind, namespace, name, fieldPath }: BoundField): string =>
  `${fieldPath} of ${kind} ${namespace === '' ? '' : `${namespace}/`}${name}${from === 'hub' ? ' on the hub' : ''}`;

/** Keeps reasons readable. */
const SHOWN_CHARACTERS = 60;

/** What people read about a value. */
export const boundValueText = ({ value, missing }: Pick<BoundValue, 'value' | 'missing'>): string =>
  value === undefined
    ? `none (${String(missing)})`
    : JSON.stringify(value.length <= SHOWN_CHARACTERS ? value : `${value.slice(0, SHOWN_CHARACTERS)}…`);

/** What a fragment says about the fields of a node; empty for other kinds. Accepts any spec. */
export function boundValuesIn({ kind, spec }: Pick<Fragment, 'kind' | 'spec'>): readonly BoundValue[] {
  const values: unknown = kind === BOUND_VALUES ? spec?.['values'] : undefined;
  if (!Array.isArray(values)) return [];
  return (values as readonly (Omit<BoundValue, 'namespace'> & { readonly namespace?: string })[]).map(
    (one) => ({ ...one, namespace: one.namespace ?? '' }) as BoundValue,
  );
}

/** A value that an object has, as a text for templates, or why it cannot be one. */
export function textOfValue(value: unknown): Pick<BoundValue, 'value' | 'missing'> {
  if (value === undefined) return { missing: 'the object does not have this field' };
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
    return {
      missing: `the field is ${value === null ? 'null' : Array.isArray(value) ? 'a list' : 'an object'}, and must be a string, a number, true or false`,
    };
  const text = String(value);
  if (!text.isWellFormed()) return { missing: 'the field is no valid Unicode' };
  const bytes = utf8Bytes(text);
  return bytes <= MOST_VALUE_BYTES
    ? { value: text }
    : { missing: `the field has ${bytes} bytes; the limit is ${MOST_VALUE_BYTES}` };
}
