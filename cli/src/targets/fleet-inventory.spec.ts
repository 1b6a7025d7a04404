import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readFleets } from './fleet-inventory.js';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-inventory-'));
  file = join(folder, 'fleets.yaml');
  writeFileSync(join(folder, 'password'), 'secret\n');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function read(...fleets: readonly object[]): ReturnType<typeof readFleets>['entries'] {
  writeFileSync(file, JSON.stringify({ fleets }));
  return readFleets(file).entries;
}
const fleet = (name: string, server: string, more: object = {}): object => ({ name, server, ...more });

it('reads fleets, with how to connect to them as the flags of the CLI say it', () => {
  const [first, second] = read(
    fleet('europe', 'nats://10.0.0.7:4222,nats://10.0.0.8', {
      user: 'hub',
      passwordFile: 'password',
      labels: { tier: 'region' },
    }),
    fleet('asia', 'nats://10.1.0.7', { source: 'headquarters' }),
  );
  expect(first).toMatchObject({ name: 'europe', labels: { tier: 'region' }, source: 'hub' });
  expect(first?.connection).toMatchObject({ user: 'hub', passwordFile: join(folder, 'password') });
  expect(first?.connection.servers).toHaveLength(2);
  expect(second).toMatchObject({ source: 'headquarters', labels: {} });
});

it('notices that a file has other content, and says which files it uses', () => {
  const entry = fleet('europe', 'nats://10.0.0.7', { user: 'hub', passwordFile: 'password' });
  const [before] = read(entry);
  writeFileSync(join(folder, 'password'), 'another\n');
  expect(read(entry)[0]?.files).not.toBe(before?.files);
  const used: string[] = [];
  readFleets(file, (path) => used.push(path));
  expect(used).toEqual([join(folder, 'password')]);
});

it.each([
  [[fleet('europe', 'nats://a'), fleet('europe', 'nats://b')], 'fleets[1].name: is the same as in fleets[0]: "europe"'],
  [[fleet('europe', 'nats://a'), fleet('asia', 'nats://a')], 'fleets[1].server: is the same as in fleets[0]'],
  [[fleet('europe', 'nats://a', { tokenFile: 'none' })], 'fleets[0].tokenFile: '],
  [[fleet('europe', 'nats://a', { user: 'u', passwordFile: 'password', creds: 'password' })], 'fleets[0]: '],
  [[fleet('europe', 'http://a')], 'fleets[0]: '],
  [[fleet('europe', 'nats://a', { sauce: 'hub' })], 'fleets[0].sauce: '],
])('names the place of an entry that cannot be used', (entries, message) => {
  expect(() => read(...entries)).toThrow(message);
});
