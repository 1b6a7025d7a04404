import Ajv from 'ajv';
import { checkManifest, checkRendered, manifestSchemas, type Manifest } from './index.js';
import { BAD_IN_NUMBERS, BAD_NETWORKS, GOOD_NETWORKS, filters, line } from './network-kinds.fixture.js';

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const reasonsOf = (document: unknown): unknown => {
  const checked = checkManifest(plain(document), 'place');
  return checked.ok ? [] : checked.reasons.map(({ field, code }) => ({ field, code }));
};
const ajv = new Ajv({ strict: true, strictRequired: false, strictTypes: false, strictTuples: false, allErrors: true });
ajv.addFormat('regex', true);
const validators = new Map(Object.entries(manifestSchemas()).map(([kind, schema]) => [kind, ajv.compile(schema)]));
const schemaTakes = (manifest: Manifest): boolean => validators.get(String(manifest.kind))?.(plain(manifest)) === true;

test.each(GOOD_NETWORKS)('%s is accepted, also by the schema', (_name, manifest) => {
  expect(reasonsOf(manifest)).toEqual([]);
  expect(schemaTakes(manifest)).toBe(true);
});

test.each(BAD_NETWORKS)('%s is refused, also by the schema', (_name, manifest, field, code) => {
  expect(reasonsOf(manifest)).toEqual([{ field, code }]);
  expect(schemaTakes(manifest)).toBe(false);
});

test.each(BAD_IN_NUMBERS)('%s is refused', (_name, manifest, field, code) => {
  expect(reasonsOf(manifest)).toEqual([{ field, code }]);
});

test('all errors in a list are reported at once', () => {
  expect(reasonsOf(filters(line({ cidr: '10.1.1.1/8' }), line({ ge: 7 }), line({ le: 33, seq: 2 })))).toEqual([
    { field: 'spec.import[1].ge', code: 'out-of-range' },
    { field: 'spec.import[2].le', code: 'out-of-range' },
    { field: 'spec.import[2].seq', code: 'duplicate' },
    { field: 'spec.import[0].cidr', code: 'bad-cidr' },
  ]);
});

test('the result of a template is checked after rendering', () => {
  const spec = { vrf: 'a', import: [{ cidr: '10.0.0.0/24', action: 'permit', ge: 8 }] };
  expect(checkRendered({ kind: 'Vrf', name: 'a', spec })).toMatchObject([
    { fragment: 'Vrf/a', field: 'spec.import[0].ge', code: 'out-of-range' },
  ]);
});
