import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { checkManifest } from '#libs/manifests';

const PAGE = join(__dirname, '../../docs/node-kinds.md');
const examples = [...readFileSync(PAGE, 'utf8').matchAll(/^## (\w+)\n[\s\S]*?```yaml\n([\s\S]*?)```/gm)].map(
  ([, kind, text]) => [kind as string, text as string] as const,
);

test('the page has an example of each kind', () => {
  expect(examples.map(([kind]) => kind)).toEqual([
    'SystemdUnit',
    'Sysctl',
    'KernelArguments',
    'SshKeys',
    'DisruptionPolicy',
  ]);
});

test.each(examples)('the example of %s is a manifest that is taken', (kind, text) => {
  expect(checkManifest(parse(text), kind)).toMatchObject({ ok: true, fragment: { kind } });
});
