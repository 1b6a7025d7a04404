import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { accountsConf } from './accounts-conf.js';

const EXAMPLE = join(__dirname, '../../../../deploy/nats/accounts.conf');

test('deploy/nats/accounts.conf is what it would be for these users', () => {
  const text = readFileSync(EXAMPLE, 'utf8');
  const comment = text.slice(0, text.indexOf('\naccounts:') + 1);
  expect(comment.split('\n').every((line) => line === '' || line.startsWith('#'))).toBe(true);
  const control = [{ nkey: 'UCONTROL' }];
  const nodes = [{ node: 'worker-1.dc1', login: { nkey: 'UNODE' } }];
  expect(text.slice(comment.length)).toBe(accountsConf({ control, nodes }));
});
