import Ajv from 'ajv';
import { checkManifest, checkRendered, KINDS, manifestSchemas } from './index.js';
import { BAD, GOOD, manifestOf } from './manifest.fixture.js';

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const reasonsOf = (document: unknown): unknown => {
  const checked = checkManifest(document, 'place');
  return checked.ok ? [] : checked.reasons.map(({ field, code }) => ({ field, code }));
};

describe('checkManifest', () => {
  test.each(GOOD)('accepts %s', (_name, manifest) => {
    expect(reasonsOf(plain(manifest))).toEqual([]);
  });

  test.each(BAD)('refuses %s', (_name, manifest, field, code) => {
    expect(reasonsOf(plain(manifest))).toEqual([{ field, code }]);
  });

  test.each([
    [
      'Pool',
      { applyTimeout: '1s' },
      'spec.applyTimeout',
      /^must be at least 2s, but is 1s: a node has half of it .* for the default$/,
    ],
    [
      'Probe',
      { tcp: { address: 'a:1' }, interval: '10ms' },
      'spec.interval',
      /^must be at least 1s, but is 10ms: a probe that runs more often/,
    ],
  ])('refuses a time in %s that is too short, and says why and what to do', (kind, spec, field, message) => {
    expect(checkManifest(manifestOf(kind, { nodeSelector: {}, ...spec }), 'place')).toMatchObject({
      ok: false,
      reasons: [{ field, code: 'bad-duration', message: expect.stringMatching(message) as string }],
    });
  });

  test('names the word that a field may have instead of an object', () => {
    const message = 'must be count or an object, but is a string';
    expect(checkManifest(manifestOf('Pool', { nodeSelector: {}, silentNodes: 'ignore' }), 'place')).toMatchObject({
      ok: false,
      reasons: [{ field: 'spec.silentNodes', message }],
    });
  });

  test('keeps the spec as written, its selector too', () => {
    const manifest = manifestOf('File', { path: '/a', content: '{{ node.name }}' }, { name: 'a', labels: { b: 'c' } });
    expect(checkManifest(manifest, 'place')).toEqual({
      ok: true,
      fragment: { kind: 'File', name: 'a', labels: { b: 'c' }, spec: manifest.spec },
    });
  });

  test('reports every error at once, and names the fragment', () => {
    const checked = checkManifest(
      manifestOf('File', { path: 'a', mode: 7, x: 1, nodeSelector: undefined }, { name: 'a' }),
      'place',
    );
    expect(checked.ok ? [] : checked.reasons.map(({ fragment, field }) => `${fragment} ${field}`).sort()).toEqual([
      'File/a spec.content',
      'File/a spec.mode',
      'File/a spec.nodeSelector',
      'File/a spec.path',
      'File/a spec.x',
    ]);
  });

  test('refuses incomplete base64', () => {
    const spec = { path: '/a', encoding: 'base64', content: 'AAE' };
    expect(checkManifest(manifestOf('File', spec), 'f')).toMatchObject({
      reasons: [
        { field: 'spec.content', code: 'bad-base64', message: expect.stringContaining('multiple of 4') as string },
      ],
    });
  });

  test('reports the position if there is no valid name', () => {
    expect(checkManifest(manifestOf('File', { path: 'a', content: '' }, { name: 'A B' }), 'apply[2]')).toMatchObject({
      reasons: [
        { fragment: 'apply[2]', field: 'metadata.name' },
        { fragment: 'apply[2]', field: 'spec.path' },
      ],
    });
  });

  test('explains a missing selector', () => {
    expect(checkManifest(manifestOf('File', { path: '/a', content: '', nodeSelector: undefined }), 'p')).toMatchObject({
      reasons: [{ message: expect.stringContaining('{} means every node') as string }],
    });
  });

  test('lists the four operators if another one is used', () => {
    const nodeSelector = { matchExpressions: [{ key: 'a', operator: 'Gt' }] };
    expect(checkManifest(manifestOf('File', { path: '/a', content: '', nodeSelector }), 'p')).toMatchObject({
      reasons: [{ message: expect.stringContaining('In, NotIn, Exists, DoesNotExist') as string }],
    });
  });

  test('lists the known kinds for an unknown one', () => {
    expect(checkManifest(manifestOf('Files', {}), 'p')).toMatchObject({
      reasons: [
        {
          fragment: 'Files/x',
          field: 'kind',
          code: 'unknown-kind',
          message: expect.stringContaining('File, Directory, Link, Probe') as string,
        },
      ],
    });
    expect(reasonsOf(manifestOf('constructor', {}))).toEqual([{ field: 'kind', code: 'unknown-kind' }]);
  });

  test.each([
    ['path', '/{{ node.labels. }}', 'unknown-template-key'],
    ['content', '{{ node.name', 'bad-template'],
    ['content', '{{ x }}', 'bad-template'],
    ['path', '/{{ node.name }}/../x', 'bad-path'],
  ])('the template of %s: %s is refused as %s', (field, text, code) => {
    expect(reasonsOf(manifestOf('File', { path: '/a', content: '', [field]: text }))).toEqual([
      { field: `spec.${field}`, code },
    ]);
  });

  test.each(['__proto__', 'constructor', 'hasOwnProperty', 'toString'])(
    'treats %s as an unknown field, without side effects',
    (key) => {
      const spec = `{"nodeSelector": {"${key}": {"polluted": 1}}, "path": "/a", "content": "", "${key}": {"polluted": 1}}`;
      const document: unknown = JSON.parse(
        `{"apiVersion": "sluice.dev/v1alpha1", "kind": "File", "metadata": {"name": "a", "labels": {"a": "b"}}, "spec": ${spec}}`,
      );
      expect(reasonsOf(document)).toEqual([
        { field: `spec.${key}`, code: 'unknown-field' },
        { field: `spec.nodeSelector.${key}`, code: 'unknown-field' },
      ]);
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    },
  );

  test('refuses __proto__ as a label key', () => {
    const metadata: unknown = JSON.parse('{"name": "a", "labels": {"__proto__": "b"}}');
    expect(reasonsOf(manifestOf('File', { path: '/a', content: '' }, metadata as object))).toEqual([
      { field: 'metadata.labels.__proto__', code: 'bad-label-key' },
    ]);
  });

  test.each([{ document: 'text' }, { document: 7 }, { document: null }, { document: [] }])(
    'refuses $document as a manifest',
    ({ document }) => {
      expect(reasonsOf(document)).toEqual([{ field: '', code: 'wrong-type' }]);
    },
  );
});

describe('manifestSchemas', () => {
  const ajv = new Ajv({
    strict: true,
    strictRequired: false,
    strictTypes: false,
    strictTuples: false,
    allErrors: true,
  });
  ajv.addFormat('regex', (text) => {
    try {
      return new RegExp(text) instanceof RegExp;
    } catch {
      return false;
    }
  });
  const schemas = manifestSchemas();
  const validators = new Map(Object.entries(schemas).map(([kind, schema]) => [kind, ajv.compile(schema)]));
  const accepts = (manifest: { readonly kind?: unknown }): boolean =>
    validators.get(String(manifest.kind))?.(plain(manifest)) === true;

  test('exist for every kind', () => {
    expect(Object.keys(schemas)).toEqual(KINDS.map(({ name }) => name));
  });

  test.each(GOOD)('accept %s', (_name, manifest) => {
    expect(accepts(manifest)).toBe(true);
  });

  test.each(BAD)('refuse %s', (_name, manifest) => {
    expect(accepts(manifest)).toBe(false);
  });
});

describe('checkRendered', () => {
  test('checks the form of what templates produced', () => {
    expect(
      checkRendered({ kind: 'File', name: 'a', spec: { path: 'x/y', content: '{{ not a template any more' } }),
    ).toEqual([{ fragment: 'File/a', field: 'spec.path', code: 'bad-path', message: 'must be absolute', nodes: [] }]);
    expect(checkRendered({ kind: 'File', name: 'a', spec: { path: '/{{ x', content: '' } })).toEqual([]);
  });

  test.each([
    ['Pool', 'unknown-kind'],
    ['Nothing', 'unknown-kind'],
  ])('a node has no %s', (kind, code) => {
    expect(checkRendered({ kind, name: 'a', spec: {} })).toMatchObject([{ code }]);
  });

  test('a config must not contain a selector', () => {
    expect(
      checkRendered({ kind: 'File', name: 'a', spec: { nodeSelector: {}, path: '/a', content: '' } }),
    ).toMatchObject([{ field: 'spec.nodeSelector', code: 'unknown-field' }]);
  });
});
