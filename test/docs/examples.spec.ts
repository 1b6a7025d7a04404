import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { checkManifest, isObject } from '#libs/manifests';

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
    .map((document) => [page, document as { readonly kind: string }] as const),
);

test.each(examples)('%s shows only manifests that are accepted', (_page, document) => {
  expect(checkManifest(document, document.kind)).toMatchObject({ ok: true });
});
