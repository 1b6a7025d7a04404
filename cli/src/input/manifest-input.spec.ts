import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cli, type FakeFleet } from '../fakes.fixture.js';

const APPLY = ['apply', '-f', '-'];

describe('a manifest with errors', () => {
  test('shows the line of each error with a mark, and suggests a spelling', async () => {
    const text = `apiVersion: sluice.dev/v1alpha1
kind: File
metadata: { name: motd }
spec:
  nodeSelector: {}
  path: etc/motd
  contents: hello
`;
    const { exit, err } = await cli(APPLY, {}, {}, text);
    expect(exit).toBe(3);
    expect(err.split('\n')).toEqual([
      'rejected; nothing was published:',
      expect.stringMatching(/^ {2}✖ File\/motd spec\.contents: unknown field; did you mean content\?.*\(stdin:7:3\)$/),
      '      7 |   contents: hello',
      '        |   ^^^^^^^^',
      expect.stringMatching(/^ {2}✖ File\/motd spec\.content: is required \(stdin:4:1\)$/),
      '      4 | spec:',
      '        | ^^^^',
      '  ✖ File/motd spec.path: must be absolute (stdin:6:9)',
      '      6 |   path: etc/motd',
      '        |         ^^^^^^^^',
      '',
    ]);
    const json = await cli([...APPLY, '-o', 'json'], {}, {}, text.replace('kind: File', 'kind: Flie'));
    expect(JSON.parse(json.out)).toMatchObject({
      rejected: [
        {
          code: 'unknown-kind',
          message: expect.stringContaining('did you mean File? Known kinds: File, ') as string,
          place: { file: 'stdin', line: 2, column: 7, excerpt: ['2 | kind: Flie', '  |       ^^^^'] },
        },
      ],
    });
  });

  test.each([
    ['a: 1\na: 2\n', '2 | a: 2'],
    [`a: ${'x'.repeat(200)}: y\n`, `1 | a: ${'x'.repeat(97)}`],
    ['kind: Fi\u001b[31mle\n', '1 | kind: Fi [31mle'],
    ['kind: Fi\u202ele\n', '1 | kind: Fi le'],
  ])('shows the line of text that is not YAML or is hard to display: %j', async (text, line) => {
    const { err } = await cli(APPLY, {}, {}, text);
    expect(err).toContain(`\n      ${line}\n        | `);
  });
});

describe('the mark is below the error', () => {
  const marked = async (text: string): Promise<string | undefined> => {
    const lines = (await cli(APPLY, {}, {}, text)).err.split('\n');
    return lines[lines.findIndex((line) => line.includes('unknown kind')) + 2];
  };
  const behind = (note: string): Promise<string | undefined> =>
    marked(`{ note: "${note}", kind: Flie, apiVersion: sluice.dev/v1alpha1 }`);

  test.each([
    ['wide characters', '日本語', 'xxxxxx'],
    ['an emoji that consists of several characters', '👨\u200d👩\u200d👧', 'xx'],
    ['a combining character', 'cafe\u0301', 'xxxx'],
    ['a tab', 'a\tb', 'xxx'],
  ])('behind %s', async (_what, note, asWide) => {
    expect(await behind(note)).toBe(`        | ${' '.repeat(`{ note: "${asWide}", kind: `.length)}^^^^`);
  });

  test('in a long line, of which only the part around the error is shown', async () => {
    // 40 UTF-16 code units are shown before the error: half an emoji, 15 whole ones, and 9 characters.
    expect(await behind('👍'.repeat(50))).toBe(`        | ${' '.repeat(1 + 2 * 15 + '", kind: '.length)}^^^^`);
  });

  test('and as long as what is wrong, if that is wide', async () => {
    expect(await marked('apiVersion: sluice.dev/v1alpha1\nmetadata: { name: a }\nkind: ファイル\n')).toBe(
      '        |       ^^^^^^^^',
    );
  });
});

const fromKubernetes = (status: string): string => `apiVersion: v1
items:
- apiVersion: sluice.dev/v1alpha1
  kind: File
  metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: "{}"
    creationTimestamp: "2026-11-21T10:00:00Z"
    finalizers: [sluice.dev/fragment]
    generation: 2
    labels: {team: web}
    name: motd
    resourceVersion: "4711"
    uid: 0f2c6d5e-0000-4000-8000-000000000000
  spec: {nodeSelector: {}, path: /etc/motd, content: hello}
  ${status}
kind: List
metadata: {resourceVersion: ""}
`;

test('what kubectl get -o yaml prints is published without what Kubernetes added', async () => {
  const published: NonNullable<FakeFleet['published']> = [];
  expect((await cli(APPLY, { published }, {}, fromKubernetes('status: {change: c7}'))).exit).toBe(0);
  expect(published[0]?.body).toMatchObject({
    apply: [
      {
        apiVersion: 'sluice.dev/v1alpha1',
        kind: 'File',
        metadata: { name: 'motd', labels: { team: 'web' } },
        spec: { nodeSelector: {}, path: '/etc/motd', content: 'hello' },
      },
    ],
  });
  expect(JSON.stringify(published)).not.toMatch(/status|uid|annotations|finalizers|generation/);
  const { exit, err } = await cli(APPLY, {}, {}, fromKubernetes('sepc: {}'));
  expect([exit, err]).toEqual([3, expect.stringContaining('File/motd sepc: unknown field')]);
});

test('a status or annotations that a person wrote are unknown fields', async () => {
  const text = 'apiVersion: sluice.dev/v1alpha1\nkind: File\nmetadata: {name: a, annotations: {b: c}}\nstatus: {}\n';
  const { err } = await cli(APPLY, {}, {}, text);
  expect(err).toContain('File/a metadata.annotations: unknown field');
  expect(err).toContain('File/a status: unknown field');
});

test('a document without a spec names the missing field', async () => {
  const text = 'apiVersion: sluice.dev/v1alpha1\nkind: File\nmetadata: {name: a}\n';
  expect((await cli(APPLY, {}, {}, text)).err).toContain('File/a spec: is required (stdin:1:1)');
});

test.each([
  [['get', 'nods'], 'did you mean nodes? Known resources: nodes, pools'],
  [['aply'], 'Did you mean apply?'],
  [['status', '--wach'], 'Did you mean --watch?'],
  [['delete', 'Fil', 'motd'], 'did you mean File? Known kinds: '],
])('%j is answered with a suggestion', async (argv, expected) => {
  const { exit, err } = await cli(argv, {});
  expect([exit, err]).toEqual([2, expect.stringContaining(expected)]);
});

describe('a local file in contentFrom', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-cli-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const sha256 = createHash('sha256').update('binary').digest('hex');
  const manifest = (contentFrom: object): string => {
    const path = join(folder, 'image.json');
    const spec = { nodeSelector: {}, path: '/image', contentFrom };
    writeFileSync(
      path,
      JSON.stringify({ apiVersion: 'sluice.dev/v1alpha1', kind: 'File', metadata: { name: 'image' }, spec }),
    );
    return path;
  };
  beforeAll(() => {
    writeFileSync(join(folder, 'x.bin'), 'binary');
    execFileSync('mkfifo', [join(folder, 'pipe')]);
  });

  it('is uploaded before the change is published with its name and sha256', async () => {
    const fleet: Required<Pick<FakeFleet, 'published' | 'uploads'>> = { published: [], uploads: [] };
    const { exit, err } = await cli(['apply', '-f', manifest({ file: 'x.bin' })], fleet);
    expect([exit, err]).toEqual([0, expect.stringContaining('x.bin: uploaded 6 bytes')]);
    expect(fleet.uploads).toEqual([{ object: 'x.bin', content: 'binary', publishedBefore: 0 }]);
    expect(fleet.published[0]?.body['apply']).toMatchObject([
      { spec: { path: '/image', contentFrom: { object: 'x.bin', sha256 } } },
    ]);
    expect(JSON.stringify(fleet.published)).not.toContain('"file"');
  });

  it.each([
    ['that is not there', { file: 'nowhere' }, 'nowhere: no such file'],
    ['that is a folder', { file: '.' }, 'is not a file'],
    ['that is a pipe', { file: 'pipe' }, 'is not a file'],
    ['whose name has a space', { file: 'my x.bin' }, '"my x.bin" cannot be the name of an object: choose'],
    ['with another sha256', { file: 'x.bin', sha256: 'a'.repeat(64) }, `x.bin has the sha256 ${sha256}, not`],
  ])('%s is an error with its place', async (_what, contentFrom, expected) => {
    const { exit, err } = await cli(['apply', '-f', manifest(contentFrom)], {});
    expect(exit).toBe(3);
    expect(err).toContain(expected);
    expect(err).toContain('^');
  });

  it('that is not there is named with its fragment, like other errors in manifests', async () => {
    const text = `apiVersion: sluice.dev/v1alpha1
kind: File
metadata: { name: image }
spec:
  nodeSelector: {}
  path: /image
  contentFrom:
    file: ${folder}/nowhere
`;
    const { exit, err } = await cli(APPLY, {}, {}, text);
    expect([exit, ...err.split('\n')]).toEqual([
      3,
      'rejected; nothing was published:',
      `  ✖ File/image spec.contentFrom.file: ${folder}/nowhere: no such file (stdin:8:11)`,
      `      8 |     file: ${folder}/nowhere`,
      `        |           ${'^'.repeat(`${folder}/nowhere`.length)}`,
      '',
    ]);
  });

  it('is not needed to delete the fragment, and neither is a valid spec', async () => {
    const fleet: Required<Pick<FakeFleet, 'published' | 'uploads'>> = { published: [], uploads: [] };
    expect(await cli(['delete', '-f', manifest({ file: 'nowhere' })], fleet)).toMatchObject({ exit: 0 });
    const bare = 'apiVersion: sluice.dev/v1alpha1\nkind: Probe\nmetadata: { name: app }\n';
    expect(await cli(['delete', '-f', '-'], fleet, {}, bare)).toMatchObject({ exit: 0 });
    expect(fleet.published.map(({ body }) => body['delete'])).toEqual([
      [{ kind: 'File', name: 'image' }],
      [{ kind: 'Probe', name: 'app' }],
    ]);
    expect(fleet.uploads).toEqual([]);
    const { exit, err } = await cli(['delete', '-f', '-'], fleet, {}, bare.replace('Probe', 'Prob'));
    expect([exit, err]).toEqual([3, expect.stringContaining('did you mean Probe?')]);
  });

  it('is not uploaded by a plan, which does not call it missing', async () => {
    const missing = (hash: string) => ({
      fragment: 'File/image',
      field: 'spec.contentFrom',
      code: 'missing-object',
      message: `the object store has no x with sha256 ${hash}`,
      nodes: [],
    });
    const rejected = [missing(sha256), missing('b'.repeat(64))];
    const answer = { rejected, warnings: [], waitsFor: [], nodes: [], pools: {}, touched: 0, unchanged: 0 };
    const uploads: Required<FakeFleet>['uploads'] = [];
    const { out } = await cli(['plan', '-f', manifest({ file: 'x.bin' }), '-o', 'json'], {
      uploads,
      answers: { 'ops.config.plan': () => answer },
    });
    expect(JSON.parse(out)).toMatchObject({ rejected: [missing('b'.repeat(64))] });
    expect(uploads).toEqual([]);
  });
});

test('upload prints what contentFrom needs', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-cli-'));
  writeFileSync(join(folder, 'x.bin'), 'binary');
  const sha256 = createHash('sha256').update('binary').digest('hex');
  const { exit, out } = await cli(['upload', join(folder, 'x.bin'), '--name', 'images/x'], { uploads: [] });
  expect([exit, out]).toEqual([0, `contentFrom:\n  object: images/x\n  sha256: ${sha256}\n`]);
  expect(await cli(['upload', join(folder, 'x.bin'), '--name', 'a b'], {})).toMatchObject({ exit: 2 });
  rmSync(folder, { recursive: true, force: true });
});

test('a link to nowhere is named with what it leads to, alone and in a folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-cli-'));
  const link = join(folder, 'a.yaml');
  symlinkSync('/nowhere/a.yaml', link);
  for (const path of [link, folder])
    expect(await cli(['plan', '-f', path], {})).toMatchObject({
      exit: 2,
      err: `error: -f ${link}: is a link to /nowhere/a.yaml, which does not exist\n`,
    });
  rmSync(folder, { recursive: true });
});
