/** A file for `-f`, with the expected exit code and output. */
export interface OddFile {
  readonly content: Buffer | string;
  readonly code: 2 | 3;
  readonly output: RegExp;
}

const GOOD =
  'apiVersion: sluice.dev/v1alpha1\nkind: File\nmetadata: {name: a}\nspec:\n  nodeSelector: {}\n  path: /etc/a\n  content: x\n';
const bomb = (): string =>
  [
    'l0: &l0 [lol]',
    ...Array.from({ length: 10 }, (_, i) => `l${i + 1}: &l${i + 1} [${Array(9).fill(`*l${i}`).join(', ')}]`),
  ].join('\n');
const MUCH = /:\d+:\d+: the manifests up to here already exceed what one change can hold/;

/** Odd files, by name. Created on demand, because some are large. */
export const ODD_FILES: Readonly<Record<string, () => OddFile>> = {
  'a billion laughs': () => ({ content: bomb(), code: 3, output: /odd\.yaml:1:1: .*alias/ }),
  'an anchor that contains itself': () => ({
    content: 'a: &a [*a]\n',
    code: 3,
    output: /odd\.yaml:1 .*nested deeper than 64/,
  }),
  'an alias without an anchor': () => ({
    content: GOOD.replace('content: x', 'content: *x'),
    code: 3,
    output: /odd\.yaml:\d+:\d+: .*alias/,
  }),
  'too many aliases': () => ({
    content: Array.from({ length: 50_000 }, (_, i) => `- &a${i + 1} *a${i}\n`).join(''),
    code: 3,
    output: /odd\.yaml:1:\d+: An alias/,
  }),
  '100 MB': () => ({
    content: Buffer.alloc(100 * 1024 * 1024, '# comment\n'),
    code: 3,
    output: /odd\.yaml is larger than 4096 KiB/,
  }),
  'a million entries': () => ({ content: '- a\n'.repeat(1_000_000), code: 3, output: MUCH }),
  'half a million fields': () => ({ content: 'a: 1\n'.repeat(500_000), code: 3, output: MUCH }),
  'half a million documents': () => ({ content: '---\n'.repeat(500_000), code: 3, output: MUCH }),
  'too many keys': () => ({
    content: Array.from({ length: 20_000 }, (_, i) => `k${i}: 1\n`).join(''),
    code: 3,
    output: /odd\.yaml:1:1: .*more than 10000 keys/,
  }),
  'unclosed lists': () => ({
    content: `a: ${'['.repeat(100_000)}`,
    code: 3,
    output: /odd\.yaml:1:\d+: .*nested deeper than 64/,
  }),
  'unclosed objects': () => ({
    content: '{'.repeat(100_000),
    code: 3,
    output: /odd\.yaml:1:\d+: .*nested deeper than 64/,
  }),
  'deep indentation': () => ({
    content: Array.from({ length: 1_000 }, (_, i) => `${' '.repeat(i)}a:\n`).join(''),
    code: 3,
    output: /odd\.yaml:\d+:\d+: .*nested deeper than 64/,
  }),
  'a tab for indentation': () => ({
    content: GOOD.replace('  path', '\tpath'),
    code: 3,
    output: /odd\.yaml:6:1: Tabs/,
  }),
  'a duplicate key': () => ({ content: `${GOOD}  path: /etc/b\n`, code: 3, output: /odd\.yaml:8:3: .*unique/ }),
  'a NUL byte in text': () => ({
    content: GOOD.replace('x\n', '"a\0b"\n'),
    code: 3,
    output: /odd\.yaml:7:14: contains a NUL byte/,
  }),
  'only NUL bytes': () => ({ content: Buffer.alloc(4_096), code: 3, output: /odd\.yaml:1:1: contains a NUL byte/ }),
  'Latin-1': () => ({
    content: Buffer.from(GOOD.replace('content: x', 'content: "ÿ"'), 'latin1'),
    code: 3,
    output: /odd\.yaml:7: not valid UTF-8/,
  }),
  'UTF-16': () => ({
    content: Buffer.from(`\ufeff${GOOD}`, 'utf16le'),
    code: 3,
    output: /odd\.yaml:1: not valid UTF-8/,
  }),
  'a language-specific tag': () => ({
    content: GOOD.replace('content: x', 'content: !!js/function "x"'),
    code: 3,
    output: /odd\.yaml:7:12: Unresolved tag/,
  }),
  'a merge key': () => ({
    content: `${GOOD}  <<: {x: 1}\n`,
    code: 3,
    output: /odd\.yaml:\d+:\d+: merge keys are read by kubectl/,
  }),
  'the key __proto__': () => ({
    content: `${GOOD}  __proto__: {x: 1}\n`,
    code: 3,
    output: /spec\.__proto__.*odd\.yaml:\d+:\d+/,
  }),
  'a Pod': () => ({
    content: 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: []}\n',
    code: 3,
    output: /Pod\/web.*unknown|unknown kind.*odd\.yaml:1/,
  }),
  nothing: () => ({ content: '', code: 2, output: /odd\.yaml: contains no manifest/ }),
  'only a comment and document markers': () => ({
    content: '\ufeff# nothing\r\n---\r\n',
    code: 2,
    output: /odd\.yaml: contains no manifest/,
  }),
};

/** Files that look odd but are valid. The command only fails because there is no server. */
export const GOOD_FILES: Readonly<Record<string, Buffer>> = {
  'a byte order mark': Buffer.from(`\ufeff${GOOD}`),
  CRLF: Buffer.from(GOOD.replaceAll('\n', '\r\n')),
};
