import { FIREWALL_KINDS } from './firewall-kinds.js';
import type { Field, Fields, FunctionKind } from './function-kind.js';
import { IPSEC_KINDS } from './ipsec-kinds.js';
import { KERNEL_KINDS } from './kernel-kinds.js';
import { MWAN3_KINDS } from './mwan3-kinds.js';

/**
 * Every kind of object of a network function (SD-EWAN CNF), in the order in which they are applied: what others refer
 * to comes first. Its class, review, actions and backend all follow from this table.
 */
export const FUNCTION_KINDS: readonly FunctionKind[] = [
  ...MWAN3_KINDS,
  ...FIREWALL_KINDS,
  ...IPSEC_KINDS,
  ...KERNEL_KINDS,
];

/** The kind of function objects with that name; undefined if it is something else. */
export const functionKindOf = (kind: string): FunctionKind | undefined => BY_NAME.get(kind);

const BY_NAME: ReadonlyMap<string, FunctionKind> = new Map(FUNCTION_KINDS.map((kind) => [kind.kind, kind]));

/** A value of a spec that names something. */
export interface Named {
  readonly field: Field;
  /** Its place in the spec, such as `connections[0].crypto_proposal[1]`. */
  readonly at: string;
  readonly name: string;
}

/** Every value of a spec that names something else. Accepts any spec. */
export function namedIn(fields: Fields, spec: Readonly<Record<string, unknown>>, place = ''): readonly Named[] {
  return Object.entries(fields).flatMap(([key, field]) => {
    const at = place === '' ? key : `${place}.${key}`;
    const values = field.list === true && Array.isArray(spec[key]) ? (spec[key] as readonly unknown[]) : [spec[key]];
    return values.flatMap((value, i): readonly Named[] => {
      const here = field.list === true ? `${at}[${i}]` : at;
      if ('fields' in field)
        return typeof value === 'object' && value !== null
          ? namedIn(field.fields, value as Record<string, unknown>, here)
          : [];
      if (field.refersTo === undefined && field.needs === undefined) return [];
      return typeof value === 'string' && value !== '' ? [{ field, at: here, name: value }] : [];
    });
  });
}

/** What an object claims on its function, so that no other object may have it too: the names of sections. */
export function sectionsOf(
  kind: FunctionKind,
  name: string,
  spec: Readonly<Record<string, unknown>>,
): readonly string[] {
  const list = kind.sections === undefined ? undefined : spec[kind.sections.list];
  const names = (Array.isArray(list) ? (list as readonly unknown[]) : []).map(
    (item) => (item as Record<string, unknown> | null)?.[kind.sections?.field ?? ''],
  );
  return [name, ...names.filter((one) => typeof one === 'string')].map((one) => `${kind.space} ${one}`);
}
