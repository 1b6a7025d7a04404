import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { until } from '#libs/testing';
import { findNatsServer } from './binaries.js';

let home: string;
let messages: string[];
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'sluice-find-'));
  messages = [];
});
afterEach(() => rmSync(home, { recursive: true }));

const find = (env: NodeJS.ProcessEnv): Promise<string> =>
  findNatsServer({ env: { HOME: home, ...env }, say: (text) => messages.push(text) });

function fake(path: string, script: string): string {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}
const fakeServer = (path: string, version: string): string => fake(path, `echo nats-server: v${version}`);
/** A "Go" that counts its calls, and builds the server when that is allowed. */
const fakeGo = (): string =>
  fake(
    'go/bin/go',
    `echo x >> ${home}/asked; while [ ! -e ${home}/build ]; do sleep 0.02; done; printf '#!/bin/sh\\necho nats-server: v2.14.9\\n' > $GOBIN/nats-server`,
  );
const letBuild = (): void => writeFileSync(join(home, 'build'), '');

describe('findNatsServer', () => {
  test('uses SLUICE_NATS_SERVER before PATH', async () => {
    const named = fakeServer('named', '2.12.1');
    fakeServer('bin/nats-server', '2.12.9');
    expect(await find({ SLUICE_NATS_SERVER: named, PATH: join(home, 'bin') })).toBe(named);
  });

  test('refuses a SLUICE_NATS_SERVER that is too old, and names both versions', async () => {
    const named = fakeServer('named', '2.10.4');
    await expect(find({ SLUICE_NATS_SERVER: named, PATH: '' })).rejects.toThrow(
      /version 2\.10\.4; Sluice needs 2\.12\.0 or newer/,
    );
  });

  test('refuses a SLUICE_NATS_SERVER that is not a server', async () => {
    await expect(find({ SLUICE_NATS_SERVER: join(home, 'none'), PATH: '' })).rejects.toThrow(
      /SLUICE_NATS_SERVER is .*none, which is not/,
    );
  });

  test('uses PATH before the cache', async () => {
    const inPath = fakeServer('bin/nats-server', '2.14.0');
    fakeServer('.cache/sluice/nats-server-2.14.9/nats-server', '2.14.9');
    expect(await find({ PATH: join(home, 'bin') })).toBe(inPath);
    expect(messages).toEqual([]);
  });

  test('skips an old server in PATH, says so, and uses the cache', async () => {
    fakeServer('bin/nats-server', '2.9.10');
    const cached = fakeServer('.cache/sluice/nats-server-2.14.9/nats-server', '2.14.9');
    expect(await find({ PATH: join(home, 'bin') })).toBe(cached);
    expect(messages).toEqual([
      `${home}/bin/nats-server is version 2.9.10, and Sluice needs 2.12.0 or newer; looking for another one`,
    ]);
  });

  test('uses XDG_CACHE_HOME as the cache if it is set', async () => {
    const cached = fakeServer('xdg/sluice/nats-server-2.14.9/nats-server', '2.14.9');
    expect(await find({ PATH: '', XDG_CACHE_HOME: join(home, 'xdg') })).toBe(cached);
  });

  test('builds with Go into the cache, once for parallel callers, and says so', async () => {
    fakeGo();
    const env = { PATH: `${home}/go/bin:/bin:/usr/bin` };
    const cached = join(home, '.cache/sluice/nats-server-2.14.9/nats-server');
    const found = Promise.all([find(env), find(env), find(env)]);
    const waiting = (): readonly string[] => messages.filter((text) => text.includes('waiting'));
    await until(() => waiting().length === 2, 'two of them wait for the third');
    letBuild();
    expect(await found).toEqual([cached, cached, cached]);
    expect(readdirSync(dirname(cached))).toEqual(['nats-server']);
    expect(messages.filter((text) => text.startsWith('building nats-server 2.14.9'))).toHaveLength(1);
    expect(messages.filter((text) => /^built in \d+ s$/.test(text))).toHaveLength(1);
    expect(waiting()).toHaveLength(2);
  });

  test('ignores the lock of a dead builder', async () => {
    fakeGo();
    const folder = join(home, '.cache/sluice/nats-server-2.14.9');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'nats-server.lock'), '4194305');
    letBuild();
    await find({ PATH: `${home}/go/bin:/bin:/usr/bin` });
    expect(existsSync(join(folder, 'nats-server'))).toBe(true);
  });

  test('names every option if there is nothing to use', async () => {
    fakeServer('bin/nats-server', '2.9.10');
    const refused = find({ PATH: join(home, 'bin') });
    await expect(refused).rejects.toThrow(/2\.9\.10.*2\.12\.0/);
    for (const way of ['SLUICE_NATS_SERVER', 'PATH', '.cache/sluice', 'go install', 'docker run'])
      await expect(refused).rejects.toThrow(way);
  });

  test('says why a build failed, and names the other options', async () => {
    fake('go/bin/go', 'echo "dial tcp: no route to host" >&2; exit 1');
    await expect(find({ PATH: `${home}/go/bin:/bin:/usr/bin` })).rejects.toThrow(
      /go install failed: dial tcp: no route to host[^]*SLUICE_NATS_SERVER/,
    );
  });
});
