import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FACTS } from '#libs/contracts';

const page = readFileSync(join(__dirname, '../../docs/reference/protocol.md'), 'utf8');

test('the protocol lists every fact, and no other', () => {
  const table = /^## Facts$([\s\S]*?)^### /m.exec(page)?.[1] ?? '';
  const listed = table
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => {
      const names = [...(line.split('|')[1] ?? '').matchAll(/`([^`]+?)(\.<[^`]*)?`/g)].map(([, word]) => word ?? '');
      const prefix = (names[0] ?? '').replace(/[^.]+$/, '');
      return names.map((word) => (/^(config|node|rollout|ledger)\./.test(word) ? word : prefix + word));
    });
  expect(listed.sort()).toEqual(Object.keys(FACTS).sort());
});
