import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { checkManifest, manifestSchemas } from '#libs/manifests';
import { LocalInstallation } from '../e2e/local-installation.js';
import { ROOT } from '../e2e/processes.js';

const FOLDER = join(ROOT, 'examples');
const EXAMPLES = readdirSync(FOLDER)
  .filter((name) => /^\d\d-/.test(name))
  .sort();
const filesOf = (example: string): readonly string[] =>
  readdirSync(join(FOLDER, example)).filter((name) => name.endsWith('.yaml'));
const documentsOf = (example: string): readonly { readonly kind: string }[] =>
  filesOf(example).flatMap((file) =>
    parseAllDocuments(readFileSync(join(FOLDER, example, file), 'utf8')).map(
      (document) => document.toJS() as { kind: string },
    ),
  );

test('the examples are numbered, each has a README, and together they show every kind', () => {
  expect(EXAMPLES.map((name) => Number(name.slice(0, 2)))).toEqual(EXAMPLES.map((_, i) => i + 1));
  expect(EXAMPLES.filter((name) => !existsSync(join(FOLDER, name, 'README.md')))).toEqual([]);
  const index = readFileSync(join(FOLDER, 'README.md'), 'utf8');
  expect(EXAMPLES.filter((name) => !index.includes(`](${name})`))).toEqual([]);
  const kinds = new Set(EXAMPLES.flatMap(documentsOf).map(({ kind }) => kind));
  expect([...kinds].sort()).toEqual(Object.keys(manifestSchemas()).sort());
});

test.each(EXAMPLES)('every manifest of %s is valid', (example) => {
  for (const document of documentsOf(example))
    expect(checkManifest(document, example)).toMatchObject({ ok: true, fragment: { kind: document.kind } });
});

describe('on a local fleet', () => {
  const local = new LocalInstallation();
  beforeAll(() => local.up('--nodes', '8'));
  afterAll(() => local.close());

  const path = (example: string): string => join('examples', example);

  // The good and the bad change of 03 are two versions of one file. They are applied one after another below.
  test.each(EXAMPLES.filter((name) => name !== '03-probes-and-rollback'))(
    'sluice plan -f examples/%s',
    async (example) => {
      const { code, stdout, stderr } = await local.run('plan', '-f', path(example));
      // The nodes of `sluice up` only support files. For other kinds, the plan names only the missing capabilities.
      const reasons = stdout.split('\n').filter((line) => line.includes('✖'));
      expect(reasons.filter((line) => !line.includes('did not announce'))).toEqual([]);
      expect({ code, stderr }).toEqual({ code: reasons.length > 0 ? 3 : 0, stderr: '' });
    },
  );

  test.each(['01-first-file', '02-pools-and-budgets', '05-drains', '08-policies'])(
    'sluice apply -f examples/%s --wait',
    async (example) => {
      expect(await local.run('apply', '-f', path(example), '--wait')).toMatchObject({ code: 0 });
    },
  );

  test('the templates of a file are filled in', () => {
    expect(local.file('node-01', 'etc/motd')).toMatch(/^Welcome to node-01 in zone \w\n$/);
  });

  test('the bad change is rolled back, and rejected when it is published again', async () => {
    const apply = (file: string) => local.run('apply', '-f', path(`03-probes-and-rollback/${file}`), '--wait');
    expect(await apply('good.yaml')).toMatchObject({ code: 0 });
    expect(await apply('bad.yaml')).toMatchObject({ code: 4 });
    expect(local.file('node-01', 'etc/greeting')).toBe('hello\n');
    expect(await apply('bad.yaml')).toMatchObject({ code: 3 });
  });
});
