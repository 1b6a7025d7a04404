import { checkManifest, checkRendered, claimsOf } from '../index.js';

const file = (name: string, more: object = {}): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'File',
  metadata: { name },
  spec: { nodeSelector: {}, path: `/etc/${name}`, content: 'hello from {{ node.name }}\n', ...more },
});
const change = (...apply: readonly unknown[]): object => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'FleetChange',
  metadata: { name: 'motd' },
  spec: { nodeSelector: {}, apply },
});
const problemsOf = (document: object): readonly string[] => {
  const checked = checkManifest(document, 'place');
  return checked.ok ? [] : checked.reasons.map(({ field, code }) => `${field} ${code}`);
};

it('takes manifests as they would be published, templates included', () => {
  expect(problemsOf(change(file('motd')))).toEqual([]);
  const spec = { apply: [file('motd')] };
  expect(checkRendered({ kind: 'FleetChange', name: 'motd', spec })).toEqual([]);
});

it.each<readonly [string, object, readonly string[]]>([
  ['an empty list', change(), ['spec.apply empty']],
  ['something that is no manifest', change('motd'), ['spec.apply[0] wrong-type']],
  ['an unknown kind', change({ ...file('motd'), kind: 'Fil' }), ['spec.apply[0].kind unknown-kind']],
  ['a wrong field', change(file('motd', { mode: '9' })), ['spec.apply[0].spec.mode bad-mode']],
  ['two manifests of one fragment', change(file('motd'), file('motd')), ['spec.apply[1] duplicate']],
])('refuses %s, and names the place', (_, document, problems) => {
  expect(problemsOf(document)).toEqual(problems);
});

it('claims each fragment in the other fleet', () => {
  const spec = { apply: [file('a'), file('b'), 'no manifest', { kind: 'File' }] };
  expect(claimsOf({ kind: 'FleetChange', name: 'motd', spec })).toEqual([
    'File/a of the other fleet',
    'File/b of the other fleet',
  ]);
});
