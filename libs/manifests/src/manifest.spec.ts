import Ajv from 'ajv';
import { checkManifest, checkRendered, KINDS, manifestSchemas } from './index.js';
import { BAD, GOOD, manifestOf } from './manifest.fixture.js';

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const reasonsOf = (document: unknown): unknown => {
  const checked = checkManifest(document, 'place');
  return checked.ok ? [] : checked.reasons.map(({ field, code }) => ({ field, code }));
};

describe('checkManifest', () => {
  test.each(GOOD)('takes %s', (_name, manifest) => {
    expect(reasonsOf(plain(manifest))).toEqual([]);
  });

  test.each(BAD)('refuses %s', (_name, manifest, field, code) => {
    expect(reasonsOf(plain(manifest))).toEqual([{ field, code }]);
  });

  test('keeps the spec as written, its selector too', () => {
    const manifest = manifestOf('File', { path: '/a', content: '{{ node.name }}' }, { name: 'a', labels: { b: 'c' } });
    expect(checkManifest(manifest, 'place')).toEqual({
      ok: true,
      fragment: { kind: 'File', name: 'a', labels: { b: 'c' }, spec: manifest.spec },
    });
  });

  test('says everything at once, and names the fragment', () => {
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

  test('takes base64 only whole', () => {
    const spec = { path: '/a', encoding: 'base64', content: 'AAE' };
    expect(checkManifest(manifestOf('File', spec), 'f')).toMatchObject({
      reasons: [
        { field: 'spec.content', code: 'bad-base64', message: expect.stringContaining('multiple of 4') as string },
      ],
    });
  });

  test('names the place of what has no usable name', () => {
    expect(checkManifest(manifestOf('File', { path: 'a', content: '' }, { name: 'A B' }), 'apply[2]')).toMatchObject({
      reasons: [
        { fragment: 'apply[2]', field: 'metadata.name' },
        { fragment: 'apply[2]', field: 'spec.path' },
      ],
    });
  });

  test('the absence of a selector is explained', () => {
    expect(checkManifest(manifestOf('File', { path: '/a', content: '', nodeSelector: undefined }), 'p')).toMatchObject({
      reasons: [{ message: expect.stringContaining('{} means every node') as string }],
    });
  });

  test('another operator is answered with the four', () => {
    const nodeSelector = { matchExpressions: [{ key: 'a', operator: 'Gt' }] };
    expect(checkManifest(manifestOf('File', { path: '/a', content: '', nodeSelector }), 'p')).toMatchObject({
      reasons: [{ message: expect.stringContaining('In, NotIn, Exists, DoesNotExist') as string }],
    });
  });

  test('an unknown kind is answered with the known ones', () => {
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
    'the field %s is as unknown as any other, and harms nobody',
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

  test('a label named __proto__ is no label key', () => {
    const metadata: unknown = JSON.parse('{"name": "a", "labels": {"__proto__": "b"}}');
    expect(reasonsOf(manifestOf('File', { path: '/a', content: '' }, metadata as object))).toEqual([
      { field: 'metadata.labels.__proto__', code: 'bad-label-key' },
    ]);
  });

  test.each([{ document: 'text' }, { document: 7 }, { document: null }, { document: [] }])(
    '$document is no manifest',
    ({ document }) => {
      expect(reasonsOf(document)).toEqual([{ field: '', code: 'wrong-type' }]);
    },
  );
});

describe('manifestSchemas', () => {
  const ajv = new Ajv({ strict: true, strictRequired: false, strictTypes: false, allErrors: true });
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

  test('there is one for every kind', () => {
    expect(Object.keys(schemas)).toEqual(KINDS.map(({ name }) => name));
  });

  test.each(GOOD)('take %s', (_name, manifest) => {
    expect(accepts(manifest)).toBe(true);
  });

  test.each(BAD)('refuse %s', (_name, manifest) => {
    expect(accepts(manifest)).toBe(false);
  });
});

describe('checkRendered', () => {
  test('now the form of what a template made must hold', () => {
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

  test('a selector has no place in a config', () => {
    expect(
      checkRendered({ kind: 'File', name: 'a', spec: { nodeSelector: {}, path: '/a', content: '' } }),
    ).toMatchObject([{ field: 'spec.nodeSelector', code: 'unknown-field' }]);
  });
});
