import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv from 'ajv';
import { parseAllDocuments } from 'yaml';
import {
  checkManifest,
  checkRendered,
  claimsOf,
  functionReasons,
  leavesEveryNode,
  manifestSchemas,
  type Manifest,
} from '../../index.js';
import { manifestOf } from '../../manifest.fixture.js';
import { BAD_OBJECTS, CONNECTION, GOOD_OBJECTS, object } from './function-kinds.fixture.js';
import { COMPOSITE_KINDS } from './composite-kinds.js';
import { FUNCTION_KINDS } from './table.js';

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const reasonsOf = (document: unknown): readonly { readonly field: string; readonly message: string }[] => {
  const checked = checkManifest(plain(document), 'place');
  return checked.ok ? [] : checked.reasons.map(({ field, message }) => ({ field, message }));
};
const ajv = new Ajv({ strict: true, strictRequired: false, strictTypes: false, strictTuples: false, allErrors: true });
ajv.addFormat('regex', true);
const validators = new Map(Object.entries(manifestSchemas()).map(([kind, schema]) => [kind, ajv.compile(schema)]));
const schemaTakes = (manifest: Manifest): boolean => validators.get(String(manifest.kind))?.(plain(manifest)) === true;

const FOLDER = join(__dirname, '../../../../../examples/10-network-functions');
const examples: readonly Manifest[] = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.yaml'))
  .flatMap((file) => parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8')).map((one) => one.toJS() as Manifest));

test('there is an example of every kind, and the schema takes it', () => {
  expect(examples.flatMap(reasonsOf)).toEqual([]);
  expect(examples.filter((manifest) => !schemaTakes(manifest))).toEqual([]);
  const kinds = [...FUNCTION_KINDS, ...COMPOSITE_KINDS].map(({ kind }) => kind);
  expect(new Set(examples.map(({ kind }) => kind))).toEqual(new Set([...kinds, 'ResolvedName']));
});

test.each(GOOD_OBJECTS)('%s is accepted, also by the schema', (_what, manifest) => {
  expect(reasonsOf(manifest)).toEqual([]);
  expect(schemaTakes(manifest)).toBe(true);
});

test.each(BAD_OBJECTS)('%s is refused: the message says why and what to do', (_what, manifest, field, words) => {
  expect(reasonsOf(manifest)).toEqual([{ field, message: expect.stringContaining(words) }]);
});

test('the result of a template is checked after rendering', () => {
  const spec = { dst: '{{ node.labels.net }}', dev: 'eth0' };
  expect(reasonsOf(manifestOf('CNFRoute', spec, { name: 'a' }))).toEqual([]);
  expect(checkRendered({ kind: 'CNFRoute', name: 'a', spec: { dst: '10.0.0.1/8', dev: 'eth0' } })).toMatchObject([
    { field: 'spec.dst', message: 'must be the address of the network: did you mean 10.0.0.0/8?' },
  ]);
  const nat = {
    target: 'SNAT',
    src_dip: '{{ node.labels.wan }}',
    dest: '#source',
    proto: '{{ node.labels.p }}',
    src_port: 1,
  };
  expect(reasonsOf(manifestOf('CNFNAT', nat, { name: 'a' }))).toEqual([]);
});

test('two objects that would be one on the function claim the same', () => {
  const claims = (kind: string, spec: object = {}): readonly string[] =>
    claimsOf({ kind, name: 'a', spec: spec as Record<string, unknown> });
  expect(claims('FirewallSNAT')).toEqual(claims('FirewallDNAT'));
  expect(claims('FirewallSNAT')).not.toEqual(claims('FirewallRule'));
  expect(claims('IpsecHost')).toEqual(claims('IpsecSite'));
  expect(claims('IpsecHost')).toEqual(claims('IpsecProposal'));
  expect(claims('Mwan3Policy')).toEqual(claims('Mwan3Rule'));
  expect(claims('CNFRouteRule')).not.toEqual(claims('NetworkFirewallRule'));
  expect(claims('IpsecHost', { connections: [CONNECTION] })).toEqual(['ipsec section a', 'ipsec section lan']);
});

test('a reference that leads nowhere is named, with what it needs', () => {
  const entry = (kind: string, name: string, spec: object) => ({ kind, name, spec: spec as Record<string, unknown> });
  const fragments = [
    entry('FirewallForwarding', 'out', { src: 'inside', dest: 'outside' }),
    entry('FirewallZone', 'inside', {}),
    entry('IpsecHost', 'h', { crypto_proposal: ['p'], connections: [{ crypto_proposal: ['p', 'q'] }] }),
    entry('IpsecProposal', 'p', {}),
    entry('Mwan3Rule', 'r', { policy: 'all' }),
  ];
  expect(functionReasons({ fragments })).toMatchObject([
    {
      fragment: 'FirewallForwarding/out',
      field: 'spec.dest',
      code: 'missing-reference',
      needs: 'FirewallZone/outside',
    },
    { fragment: 'IpsecHost/h', field: 'spec.connections[0].crypto_proposal[1]', needs: 'IpsecProposal/q' },
    { fragment: 'Mwan3Rule/r', field: 'spec.policy', needs: 'Mwan3Policy/all' },
  ]);
  expect(object('Mwan3Rule', {})).toBeDefined();
});

test('the deletion of anything for functions is complete only when no replica has it any more', () => {
  for (const { kind } of [...FUNCTION_KINDS, ...COMPOSITE_KINDS])
    expect([
      kind,
      leavesEveryNode({ kind, spec: {} }),
      leavesEveryNode({ kind, spec: { deletion: 'rollout' } }),
    ]).toEqual([kind, true, false]);
});
