import fc from 'fast-check';
import { MAX_CHANGE_BYTES, readChange, utf8Bytes } from './index.js';
import { manifestOf } from './manifest.fixture.js';

const file = (name: string, spec: object = {}): object =>
  manifestOf('File', { path: `/etc/${name}`, content: '', ...spec }, { name });
const codes = (text: string): unknown => {
  const read = readChange(text);
  return read.ok ? [] : read.reasons.map(({ fragment, field, code }) => [fragment, field, code]);
};

describe('readChange', () => {
  test('reads a change with all fields', () => {
    const body = {
      apply: [file('a')],
      delete: [{ kind: 'File', name: 'b' }],
      message: 'm',
      author: 'a',
      strategy: { maxFailures: 2 },
      retryOf: 'c7',
    };
    expect(readChange(JSON.stringify(body))).toEqual({
      ok: true,
      change: {
        ...body,
        apply: [{ kind: 'File', name: 'a', labels: {}, spec: { nodeSelector: {}, path: '/etc/a', content: '' } }],
      },
    });
  });

  test('reads one bare manifest', () => {
    expect(readChange(JSON.stringify(file('a')))).toMatchObject({
      ok: true,
      change: { apply: [{ kind: 'File', name: 'a' }], delete: [], message: '', author: '', strategy: {}, retryOf: '' },
    });
  });

  test.each([
    ['{"apply": [}', 'line 1, column 12'],
    ['', 'line 1, column 1'],
    ['{\n  "a": 1,\n}', 'line 3, column 1'],
    ['{"a": tru}', 'line 1, column 7'],
    ['{"a": 1} x', 'line 1, column 10'],
    ['[1, 2', 'line 1, column 6'],
    ['{"a" 1}', 'line 1, column 6'],
    ["{'a': 1}", 'line 1, column 2'],
    ['[01]', 'line 1, column 3'],
    ['["a\nb"]', 'line 1, column 2'],
    ['{"a": 1]', 'line 1, column 8'],
  ])('reports that %j is not JSON from %s on', (text, place) => {
    expect(readChange(text)).toMatchObject({
      reasons: [{ fragment: '', code: 'not-json', message: `the body is not JSON: ${place}` }],
    });
  });

  test.each([
    ['JSON that is not an object', '[]', [['', '', 'wrong-type']]],
    ['an empty change', '{}', [['', '', 'empty-change']]],
    ['a change with empty lists', '{"apply": [], "delete": [], "message": "x"}', [['', '', 'empty-change']]],
    ['an unknown field', '{"aply": []}', [['', 'aply', 'unknown-field']]],
    ['a list of the wrong type', '{"apply": {}}', [['', 'apply', 'wrong-type']]],
    [
      'a strategy with unknown fields',
      `{"delete": [{"kind": "File", "name": "a"}], "strategy": {"maxFailures": "1", "x": 1}}`,
      [
        ['', 'strategy.x', 'unknown-field'],
        ['', 'strategy.maxFailures', 'wrong-type'],
      ],
    ],
    ['a rollback of an invalid id', '{"rollbackOf": "7"}', [['', 'rollbackOf', 'bad-change']]],
    [
      'a rollback that lists fragments',
      '{"delete": [{"kind": "File", "name": "a"}], "rollbackOf": "c7"}',
      [['', 'rollbackOf', 'forbidden']],
    ],
    [
      'a retry of an invalid id',
      '{"delete": [{"kind": "File", "name": "a"}], "retryOf": "7"}',
      [['', 'retryOf', 'bad-change']],
    ],
    [
      'a bad reference',
      '{"delete": [{"kind": "file", "name": "A", "x": 1}, 7]}',
      [
        ['delete[0]', 'x', 'unknown-field'],
        ['delete[0]', 'kind', 'bad-kind'],
        ['delete[0]', 'name', 'bad-name'],
        ['delete[1]', '', 'wrong-type'],
      ],
    ],
    [
      'an incomplete bare manifest',
      '{"kind": "File"}',
      [
        ['manifest', 'apiVersion', 'required'],
        ['manifest', 'metadata', 'required'],
        ['manifest', 'spec', 'required'],
      ],
    ],
    ['half a surrogate pair', String.raw`{"message": "\ud800"}`, [['', 'message', 'not-unicode']]],
    [
      'a pace that no fleet can have',
      '{"delete": [{"kind": "File", "name": "a"}], "strategy": {"maxUnavailable": "0%"}}',
      [['', 'strategy.maxUnavailable', 'bad-percent']],
    ],
    ['a number that overflows', '{"strategy": {"maxFailures": 1e999}}', [['', 'strategy.maxFailures', 'wrong-type']]],
  ])('refuses %s', (_name, text, reasons) => {
    expect(codes(text)).toEqual(reasons);
  });

  test('refuses a fragment that appears twice, or is both applied and deleted', () => {
    expect(
      codes(
        JSON.stringify({
          apply: [file('a'), file('b'), file('a')],
          delete: [
            { kind: 'File', name: 'b' },
            { kind: 'Pool', name: 'a' },
          ],
        }),
      ),
    ).toEqual([
      ['File/a', 'apply[2]', 'duplicate'],
      ['File/b', 'delete[0]', 'duplicate'],
    ]);
  });

  test('reports every error in every part at once', () => {
    expect(
      codes(
        JSON.stringify({ apply: [file('a', { path: 'x' }), { kind: 'Nix' }, file('b')], delete: [{}], message: 1 }),
      ),
    ).toEqual([
      ['', 'message', 'wrong-type'],
      ['File/a', 'spec.path', 'bad-path'],
      ['apply[1]', 'apiVersion', 'required'],
      ['apply[1]', 'metadata', 'required'],
      ['apply[1]', 'spec', 'required'],
      ['apply[1]', 'kind', 'unknown-kind'],
      ['delete[0]', 'kind', 'required'],
      ['delete[0]', 'name', 'required'],
    ]);
  });

  test('refuses what is too large, in bytes', () => {
    const body = (length: number): string => JSON.stringify(file('a', { content: 'ä'.repeat(length) }));
    expect(codes(body(MAX_CHANGE_BYTES / 2))).toEqual([['', '', 'too-large']]);
    expect(codes(body(MAX_CHANGE_BYTES / 2 - 200))).toEqual([]);
  });

  test('refuses deep nesting, however deep', () => {
    const deep = (depth: number): string => `{"apply": ${'['.repeat(depth)}${']'.repeat(depth)}}`;
    expect(codes(deep(63))).toEqual([['apply[0]', '', 'wrong-type']]);
    expect(codes(deep(64))).toMatchObject([['', expect.stringContaining('apply[0]'), 'too-deep']]);
    expect(codes(deep(400_000))).toMatchObject([['', expect.stringContaining('apply[0]'), 'too-deep']]);
  });

  test('answers any JSON and any text with a change or with reasons, and never throws', () => {
    const some = (text: string): boolean => {
      const read = readChange(text);
      return read.ok || read.reasons.length > 0;
    };
    const key = fc.constantFrom(
      'apply',
      'delete',
      'kind',
      'metadata',
      'spec',
      'name',
      'nodeSelector',
      'matchExpressions',
      '__proto__',
      'constructor',
      'File',
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 6 },
        fc.jsonValue(),
        key,
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(key, tie('tree'), { maxKeys: 4 }),
      ),
    }));
    fc.assert(fc.property(tree, (value) => some(JSON.stringify(value))));
    fc.assert(fc.property(fc.string({ unit: 'binary' }), some));
  });

  test('reports the place of a JSON error before the end of the text, and the text up to it is not JSON either', () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), (text, cut) => {
        const part = text.slice(0, cut % text.length);
        const read = readChange(part);
        if (!read.ok && read.reasons[0]?.code === 'not-json') {
          const column = Number(/column (\d+)/.exec(read.reasons[0].message)?.[1]);
          expect(column).toBeGreaterThan(0);
          expect(column).toBeLessThanOrEqual(part.length + 1);
        }
      }),
    );
  });
});

test('utf8Bytes counts the bytes of UTF-8', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => expect(utf8Bytes(text)).toBe(Buffer.byteLength(text))),
  );
});
