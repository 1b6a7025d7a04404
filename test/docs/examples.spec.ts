import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { checkManifest, isObject, type Manifest } from '#libs/manifests';
import { readLocalFile } from '../../cli/src/input/local-file.js';

const ROOT = join(__dirname, '../..');
const pages = execFileSync(
  'git',
  ['ls-files', '--cached', '--others', '--exclude-standard', 'README.md', 'docs/*.md'],
  {
    cwd: ROOT,
    encoding: 'utf8',
  },
)
  .trim()
  .split('\n');

const examples = pages.flatMap((page) =>
  [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^ *```yaml\n([\s\S]*?)^ *```/gm)]
    .flatMap(([, text]) => parseAllDocuments(text ?? '').map((document) => document.toJS() as unknown))
    .filter((document) => isObject(document) && document['apiVersion'] === 'sluice.dev/v1alpha1')
    .map((document) => [page, document as unknown as Manifest] as const),
);

/** As `sluice apply` publishes it: the local files that it names exist. */
async function published(document: Manifest): Promise<Manifest> {
  const { contentFrom } = document.spec as { readonly contentFrom?: { readonly file?: string } };
  if (contentFrom?.file === undefined) return document;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-docs-'));
  try {
    writeFileSync(join(folder, contentFrom.file), 'content');
    return (await readLocalFile(document, join(folder, 'example.yaml'))).document;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.each(examples)('%s shows only manifests that are accepted', async (_page, document) => {
  expect(checkManifest(await published(document), String(document.kind))).toMatchObject({ ok: true });
});
