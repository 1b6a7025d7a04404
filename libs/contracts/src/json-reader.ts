import { ScalarType, type DescField, type DescMessage } from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt';

/** Thrown for a value that needs the library's own, slower reader. */
const OTHERWISE = Symbol('otherwise');
type ValueReader = (value: unknown) => unknown;
type Fields = Record<string, unknown>;

/**
 * Reads the JSON that Sluice itself writes many times faster than the library. Returns undefined for anything else,
 * which the library then reads.
 */
export function plainReader(schema: DescMessage): (json: unknown) => Fields | undefined {
  const read = messageReader(schema);
  return (json) => {
    const value = read(json);
    return value === OTHERWISE ? undefined : (value as Fields);
  };
}

const READERS = new Map<DescMessage, ValueReader>();

function messageReader(schema: DescMessage): ValueReader {
  const cached = READERS.get(schema);
  if (cached !== undefined) return cached;
  // Registered before its fields are known, because a message may contain itself.
  let fields: readonly FieldReader[] = [];
  const read: ValueReader = (json) => readMessage(fields, json);
  READERS.set(schema, read);
  fields = schema.fields.map(fieldReader);
  return read;
}

interface FieldReader {
  readonly name: string;
  /** Another spelling of the name, which the library accepts too. */
  readonly alias: string | undefined;
  readonly read: ValueReader;
  readonly absent: () => unknown;
}

function readMessage(fields: readonly FieldReader[], json: unknown): unknown {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return OTHERWISE;
  const from = json as Fields;
  const body: Fields = {};
  for (const { name, alias, read, absent } of fields) {
    const value = from[name];
    if (alias !== undefined && from[alias] !== undefined) return OTHERWISE;
    if (value === undefined) {
      const instead = absent();
      if (instead !== undefined) body[name] = instead;
      continue;
    }
    const result = read(value);
    if (result === OTHERWISE) return OTHERWISE;
    body[name] = result;
  }
  return body;
}

function fieldReader(field: DescField): FieldReader {
  const alias = field.name === field.jsonName ? undefined : field.name;
  // If the names in code and in JSON differ, the message is not plain.
  const read = field.localName === field.jsonName && field.oneof === undefined ? valueReader(field) : always;
  return { name: field.jsonName, alias, read, absent: absentOf(field) };
}

function absentOf(field: DescField): () => unknown {
  switch (field.fieldKind) {
    case 'list':
      return () => [];
    case 'map':
      return () => ({});
    case 'scalar':
      return field.presence === IMPLICIT ? zeroOf(field.scalar) : nothing;
    default:
      return nothing;
  }
}

const IMPLICIT = FeatureSet_FieldPresence.IMPLICIT;
const nothing = (): undefined => undefined;
const always: ValueReader = () => OTHERWISE;

function zeroOf(scalar: ScalarType): () => unknown {
  if (scalar === ScalarType.STRING) return () => '';
  if (scalar === ScalarType.BOOL) return () => false;
  return () => 0;
}

function valueReader(field: DescField): ValueReader {
  switch (field.fieldKind) {
    case 'scalar':
      return scalarReader(field.scalar);
    case 'message':
      return innerReader(field.message);
    case 'list':
      return listReader(
        field.listKind === 'scalar'
          ? scalarReader(field.scalar)
          : field.listKind === 'message'
            ? innerReader(field.message)
            : always,
      );
    case 'map':
      return mapReader(
        field.mapKey === ScalarType.STRING && field.mapKind === 'scalar'
          ? scalarReader(field.scalar)
          : field.mapKind === 'message'
            ? innerReader(field.message)
            : always,
      );
    case 'enum':
      return always;
  }
}

const innerReader = (schema: DescMessage): ValueReader =>
  schema.file.proto.package === 'google.protobuf' ? always : messageReader(schema);

function listReader(read: ValueReader): ValueReader {
  return (value) => {
    if (!Array.isArray(value)) return OTHERWISE;
    const items: unknown[] = [];
    for (const item of value) {
      const result = read(item);
      if (result === OTHERWISE) return OTHERWISE;
      items.push(result);
    }
    return items;
  };
}

function mapReader(read: ValueReader): ValueReader {
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return OTHERWISE;
    const map: Fields = {};
    for (const [key, item] of Object.entries(value)) {
      const result = read(item);
      if (result === OTHERWISE || key === '__proto__' || !isText(key)) return OTHERWISE;
      map[key] = result;
    }
    return map;
  };
}

function scalarReader(scalar: ScalarType): ValueReader {
  switch (scalar) {
    case ScalarType.STRING:
      return (value) => (isText(value) ? value : OTHERWISE);
    case ScalarType.BOOL:
      return (value) => (typeof value === 'boolean' ? value : OTHERWISE);
    case ScalarType.UINT32:
      return (value) =>
        typeof value === 'number' && value >>> 0 === value && !Object.is(value, -0) ? value : OTHERWISE;
    case ScalarType.DOUBLE:
      return (value) => (typeof value === 'number' ? value : OTHERWISE);
    default:
      return always;
  }
}

/** Half a surrogate pair has no UTF-8. The library reports the error. */
const isText = (value: unknown): boolean => typeof value === 'string' && value.isWellFormed();
