import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { connectBus, ensureTopology } from '#libs/bus';
import { decodeReport, reportSubject, REPORTS } from '#libs/contracts';
import { natsFixture, until } from '#libs/testing';
import { testWith } from '../e2e/needs.js';

const ROOT = resolve(__dirname, '../..');
const exec = promisify(execFile);
/** The program and the words of a unit's command, without what systemd fills in. */
const programOf = (unit: string): string => /^ExecStart=(\S+)/m.exec(unit)?.[1] ?? '';

describe('the applier as a thing that one installs', () => {
  const nats = natsFixture();
  let folder = '';
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-package-spec-'));
    await exec(process.execPath, [join(ROOT, 'tools/package.cjs'), '--out', folder, '--bundle-only'], { cwd: ROOT });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('is one file, which needs nothing beside it', async () => {
    const bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(bus);
    const alone = join(folder, 'alone');
    mkdirSync(join(alone, 'root'), { recursive: true });
    cpSync(join(folder, 'applier.cjs'), join(alone, 'applier.cjs'));
    const args = [
      'applier.cjs',
      '--node',
      'w-1.dc1',
      '--label',
      'role=edge',
      '--root',
      join(alone, 'root'),
      '--state',
      join(alone, 'state'),
      '--server',
      nats.server.url,
    ];
    const applier: ChildProcess = spawn(process.execPath, args, {
      cwd: alone,
      stdio: 'ignore',
      env: { PATH: process.env['PATH'] },
    });
    try {
      const subject = reportSubject('announced', 'w-1.dc1');
      const message = await until(
        async () => (await bus.stored(REPORTS, { last_by_subj: subject })) ?? undefined,
        'the announcement',
      );
      expect(decodeReport(subject, message.string())).toMatchObject({
        kind: 'announced',
        node: 'w-1.dc1',
        labels: { role: 'edge' },
        capabilities: expect.arrayContaining(['kind:File']) as string[],
      });
    } finally {
      const ended = new Promise((done) => applier.once('exit', done));
      applier.kill('SIGTERM');
      await ended;
      await bus.close();
    }
  });

  testWith(['dpkg-deb'], 'the Debian package holds what its unit starts, and keeps its settings', async () => {
    await exec(process.execPath, [join(ROOT, 'tools/package.cjs'), '--out', folder], { cwd: ROOT });
    const deb = readdirSync(folder).find((name) => name.endsWith('.deb')) ?? '';
    const inside = join(folder, 'inside');
    await exec('dpkg-deb', ['-x', join(folder, deb), inside]);
    await exec('dpkg-deb', ['-e', join(folder, deb), join(inside, 'DEBIAN')]);
    const unit = readFileSync(join(inside, 'usr/lib/systemd/system/sluice-applier.service'), 'utf8');
    const wrapper = readFileSync(join(inside, programOf(unit)), 'utf8');
    expect(existsSync(join(inside, /exec node (\S+)/.exec(wrapper)?.[1] ?? 'nothing'))).toBe(true);
    expect(existsSync(join(inside, /^EnvironmentFile=-(.*)$/m.exec(unit)?.[1] ?? 'nothing'))).toBe(true);
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };
    const control = readFileSync(join(inside, 'DEBIAN/control'), 'utf8');
    expect(control).toContain(`\nVersion: ${version}\n`);
    expect(control).not.toMatch(/@\w+@/);
    expect(readFileSync(join(inside, 'DEBIAN/conffiles'), 'utf8')).toBe('/etc/default/sluice-applier\n');
    for (const script of ['postinst', 'prerm', 'postrm']) await exec('sh', ['-n', join(inside, 'DEBIAN', script)]);
  });

  testWith(['systemd-analyze'], 'its unit and the drop-ins of all backends are understood by systemd', async () => {
    const units = join(folder, 'units');
    const dropIns = join(units, 'sluice-applier.service.d');
    mkdirSync(dropIns, { recursive: true });
    const unit = readFileSync(join(ROOT, 'deploy/applier/sluice-applier.service'), 'utf8');
    writeFileSync(join(units, 'sluice-applier.service'), unit.replace(programOf(unit), process.execPath));
    for (const name of readdirSync(join(ROOT, 'deploy/applier/backends')))
      cpSync(join(ROOT, 'deploy/applier/backends', name), join(dropIns, name));
    const verify = (): Promise<string> =>
      exec('systemd-analyze', ['verify', '--man=no', join(units, 'sluice-applier.service')]).then(
        ({ stderr }) => stderr,
        (error: { readonly stderr: string }) => error.stderr,
      );
    const about = (text: string): readonly string[] =>
      text.split('\n').filter((line) => line.includes('sluice-applier'));
    expect(about(await verify())).toEqual([]);
    writeFileSync(join(dropIns, 'wrong.conf'), '[Service]\nProtectEverything=true\n');
    expect(about(await verify())).toEqual([expect.stringContaining('ProtectEverything')]);
  });
});
