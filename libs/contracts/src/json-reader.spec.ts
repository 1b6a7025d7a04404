import { fromJson, type DescField, type DescMessage, type JsonValue } from '@bufbuild/protobuf';
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import * as views from './generated/sluice/v1/views_pb.js';
import * as report from './generated/sluice/v1/report_pb.js';
import { plainReader } from './json-reader.js';
import { FACTS } from './facts.js';
import { plain } from './wire.js';

const SCHEMAS: readonly DescMessage[] = [
  ...new Set([
    ...Object.values<{ schema: DescMessage }>(FACTS).map(({ schema }) => schema),
    ...Object.values(views),
    ...Object.values(report),
  ]),
].filter((one): one is DescMessage => typeof one === 'object' && 'kind' in one && one.kind === 'message');

/** The result of the library; undefined if it refuses. */
function slowly(schema: DescMessage, json: JsonValue): unknown {
  try {
    return plain(schema, fromJson(schema, json, { ignoreUnknownFields: true }) as unknown as Record<string, unknown>);
  } catch {
    return undefined;
  }
}

const odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    -1,
    1.5,
    -0,
    2 ** 32,
    '7',
    'Infinity',
    true,
    '\ud800',
    [],
    {},
    [null],
    ['\ud800'],
    { a: null },
    { __proto__x: 1 },
    [[]],
  ),
  fc.jsonValue(),
);

function valueOf(field: DescField, depth: number): fc.Arbitrary<unknown> {
  const scalar = fc.oneof(fc.string(), fc.boolean(), fc.nat());
  const inner = field.message === undefined || depth > 2 ? scalar : messageOf(field.message, depth + 1);
  const one =
    field.fieldKind === 'list'
      ? fc.array(inner, { maxLength: 2 })
      : field.fieldKind === 'map'
        ? fc.dictionary(fc.string(), inner, { maxKeys: 2 })
        : inner;
  return fc.oneof({ arbitrary: one, weight: 20 }, { arbitrary: odd, weight: 1 });
}

function messageOf(schema: DescMessage, depth = 0): fc.Arbitrary<unknown> {
  const fields = schema.fields.flatMap(
    (field) =>
      [[field.jsonName, valueOf(field, depth)], ...(field.name === field.jsonName ? [] : [[field.name, odd]])] as [
        string,
        fc.Arbitrary<unknown>,
      ][],
  );
  return fc.record(Object.fromEntries([...fields, ['unknown', odd]]), { requiredKeys: [] });
}

/** Values of the right types, as Sluice writes them. */
function ownValueOf(field: DescField): fc.Arbitrary<unknown> | undefined {
  const scalars: Readonly<Record<number, fc.Arbitrary<unknown>>> = {
    9: fc.string(),
    8: fc.boolean(),
    13: fc.nat(),
    1: fc.double({ noNaN: true, noDefaultInfinity: true }),
  };
  const isForeign = field.message?.file.proto.package === 'google.protobuf';
  const one =
    field.message === undefined ? scalars[field.scalar ?? 0] : isForeign ? undefined : ownMessageOf(field.message);
  if (one === undefined) return undefined;
  return field.fieldKind === 'list'
    ? fc.array(one, { maxLength: 2 })
    : field.fieldKind === 'map'
      ? fc.dictionary(fc.stringMatching(/^[a-z]*$/), one, { maxKeys: 2 })
      : one;
}

const ownMessageOf = (schema: DescMessage): fc.Arbitrary<unknown> =>
  fc.record(
    Object.fromEntries(
      schema.fields.flatMap((field) => {
        const value = ownValueOf(field);
        return value === undefined ? [] : [[field.jsonName, value]];
      }),
    ),
    { requiredKeys: [] },
  );

describe.each(SCHEMAS.map((schema) => [schema.name, schema] as const))('%s', (_name, schema) => {
  test('is read like the library reads it, or left to the library', () => {
    fc.assert(
      fc.property(messageOf(schema), (json) => {
        const quickly = plainReader(schema)(json);
        if (quickly !== undefined) expect(quickly).toEqual(slowly(schema, json as JsonValue));
      }),
      { numRuns: 60 },
    );
  });

  test('is never left to the library if Sluice wrote it', () => {
    fc.assert(
      fc.property(ownMessageOf(schema), (json) => {
        expect(plainReader(schema)(json)).toEqual(slowly(schema, json as JsonValue));
      }),
      { numRuns: 40 },
    );
  });
});

test('leaves fields without a name, without presence or of another type to the library', () => {
  expect(FeatureSet_FieldPresence.IMPLICIT).toBe(2);
  expect(plainReader(FACTS['node.silent'].schema)({ v: '1' })).toBeUndefined();
  expect(plainReader(FACTS['node.silent'].schema)([])).toBeUndefined();
});
