import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  fromJson,
  toJson,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
} from '@bufbuild/protobuf';
import fc from 'fast-check';
import { parse } from 'yaml';
import {
  decodeFact,
  encodeFact,
  FACTS,
  FACT_TYPES,
  FACT_VERSION,
  factFilter,
  factSubject,
  factTypeOf,
  LEDGER_SUBJECTS,
  REPORT_FILTERS,
  subjectKeys,
  type FactType,
  type NewFact,
} from '#libs/contracts';
import { ROOT, runTool } from './tools.fixture.js';

const BUF = '@bufbuild/buf/bin/buf';

describe('proto', () => {
  test('buf reports nothing', () => {
    const { status, stdout, stderr } = runTool(BUF, ['lint']);
    expect(`${stdout}${stderr}`).toBe('');
    expect(status).toBe(0);
  });

  test('the generated code matches proto/: npm run generate', () => {
    const out = mkdtempSync(join(tmpdir(), 'sluice-generated-'));
    const template = parse(readFileSync(join(ROOT, 'buf.gen.yaml'), 'utf8')) as { plugins: { out: string }[] };
    const generated = join(ROOT, template.plugins[0]?.out ?? '');
    const elsewhere = { ...template, plugins: template.plugins.map((plugin) => ({ ...plugin, out })) };
    writeFileSync(join(out, 'buf.gen.json'), JSON.stringify({ ...elsewhere, clean: false }));
    const { stderr } = runTool(BUF, ['generate', '--template', join(out, 'buf.gen.json')]);
    expect(stderr).toBe('');
    rmSync(join(out, 'buf.gen.json'));
    const [now, then] = [filesOf(out), filesOf(generated)];
    rmSync(out, { recursive: true });
    expect(Object.keys(then)).toEqual(Object.keys(now));
    for (const [name, text] of Object.entries(now))
      expect({ name, isCurrent: then[name] === text }).toEqual({ name, isCurrent: true });
  });

  function filesOf(folder: string): Readonly<Record<string, string>> {
    const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .sort();
    return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
  }
});

describe('subjects', () => {
  const TOKENS = { change: 'c7', hash: 'f'.repeat(64), node: 'w-1.dc1', pool: 'edge', sequence: 42 };

  test.each(FACT_TYPES)('%s has a schema, and its subject matches its type', (type) => {
    expect(FACTS[type].schema.fields.map((field) => field.jsonName)).toEqual(
      expect.arrayContaining(['v', 'at', ...subjectKeys(type)]),
    );
    const subject = factSubject({ type, ...TOKENS } as unknown as NewFact);
    expect(factTypeOf(subject)).toBe(type);
    expect(matches(factFilter(type), subject)).toBe(true);
    expect(LEDGER_SUBJECTS.filter((filter) => matches(filter, subject))).toEqual([factFilter(type)]);
  });

  test('no two filters of the streams match the same message', () => {
    const filters = [...LEDGER_SUBJECTS, ...REPORT_FILTERS.all, 'config.desired.>'];
    const overlapping = filters.flatMap((a, i) =>
      filters
        .slice(i + 1)
        .filter((b) => overlap(a.split('.'), b.split('.')))
        .map((b) => `${a} and ${b}`),
    );
    expect(overlapping).toEqual([]);
  });

  function matches(filter: string, subject: string): boolean {
    return overlap(filter.split('.'), subject.split('.'));
  }

  function overlap(a: readonly string[], b: readonly string[]): boolean {
    if (a[0] === '>' || b[0] === '>') return a.length > 0 && b.length > 0;
    if (a.length === 0 || b.length === 0) return a.length === b.length;
    return (a[0] === b[0] || a[0] === '*' || b[0] === '*') && overlap(a.slice(1), b.slice(1));
  }
});

describe('JSON of facts', () => {
  const types = fc.constantFrom(...FACT_TYPES.filter((type) => !type.startsWith('ledger.')));

  test('the plain JSON of a fact is the proto3 JSON of its message', () => {
    fc.assert(
      fc.property(
        types.chain((type) => fc.record({ type: fc.constant(type), body: jsonOf(FACTS[type].schema, true) })),
        ({ type, body }) => {
          const schema = FACTS[type].schema;
          const again = toJson(schema, fromJson(schema, body as JsonValue), { alwaysEmitImplicit: true }) as JsonObject;
          expect(again).toEqual(body);
        },
      ),
    );
  });

  test('a fact is read as it was written', () => {
    fc.assert(
      fc.property(
        types.chain((type) => fc.record({ type: fc.constant(type), body: jsonOf(FACTS[type].schema, true) })),
        ({ type, body }) => {
          const { v: _, at: __, ...rest } = { ...body, ...TOKENS, ...vocabularyOf(type) } as JsonObject;
          const fact = { type, ...rest } as unknown as NewFact;
          const at = '2026-01-02T03:04:05.678Z';
          expect(JSON.parse(JSON.stringify(decodeFact(factSubject(fact), encodeFact(fact, at))))).toEqual(
            expect.objectContaining({ ...only(FACTS[type].schema, fact), type, v: FACT_VERSION, at }),
          );
        },
      ),
    );
  });

  const TOKENS = { change: 'c7', hash: 'f'.repeat(64), node: 'w-1.dc1', pool: 'edge' };

  /** Words from the closed vocabularies where the codec requires them. */
  function vocabularyOf(type: FactType): object {
    if (type === 'node.reported') return { report: 'applied', verdict: 'applied' };
    if (type === 'node.lease.granted')
      return { kind: 'forward', phase: 'applying', actions: [{ kind: 'reload', unit: 'frr.service' }] };
    if (type === 'node.lease.settled')
      return {
        kind: 'forward',
        because: 'applied',
        report: {
          incarnation: 1,
          nonce: 2,
          seq: 3,
          hash: '',
          verdict: '',
          bootId: 'b',
          reportSequence: 4,
          notUndone: [],
          leftovers: [],
        },
      };
    if (type === 'node.drain.stopped') return { outcome: 'deferred' };
    return type === 'node.lease.released' ? { because: 'applied' } : {};
  }

  /** Without fields that the schema does not know: TOKENS of other types. Unset optional fields stay unset. */
  function only(schema: DescMessage, fact: object): object {
    const known = new Set(schema.fields.map((field) => field.jsonName));
    return Object.fromEntries(Object.entries(fact).filter(([name]) => known.has(name)));
  }

  /** JSON with every field set, as encodeFact writes it. */
  function jsonOf(schema: DescMessage, deep: boolean): fc.Arbitrary<Record<string, unknown>> {
    if (schema.typeName === 'google.protobuf.Struct')
      return fc.dictionary(key(), fc.oneof(fc.string(), fc.boolean(), fc.integer()), { maxKeys: 3 });
    const required = schema.fields
      .filter((field) => deep || field.fieldKind !== 'message')
      .filter((field) => !isOptional(field))
      .map((field) => field.jsonName);
    return fc.record(Object.fromEntries(schema.fields.map((field) => [field.jsonName, valueOf(field)])), {
      requiredKeys: required,
      noNullPrototype: true,
    });
  }

  /** `optional`, or a message: may be absent. */
  const isOptional = (field: DescField): boolean =>
    field.fieldKind === 'message' || field.proto.proto3Optional === true;

  function valueOf(field: DescField): fc.Arbitrary<unknown> {
    switch (field.fieldKind) {
      case 'scalar':
        return scalar(field.scalar);
      case 'message':
        return jsonOf(field.message, false);
      case 'list':
        return fc.array(
          field.listKind === 'message'
            ? jsonOf(field.message, false)
            : scalar(field.listKind === 'scalar' ? field.scalar : 0),
          { maxLength: 3 },
        );
      case 'map':
        return fc.dictionary(key(), scalar(field.mapKind === 'scalar' ? field.scalar : 0), { maxKeys: 3 });
      default:
        throw new Error(`${field.jsonName}: enums have no place here, words are texts`);
    }
  }

  /** By the type numbers of the proto descriptor. Any other type would not be plain JSON. */
  function scalar(type: number): fc.Arbitrary<unknown> {
    const plain: Readonly<Record<number, fc.Arbitrary<unknown>>> = {
      // double
      1: fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (Object.is(value, -0) ? 0 : value)),
      8: fc.boolean(),
      9: fc.string({ unit: 'grapheme' }),
      13: fc.integer({ min: 0, max: 2 ** 32 - 1 }), // uint32
    };
    const arbitrary = plain[type];
    if (arbitrary === undefined)
      throw new Error(`scalar type ${type} is not plain JSON: use uint32, double, bool or string`);
    return arbitrary;
  }

  function key(): fc.Arbitrary<string> {
    return fc.string().filter((text) => text !== '__proto__');
  }
});
