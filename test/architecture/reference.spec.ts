import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SERVICE_SETTINGS } from '#libs/process';
import { EDGE_SERVICES, SERVICES } from '#libs/contracts';
import { ROOT, run } from './tools.fixture.js';

test.each([
  ['settings.md', 'settings-reference.cjs'],
  ['cli.md', 'cli-reference.cjs'],
])('docs/reference/%s is up to date: npm run reference', (page, tool) => {
  const { stdout, stderr } = run(process.execPath, [join(ROOT, 'tools', tool), '--print']);
  expect([stdout, stderr]).toEqual([readFileSync(join(ROOT, 'docs/reference', page), 'utf8'), '']);
});

test('settings name existing services, and have valid defaults', () => {
  const known: readonly string[] = [...SERVICES, ...EDGE_SERVICES];
  for (const setting of Object.values(SERVICE_SETTINGS)) {
    for (const name of 'services' in setting ? setting.services : []) expect(known).toContain(name);
    if ('fallback' in setting) expect(setting.form.parse(setting.fallback)).not.toBeUndefined();
  }
});
