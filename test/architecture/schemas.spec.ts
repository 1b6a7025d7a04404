import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv from 'ajv';
import { stringify } from 'yaml';
import { customResourceDefinitions, manifestSchemas, PLAIN_WEBHOOK, requestSchemas } from '#libs/manifests';
import { ROOT } from './tools.fixture.js';

const FOLDER = join(ROOT, 'docs/schemas');
const schemas = Object.values<object>({ ...manifestSchemas(), ...requestSchemas() }) as readonly {
  readonly $id: string;
}[];

test('docs/schemas is up to date: npm run schemas', () => {
  const expected = Object.fromEntries(
    schemas.map((schema) => [
      new URL(schema.$id).pathname.replace('/schemas/', ''),
      `${JSON.stringify(schema, null, 2)}\n`,
    ]),
  );
  const found = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.json'));
  expect(found.sort()).toEqual(Object.keys(expected).sort());
  for (const [name, text] of Object.entries(expected))
    expect({ name, isCurrent: readFileSync(join(FOLDER, name), 'utf8') === text }).toEqual({ name, isCurrent: true });
});

test('every field of a manifest, a request and a custom resource has a description', () => {
  const definitions = Object.values(customResourceDefinitions()).map((one) => one['spec']);
  const withoutOne = [...schemas, ...definitions].flatMap((schema) => undescribed(schema, ''));
  expect([...new Set(withoutOne)]).toEqual([]);
  expect(undescribed({ properties: { a: { type: 'string' } } }, 'x')).toEqual(['x.a']);
});

/** The fields without a description. Conditions (`allOf` and the like) name fields that are described elsewhere. */
function undescribed(schema: unknown, at: string): readonly string[] {
  if (Array.isArray(schema)) return schema.flatMap((one) => undescribed(one, at));
  if (typeof schema !== 'object' || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) => {
    if (CONDITIONS.includes(key)) return [];
    if (key !== 'properties') return undescribed(value, key === 'openAPIV3Schema' ? at : `${at}.${key}`);
    return Object.entries(value as object).flatMap(([name, field]) => [
      ...(name !== 'metadata' && !('description' in (field as object)) ? [`${at}.${name}`] : []),
      ...undescribed(field, `${at}.${name}`),
    ]);
  });
}

const CONDITIONS = ['allOf', 'anyOf', 'oneOf', 'not', 'dependencies'];

test('deploy/crds is up to date: npm run schemas', () => {
  const folder = join(ROOT, 'deploy/crds');
  const expected = Object.fromEntries(
    Object.entries(customResourceDefinitions()).map(([name, definition]) => [
      name,
      stringify(definition, { aliasDuplicateObjects: false, lineWidth: 0 }),
    ]),
  );
  expect(
    Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')])),
  ).toEqual(expected);
});

test('deploy/admission is up to date: npm run schemas', () => {
  expect(readFileSync(join(ROOT, 'deploy/admission/webhook.yaml'), 'utf8')).toBe(
    stringify(PLAIN_WEBHOOK, { aliasDuplicateObjects: false, lineWidth: 0 }),
  );
});

test('every schema compiles, with a unique name', () => {
  const ajv = new Ajv({
    strict: true,
    strictRequired: false,
    strictTypes: false,
    strictTuples: false,
    formats: { regex: true },
  });
  for (const schema of schemas) ajv.compile(schema);
  expect(new Set(schemas.map(({ $id }) => $id)).size).toBe(schemas.length);
});
