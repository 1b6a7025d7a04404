import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testAuthority } from '#libs/testing';
import { readFunctions } from './function-inventory.js';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-inventory-'));
  file = join(folder, 'functions.yaml');
  writeFileSync(join(folder, 'password'), 'secret\n');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const replica = (name: string, url: string, more: object = {}): object => ({
  name,
  url,
  passwordFile: 'password',
  ...more,
});

function read(...functions: readonly object[]): ReturnType<typeof readFunctions>['entries'] {
  writeFileSync(file, JSON.stringify({ functions }));
  return readFunctions(file).entries;
}

it('reads replicas, with what their files contain', async () => {
  const { ca } = await testAuthority();
  writeFileSync(join(folder, 'ca.pem'), ca);
  const [first, second] = read(
    replica('cnf-1', 'https://10.0.0.7', { caFile: 'ca.pem', labels: { zone: 'a' } }),
    replica('cnf-2', 'https://10.0.0.8/other/luci/', { user: 'admin' }),
  );
  expect(first).toEqual({
    name: 'cnf-1',
    labels: { zone: 'a' },
    baseUrl: 'https://10.0.0.7/cgi-bin/luci',
    user: 'root',
    password: 'secret',
    ca,
  });
  expect(second).toMatchObject({ baseUrl: 'https://10.0.0.8/other/luci', user: 'admin', labels: {} });
});

it.each([
  'https://10.0.0.7',
  'https://10.0.0.7/',
  'https://10.0.0.7:443',
  'https://10.0.0.7/cgi-bin/luci',
  'https://10.0.0.7/cgi-bin/luci/',
])('refuses a second entry for one replica, written as %s', (url) => {
  expect(() => read(replica('cnf-1', 'https://10.0.0.7'), replica('cnf-2', url))).toThrow(
    'functions[1].url: is the same as in functions[0]: "https://10.0.0.7"',
  );
});

it.each(['https://10.0.0.7:99999', 'https://[::1', 'ftp://10.0.0.7', 'https://root@10.0.0.7'])(
  'names the place of the URL %s, which nobody can use',
  (url) => {
    expect(() => read(replica('cnf-1', url))).toThrow(`${file}: functions[0].url: must be an http or https URL`);
  },
);

it('names the place of a file that it cannot use', () => {
  writeFileSync(join(folder, 'empty'), '\n');
  writeFileSync(join(folder, 'text'), 'no certificate');
  const problems = [{ passwordFile: 'none' }, { passwordFile: '.' }, { passwordFile: 'empty' }, { caFile: 'text' }];
  const messages = problems.map((more) => {
    try {
      return String(read(replica('cnf-1', 'https://10.0.0.7', more)).length);
    } catch (error) {
      return (error as Error).message.replace(`--inventory ${file}: functions[0].`, '').replaceAll(folder, '');
    }
  });
  expect(messages).toEqual([
    'passwordFile: /none: no such file or folder',
    'passwordFile:  is a folder',
    'passwordFile: /empty is empty',
    'caFile: /text has no certificate: it must be PEM, as in -----BEGIN CERTIFICATE-----',
  ]);
});
