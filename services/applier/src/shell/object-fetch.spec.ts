import { createHash } from 'node:crypto';
import { readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '#libs/testing';
import { config, file, Host, probe } from './applier-host.fixture.js';
import { bootClock } from './boot.js';
import { OpenFile } from './open-file.js';

let host: Host;
beforeEach(() => {
  host = new Host();
});
afterEach(async () => {
  jest.restoreAllMocks();
  await host.end();
});

const sha256 = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');
const withObject = (path: string, content: string, more: object = {}) => ({
  kind: 'File',
  name: path.slice(1),
  spec: { path, contentFrom: { object: 'a.bin', sha256: sha256(content) }, ...more },
});
const store = (content: string): void => void host.bus.objects.set(sha256(content), Buffer.from(content));

it('gets its content from the object store, keeps what the fragment does not set, and is restored', async () => {
  writeFileSync(host.path('x'), 'mine', { mode: 0o640 });
  store('some content');
  const before = host.tree();
  await host.start({ driftCheckMs: 60 });
  const wanted = config(withObject('/x', 'some content'), withObject('/new/empty', ''));
  store('');
  expect(await host.bus.roll(wanted)).toMatchObject({ verdict: 'applied', changed: ['/new/empty', '/x'] });
  expect(host.tree()).toEqual({ x: '640 some content', new: 'dir 755', 'new/empty': '644 ' });
  writeFileSync(host.path('x'), 'same length!');
  const { differences } = await host.bus.reported((report) => report.differences.length > 0);
  expect(differences).toEqual(['/x: content differs']);
  expect(await host.bus.roll(wanted, { kind: 'repair' })).toMatchObject({ verdict: 'applied', changed: ['/x'] });
  expect(await host.bus.roll(config())).toMatchObject({ verdict: 'applied' });
  expect(host.tree()).toEqual(before);
});

it('rolls back to the object that was there before, without the object store', async () => {
  for (const content of ['first', 'second']) store(content);
  await host.start();
  const fails = probe('p', { file: { path: '/x', matches: '^first' } });
  expect(await host.bus.roll(config(withObject('/x', 'first'), fails))).toMatchObject({ verdict: 'applied' });
  const before = host.tree();
  host.bus.objects.delete(sha256('first'));
  expect(await host.bus.roll(config(withObject('/x', 'second'), fails))).toMatchObject({
    verdict: 'invalid',
    restored: true,
  });
  expect(host.tree()).toEqual(before);
});

it('refuses content that was changed in the object store, before it changes anything', async () => {
  host.bus.objects.set(sha256('right'), Buffer.from('wrong'));
  await host.start();
  const refused = await host.bus.roll(config(file('/a', 'a'), withObject('/x', 'right')));
  expect(refused).toMatchObject({ verdict: 'failed', restored: true });
  expect(refused.reason).toMatch(
    /^File\/x: a\.bin was changed in the object store: its sha256 is \w{64}, not \w{64}\. Remove it with nats stream purge .* upload the file again with sluice upload$/,
  );
  expect(host.tree()).toEqual({});
});

it('says which object is missing, when the time of the lease is over', async () => {
  await host.start();
  const failed = await host.bus.roll(config(withObject('/x', 'nowhere')), { applyMs: 3_000 });
  expect(failed).toMatchObject({ verdict: 'failed', restored: true });
  expect(failed.reason).toBe(
    `nothing was started: File/x: the object store has no a.bin with sha256 ${sha256('nowhere')}: upload the file with sluice upload`,
  );
});

it('says that a part of an object is missing, and does not blame the time', async () => {
  const content = 'twenty-two characters.';
  store(content);
  const { chunk } = host.bus;
  host.bus.chunk = (hash, n) => (n === 3 ? Promise.resolve(undefined) : chunk.call(host.bus, hash, n));
  await host.start();
  const failed = await host.bus.roll(config(withObject('/x', content)), { applyMs: 3_000 });
  expect(failed).toMatchObject({ verdict: 'failed', restored: true });
  expect(failed.reason).toBe(
    `nothing was started: File/x: a part of a.bin is missing from the object store: upload the file again with sluice upload (sha256 ${sha256(content)})`,
  );
});

it('says how much of an object has arrived when half of the time is over, and changes nothing', async () => {
  const content = 'forty characters, which are ten chunks..';
  store(content);
  let aheadMs = 0;
  const { chunk } = host.bus;
  host.bus.chunk = (hash, n) => {
    // Four chunks are requested at once, so three have arrived.
    if (n === 5) aheadMs = 40_000;
    return chunk.call(host.bus, hash, n);
  };
  await host.start({ clock: () => bootClock() + aheadMs });
  const failed = await host.bus.roll(config(withObject('/x', content)), { applyMs: 60_000 });
  expect(failed).toMatchObject({ verdict: 'failed', restored: true });
  expect(failed.reason).toBe(
    'nothing was started: File/x: only 30 % of a.bin (40 bytes) was downloaded in half of the applyTimeout: use a longer applyTimeout',
  );
  expect(host.tree()).toEqual({});
});

it('continues a download that was interrupted', async () => {
  const content = 'twenty-two characters.';
  store(content);
  const requested: number[] = [];
  const { chunk } = host.bus;
  let isCut = true;
  host.bus.chunk = (hash, n) => {
    requested.push(n);
    return isCut && n === 3 ? Promise.reject(new Error('the connection was lost')) : chunk.call(host.bus, hash, n);
  };
  await host.start();
  host.bus.grant(config(withObject('/x', content)));
  await until(() => requested.includes(3));
  isCut = false;
  await host.bus.reported(({ verdict }) => verdict === 'applied');
  expect(readFileSync(host.path('x'), 'utf8')).toBe(content);
  expect(requested.filter((n) => n < 3)).toEqual([0, 1, 2]);
});

it('downloads while the node is drained, and continues after a notice', async () => {
  const content = 'forty characters, which are ten chunks..';
  store(content);
  const chunks: number[] = [];
  const { chunk } = host.bus;
  host.bus.chunk = (hash, n) => {
    if (n === 5 && !chunks.includes(n)) host.bus.push({});
    chunks.push(n);
    return chunk.call(host.bus, hash, n);
  };
  await host.start();
  const wanted = config(withObject('/x', content));
  const lease = host.bus.grant(wanted, { phase: 'draining' });
  await until(() => statSync(join(host.state, 'originals', sha256(content)), { throwIfNoEntry: false }));
  expect([host.tree(), chunks.filter((n) => n < 2), chunks.filter((n) => n === 5)]).toEqual([{}, [0, 1], [5, 5]]);
  host.bus.objects.clear();
  host.bus.regrant({ phase: 'applying' });
  expect(await host.bus.reported((report) => report.lease === lease)).toMatchObject({ verdict: 'applied' });
  expect(host.tree()).toEqual({ x: `644 ${content}` });
});

it('does not start to download what does not fit on the disk', async () => {
  const content = 'large';
  store(content);
  const { object } = host.bus;
  host.bus.object = async (hash) => {
    const info = await object.call(host.bus, hash);
    return info === undefined ? undefined : { ...info, bytes: 2 ** 50 };
  };
  await host.start();
  const failed = await host.bus.roll(config(withObject('/x', content)));
  expect(failed).toMatchObject({ verdict: 'failed', restored: true });
  expect(failed.reason).toMatch(/needs \d+ bytes of disk space at .*, but \d+ are free/);
  expect(host.tree()).toEqual({});
});

it('reads a large file once, and finds an edit that keeps its size and the time of its last write', async () => {
  const content = 'a'.repeat(1_100_000);
  host.bus.chunkBytes = 256 * 1024;
  store(content);
  const seen: string[] = [];
  const { open } = OpenFile;
  const { pieces } = OpenFile.prototype;
  jest.spyOn(OpenFile, 'open').mockImplementation((path, ...more) => {
    if (path.endsWith('/x')) seen.push('opened');
    return open.call(OpenFile, path, ...more);
  });
  jest.spyOn(OpenFile.prototype, 'pieces').mockImplementation(function (this: OpenFile) {
    seen.push('read');
    return pieces.call(this);
  });
  await host.start({ driftCheckMs: 60 });
  await host.bus.roll(config(withObject('/x', content)));
  await until(() => seen.length > 5 && seen.slice(-5).every((what) => what === 'opened'));
  const { atime, mtime } = statSync(host.path('x'));
  writeFileSync(host.path('x'), `b${content.slice(1)}`);
  utimesSync(host.path('x'), atime, mtime);
  const { differences } = await host.bus.reported((report) => report.differences.length > 0);
  expect(differences).toEqual(['/x: content differs']);
});

it('leaves no copy of the content in the state folder', async () => {
  store('some content');
  await host.start();
  await host.bus.roll(config(withObject('/x', 'some content')));
  await until(
    () => statSync(join(host.state, 'originals', sha256('some content')), { throwIfNoEntry: false }) === undefined,
  );
  expect(host.tree()).toEqual({ x: '644 some content' });
});

describe('a download that a lease did not finish', () => {
  const content = 'forty characters, which are ten chunks..';
  const path = (suffix = ''): string => join(host.state, 'originals', `${sha256(content)}${suffix}`);
  const exists = (at: string): boolean => statSync(at, { throwIfNoEntry: false }) !== undefined;
  let aheadMs = 0;
  const clock = (): number => bootClock() + aheadMs;

  /** A lease whose time is over when five chunks were requested. Returns the requested chunks from then on. */
  async function unfinished(): Promise<number[]> {
    store(content);
    aheadMs = 0;
    const requested: number[] = [];
    const { chunk } = host.bus;
    host.bus.chunk = (hash, n) => {
      if (n === 5 && aheadMs === 0) aheadMs = 40_000;
      requested.push(n);
      return chunk.call(host.bus, hash, n);
    };
    await host.start({ clock });
    const failed = await host.bus.roll(config(withObject('/x', content)), { applyMs: 60_000 });
    expect(failed).toMatchObject({ verdict: 'failed', restored: true });
    requested.length = 0;
    return requested;
  }
  /** The applier has tidied up once since this call. */
  async function tidied(): Promise<void> {
    const stray = join(host.state, 'configs', `${'0'.repeat(63)}1.json`);
    writeFileSync(stray, '');
    await host.stop();
    await host.start({ clock });
    await until(() => !exists(stray), 'the state folder to be tidied up');
    // It ends the step that it is in.
    await host.stop();
    await host.start({ clock });
  }

  it('is continued by the next lease, also after a restart', async () => {
    const requested = await unfinished();
    await tidied();
    expect(statSync(path('.part')).size).toBe(12);
    expect(await host.bus.roll(config(withObject('/x', content)))).toMatchObject({ verdict: 'applied' });
    expect(Math.min(...requested)).toBe(3);
    expect(host.tree()).toEqual({ x: `644 ${content}` });
    await until(() => !exists(path()) && !exists(path('.part')), 'the copies to be removed');
  });

  it('is started over if what was kept is damaged', async () => {
    const requested = await unfinished();
    writeFileSync(path('.part'), 'not the text');
    expect(await host.bus.roll(config(withObject('/x', content)))).toMatchObject({ verdict: 'applied' });
    expect([requested[0], requested.filter((n) => n === 0)]).toEqual([3, [0]]);
    expect(host.tree()).toEqual({ x: `644 ${content}` });
  });

  it('is dropped after a day', async () => {
    await unfinished();
    const yesterday = Date.now() / 1_000 - 90_000;
    utimesSync(path('.part'), yesterday, yesterday);
    await tidied();
    expect(exists(path('.part'))).toBe(false);
  });

  it('is dropped once another change was applied', async () => {
    await unfinished();
    expect(await host.bus.roll(config(file('/y', 'y')))).toMatchObject({ verdict: 'applied' });
    await until(() => !exists(path('.part')), 'the part to be removed');
  });
});
