import { checkManifest, ManifestSource, readManifests } from './index.js';

const problemsOf = (text: string): readonly string[] =>
  readManifests(text).problems.map(({ line, column, message }) => `${line}:${column}: ${message}`);

describe('readManifests', () => {
  test('reads several documents, and skips empty ones', () => {
    const text = '# first\nkind: A\n---\n---\n\nkind: B\nspec: {mode: "0644", on_: "yes"}\n---\n# nothing\n';
    expect(readManifests(text)).toEqual({
      manifests: [{ kind: 'A' }, { kind: 'B', spec: { mode: '0644', on_: 'yes' } }],
      sources: [expect.any(ManifestSource), expect.any(ManifestSource)],
      problems: [],
    });
    expect(readManifests(text).sources.map(({ start }) => start.line)).toEqual([2, 6]);
  });

  test('reads manifests of Kubernetes as kubectl does, and refuses such values elsewhere', () => {
    const text = (kind: string, extra = ''): string => `
kind: ${kind}
metadata: {name: x}
spec:
  objects:
  - mode: 0400
    go: 0o17
    on: yes
    text: "0400"
    time: 12:30
    <<: {a: 1}
    template: '{{ node.name }}'
${extra}---
kind: File
spec: {objects: ["0400"]}
`;
    expect(readManifests(text('KubeObjects'))).toMatchObject({
      manifests: [
        {
          kind: 'KubeObjects',
          spec: {
            objects: [
              { mode: 0o400, go: 0o17, true: true, a: 1, text: '0400', time: '12:30', template: '{{ node.name }}' },
            ],
          },
        },
        { kind: 'File', spec: { objects: ['0400'] } },
      ],
      problems: [],
    });
    const places = (written: string): readonly string[] =>
      readManifests(written).problems.map(({ line, message }) => `${line} ${message.split(' ')[0]}`);
    expect(places(text('KubeObjects', '  other: {objects: [no]}\n'))).toEqual(['13 no']);
    expect(places(text('Other'))).toEqual(['6 0400', '8 on', '8 yes', '11 merge']);
    // The same in a List, and with what YAML of kubectl does not allow.
    expect(
      readManifests('kind: List\nitems: [{kind: A}, {kind: KubeObjects, spec: {objects: [{a: off}]}}]\n').manifests,
    ).toEqual([{ kind: 'A' }, { kind: 'KubeObjects', spec: { objects: [{ a: false }] } }]);
    expect(problemsOf('kind: KubeObjects\nspec: {objects: [{<<: 3}]}\n')).toEqual([
      '1:1: Merge sources must be maps or map aliases',
    ]);
  });

  test('reads JSON, a list of manifests, and tabs in it', () => {
    expect(readManifests('{\n\t"kind": "A",\n\t"spec": {"x": [1, 2]}\n}\n').manifests).toEqual([
      { kind: 'A', spec: { x: [1, 2] } },
    ]);
    expect(readManifests('[{"kind": "A"}, {"kind": "B"}]').manifests).toEqual([{ kind: 'A' }, { kind: 'B' }]);
  });

  test('reads the items of a List, and of nothing that only looks like one', () => {
    const list = 'apiVersion: v1\nkind: List\nitems:\n- kind: A\n- kind: B\n';
    expect(readManifests(list).manifests).toEqual([{ kind: 'A' }, { kind: 'B' }]);
    expect(problemsOf('kind: List\nitems: [1]\n')).toEqual(['2:9: must be a manifest, but is a number']);
    expect(readManifests('kind: Lists\nitems: []\n').manifests).toEqual([{ kind: 'Lists', items: [] }]);
  });

  test('reads a List in a List, and says what is wrong with a List', () => {
    const nested = 'kind: List\nitems:\n- kind: A\n- {kind: List, items: [{kind: B}, {kind: List, items: []}]}\n';
    expect(readManifests(nested).manifests).toEqual([{ kind: 'A' }, { kind: 'B' }]);
    expect(readManifests(nested).sources.map(({ start }) => [start.line, start.column])).toEqual([
      [3, 3],
      [4, 24],
    ]);
    expect(readManifests('- kind: List\n  items: [{kind: A}]\n').manifests).toEqual([{ kind: 'A' }]);
    expect(problemsOf('kind: A\n---\nkind: List\nspec: {}\n')).toEqual([
      '3:1: a List must have items: a list of manifests',
    ]);
    expect(problemsOf('&all\nkind: List\nitems: [*all, *all]\n')).toEqual([
      '3:9: a List must not contain itself',
      '3:15: a List must not contain itself',
    ]);
    expect(problemsOf('- [{kind: A}]\n')).toEqual(['1:3: must be a manifest, but is a list']);
  });

  test.each([
    ['a: [1\nb: 2\n', /^\d+:\d+: /],
    ['a: 1\na: 2\n', /^2:1: .*unique/],
    ['kind: A\n---\njust text\n', /^3:1: must be a manifest, but is a string$/],
    ['kind: *nobody\n', /^1:7: .*nobody/],
    ['kind: &a A\n---\nkind: B\nspec:\n  x: &b 1\n  z: [*b, *a]\n', /^6:11: .*\ba$/],
  ])('reports %j with its place', (text, problem) => {
    const problems = problemsOf(text);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(problem);
  });

  test('reads valid parts although another is invalid', () => {
    expect(readManifests('kind: A\n---\na: [\n---\nkind: B\n')).toMatchObject({
      manifests: [{ kind: 'A' }, { kind: 'B' }],
    });
  });

  test('accepts a repeated anchor, and refuses a YAML bomb', () => {
    expect(readManifests('a: &x {k: 1}\nb: *x\n').manifests).toEqual([{ a: { k: 1 }, b: { k: 1 } }]);
    const levels = Array.from({ length: 9 }, (_, i) => `l${i + 1}: &l${i + 1} [${Array(9).fill(`*l${i}`).join(', ')}]`);
    const bomb = readManifests(['l0: &l0 [a]', ...levels].join('\n'));
    expect(bomb.manifests).toEqual([]);
    expect(bomb.problems).toMatchObject([{ line: 1, column: 1, message: expect.stringMatching(/alias/) as string }]);
  });

  test.each([
    ['['.repeat(100_000)],
    ['- '.repeat(5_000)],
    ['? '.repeat(5_000)],
    ['{a: '.repeat(1_000)],
    [`${'['.repeat(65)}${']'.repeat(65)}`],
  ])('reports endless nesting, and does not crash (%#)', (text) => {
    expect(problemsOf(text)).toEqual([expect.stringMatching(/^1:\d+: must not be nested deeper than 64$/)]);
  });

  test.each([
    ['a: "\0"\n', '1:5: contains a NUL byte; a manifest must be text'],
    ['kind: A\nspec: !!js/function "x"\n', expect.stringMatching(/^2:7: Unresolved tag/)],
    [
      '- a\n'.repeat(200_000),
      '100001:1: the manifests up to here already exceed what one change can hold; publish them as several changes',
    ],
    [
      'x: 0\ny:\n' + Array.from({ length: 10_001 }, (_, i) => `  k${i}: 1\n`).join(''),
      '3:3: a mapping must not have more than 10000 keys',
    ],
  ])(
    'reports input that is meaningless, or would take too much time and memory, with its place (%#)',
    (text, problem) => {
      expect(readManifests(text)).toMatchObject({ manifests: [], sources: [] });
      expect(problemsOf(text)).toEqual([problem]);
    },
  );

  test('reports only the first of very many problems', () => {
    expect(readManifests(Array.from({ length: 1_000 }, (_, i) => `- &a${i} *b${i}\n`).join('')).problems).toHaveLength(
      50,
    );
  });

  test('refuses a manifest that contains itself when it is checked', () => {
    const [manifest] = readManifests('kind: File\nspec: &s {again: [*s, *s]}\n').manifests;
    expect(checkManifest(manifest, '1')).toMatchObject({ ok: false, reasons: [{ code: 'too-deep' }] });
  });

  test('keeps __proto__ as a field', () => {
    const [manifest] = readManifests('{"__proto__": {"polluted": 1}}').manifests;
    expect(Object.keys(manifest ?? {})).toEqual(['__proto__']);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});

describe('the source of a manifest', () => {
  const TEXT = `# a comment
kind: File
metadata: { name: motd, labels: {"a.b/c": x} }
spec:
  path: /etc/motd
  content: |
    one
    two
  ports: [80, {name: "web"}]
---
kind: List
items:
  - kind: Probe
    spec: {}
`;
  const found = (field: string, what?: 'key' | 'value', index = 0): string => {
    const { line, column, length } = readManifests(TEXT).sources[index]?.find(field, what) ?? { line: 0 };
    return (TEXT.split('\n')[line - 1] ?? '').slice((column ?? 1) - 1, (column ?? 1) - 1 + (length ?? 0));
  };

  test.each([
    ['kind', 'File'],
    ['metadata.name', 'motd'],
    ['metadata.labels["a.b/c"]', 'x'],
    ['spec.path', '/etc/motd'],
    ['spec.content', '|'],
    ['spec.ports[0]', '80'],
    ['spec.ports[1].name', '"web"'],
    // A value with more than one word is found by its key, and a missing field by its parent.
    ['spec.ports', 'ports'],
    ['spec.mode', 'spec'],
    ['apiVersion', 'kind: File'],
  ])('finds the value of %s', (field, text) => {
    expect(found(field)).toBe(text);
  });

  test('finds keys, and fields of the items of a List', () => {
    expect([found('spec.path', 'key'), found('kind', 'value', 1), found('spec.file', 'value', 1)]).toEqual([
      'path',
      'Probe',
      'spec',
    ]);
  });
});
