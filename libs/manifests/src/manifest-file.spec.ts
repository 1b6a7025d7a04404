import { checkManifest, readManifests } from './index.js';

describe('readManifests', () => {
  test('reads several documents, and skips empty ones', () => {
    const text = '# first\nkind: A\n---\n---\n\nkind: B\nspec: {mode: "0644", on: yes}\n---\n# nothing\n';
    expect(readManifests(text, 'f.yaml')).toEqual({
      manifests: [{ kind: 'A' }, { kind: 'B', spec: { mode: '0644', on: 'yes' } }],
      places: ['f.yaml:2', 'f.yaml:6'],
      problems: [],
    });
  });

  test('reads JSON, a list of manifests too, and tabs in it', () => {
    expect(readManifests('{\n\t"kind": "A",\n\t"spec": {"x": [1, 2]}\n}\n', 'f.json').manifests).toEqual([
      { kind: 'A', spec: { x: [1, 2] } },
    ]);
    expect(readManifests('[{"kind": "A"}, {"kind": "B"}]', 'f.json').manifests).toEqual([{ kind: 'A' }, { kind: 'B' }]);
  });

  test('reads the items of a List, and nothing that only looks like one', () => {
    const list = 'apiVersion: v1\nkind: List\nitems:\n- kind: A\n- kind: B\n';
    expect(readManifests(list, 'f.yaml').manifests).toEqual([{ kind: 'A' }, { kind: 'B' }]);
    expect(readManifests('kind: List\nitems: [1]\n', 'f.yaml').problems).toEqual([
      'f.yaml:1:1: must be a manifest, but is a number',
    ]);
    expect(readManifests('kind: List\nspec: {}\n', 'f.yaml').manifests).toEqual([{ kind: 'List', spec: {} }]);
  });

  test.each([
    ['a: [1\nb: 2\n', /^f\.yaml:\d+:\d+: /],
    ['a: 1\na: 2\n', /^f\.yaml:2:1: .*unique/],
    ['kind: A\n---\njust text\n', /^f\.yaml:3:1: must be a manifest, but is a string$/],
    ['kind: *nobody\n', /^f\.yaml:1:1: .*nobody/],
  ])('%j is a problem with its place', (text, problem) => {
    const { problems } = readManifests(text, 'f.yaml');
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(problem);
  });

  test('what is right is read although something else is wrong', () => {
    expect(readManifests('kind: A\n---\na: [\n---\nkind: B\n', 'f.yaml')).toMatchObject({
      manifests: [{ kind: 'A' }, { kind: 'B' }],
    });
  });

  test('an anchor may be used again, a bomb may not', () => {
    expect(readManifests('a: &x {k: 1}\nb: *x\n', 'f.yaml').manifests).toEqual([{ a: { k: 1 }, b: { k: 1 } }]);
    const levels = Array.from({ length: 9 }, (_, i) => `l${i + 1}: &l${i + 1} [${Array(9).fill(`*l${i}`).join(', ')}]`);
    const bomb = readManifests(['l0: &l0 [a]', ...levels].join('\n'), 'f.yaml');
    expect(bomb.manifests).toEqual([]);
    expect(bomb.problems).toEqual([expect.stringMatching(/^f\.yaml:1:1: .*alias/)]);
  });

  test.each([
    ['['.repeat(100_000)],
    ['- '.repeat(5_000)],
    ['? '.repeat(5_000)],
    ['{a: '.repeat(1_000)],
    [`${'['.repeat(65)}${']'.repeat(65)}`],
  ])('endless nesting is a problem, not a crash (%#)', (text) => {
    expect(readManifests(text, 'f.yaml').problems).toEqual([
      expect.stringMatching(/^f\.yaml:1:\d+: must not be nested deeper than 64$/),
    ]);
  });

  test.each([
    ['a: "\0"\n', 'f.yaml:1:5: contains a NUL byte; a manifest must be text'],
    ['kind: A\nspec: !!js/function "x"\n', expect.stringMatching(/^f\.yaml:2:7: Unresolved tag/)],
    [
      '- a\n'.repeat(200_000),
      'f.yaml:100001:1: the manifests up to here already exceed what one change can hold; publish them as several changes',
    ],
    [
      'x: 0\ny:\n' + Array.from({ length: 10_001 }, (_, i) => `  k${i}: 1\n`).join(''),
      'f.yaml:3:3: a mapping must not have more than 10000 keys',
    ],
  ])(
    'what nobody means, and what would take all time and memory, is a problem with its place (%#)',
    (text, problem) => {
      expect(readManifests(text, 'f.yaml')).toEqual({ manifests: [], places: [], problems: [problem] });
    },
  );

  test('of endless problems the first are told', () => {
    expect(
      readManifests(Array.from({ length: 1_000 }, (_, i) => `- &a${i} *b${i}\n`).join(''), 'f.yaml').problems,
    ).toHaveLength(50);
  });

  test('a manifest that holds itself is refused when it is checked', () => {
    const [manifest] = readManifests('kind: File\nspec: &s {again: [*s, *s]}\n', 'f.yaml').manifests;
    expect(checkManifest(manifest, 'f.yaml:1')).toMatchObject({ ok: false, reasons: [{ code: 'too-deep' }] });
  });

  test('__proto__ stays a field', () => {
    const [manifest] = readManifests('{"__proto__": {"polluted": 1}}', 'f.yaml').manifests;
    expect(Object.keys(manifest ?? {})).toEqual(['__proto__']);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});
