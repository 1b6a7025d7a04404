import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findNatsServer } from './binaries.js';

let home: string;
let said: string[];
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'sluice-find-'));
  said = [];
});
afterEach(() => rmSync(home, { recursive: true }));

const find = (env: NodeJS.ProcessEnv): Promise<string> =>
  findNatsServer({ env: { HOME: home, ...env }, say: (text) => said.push(text) });

function fake(path: string, script: string): string {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}
const fakeServer = (path: string, version: string): string => fake(path, `echo nats-server: v${version}`);
/** A "Go" that builds the server after a while and counts how often it was asked. */
const fakeGo = (): string =>
  fake(
    'go/bin/go',
    `echo x >> ${home}/asked; sleep 0.3; printf '#!/bin/sh\\necho nats-server: v2.14.9\\n' > $GOBIN/nats-server`,
  );

describe('findNatsServer', () => {
  test('SLUICE_NATS_SERVER comes before PATH', async () => {
    const named = fakeServer('named', '2.12.1');
    fakeServer('bin/nats-server', '2.12.9');
    expect(await find({ SLUICE_NATS_SERVER: named, PATH: join(home, 'bin') })).toBe(named);
  });

  test('SLUICE_NATS_SERVER that is too old is refused with both versions named', async () => {
    const named = fakeServer('named', '2.10.4');
    await expect(find({ SLUICE_NATS_SERVER: named, PATH: '' })).rejects.toThrow(
      /version 2\.10\.4; Sluice needs 2\.12\.0 or newer/,
    );
  });

  test('SLUICE_NATS_SERVER that is no server is refused, not passed over', async () => {
    await expect(find({ SLUICE_NATS_SERVER: join(home, 'none'), PATH: '' })).rejects.toThrow(
      /SLUICE_NATS_SERVER is .*none, which is not/,
    );
  });

  test('PATH comes before the cache', async () => {
    const inPath = fakeServer('bin/nats-server', '2.14.0');
    fakeServer('.cache/sluice/nats-server-2.14.9/nats-server', '2.14.9');
    expect(await find({ PATH: join(home, 'bin') })).toBe(inPath);
    expect(said).toEqual([]);
  });

  test('an old one in PATH is named and passed over for the cache', async () => {
    fakeServer('bin/nats-server', '2.9.10');
    const cached = fakeServer('.cache/sluice/nats-server-2.14.9/nats-server', '2.14.9');
    expect(await find({ PATH: join(home, 'bin') })).toBe(cached);
    expect(said).toEqual([
      `${home}/bin/nats-server is version 2.9.10, and Sluice needs 2.12.0 or newer; looking for another one`,
    ]);
  });

  test('XDG_CACHE_HOME is the cache where it is set', async () => {
    const cached = fakeServer('xdg/sluice/nats-server-2.14.9/nats-server', '2.14.9');
    expect(await find({ PATH: '', XDG_CACHE_HOME: join(home, 'xdg') })).toBe(cached);
  });

  test('Go builds it into the cache, once for parallel callers, and says so', async () => {
    fakeGo();
    const env = { PATH: `${home}/go/bin:/bin:/usr/bin` };
    const cached = join(home, '.cache/sluice/nats-server-2.14.9/nats-server');
    expect(await Promise.all([find(env), find(env), find(env)])).toEqual([cached, cached, cached]);
    expect(readdirSync(dirname(cached))).toEqual(['nats-server']);
    expect(said.filter((text) => text.startsWith('building nats-server 2.14.9'))).toHaveLength(1);
    expect(said.filter((text) => text.includes('waiting'))).toHaveLength(2);
  });

  test('the lock of a dead builder does not hold', async () => {
    fakeGo();
    const folder = join(home, '.cache/sluice/nats-server-2.14.9');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'nats-server.lock'), '4194305');
    await find({ PATH: `${home}/go/bin:/bin:/usr/bin` });
    expect(existsSync(join(folder, 'nats-server'))).toBe(true);
  });

  test('with nothing at all the error names every way', async () => {
    fakeServer('bin/nats-server', '2.9.10');
    const refused = find({ PATH: join(home, 'bin') });
    await expect(refused).rejects.toThrow(/2\.9\.10.*2\.12\.0/);
    for (const way of ['SLUICE_NATS_SERVER', 'PATH', '.cache/sluice', 'go install', 'docker run'])
      await expect(refused).rejects.toThrow(way);
  });

  test('a build that fails says how, and names the other ways', async () => {
    fake('go/bin/go', 'echo "dial tcp: no route to host" >&2; exit 1');
    await expect(find({ PATH: `${home}/go/bin:/bin:/usr/bin` })).rejects.toThrow(
      /go install failed: dial tcp: no route to host[^]*SLUICE_NATS_SERVER/,
    );
  });
});
