import { execFile, spawn, type ChildProcess } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { connectBus, ensureTopology } from '#libs/nats';
import { decodeReport, reportSubject, REPORTS } from '#libs/contracts';
import { natsFixture, until } from '#libs/testing';
import { testWith } from '../e2e/needs.js';

const ROOT = resolve(__dirname, '../..');
const exec = promisify(execFile);
const { version: VERSION } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  readonly version: string;
};
/** The program and the arguments in a unit's ExecStart, without what systemd fills in. */
const programOf = (unit: string): string => /^ExecStart=(\S+)/m.exec(unit)?.[1] ?? '';

describe('the applier package', () => {
  const nats = natsFixture();
  let folder = '';
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-package-spec-'));
    await exec(process.execPath, [join(ROOT, 'tools/package.cjs'), '--out', folder, '--bundle-only'], { cwd: ROOT });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.each(['applier.cjs', 'sluice'])('announces the node with its labels and version: %s', async (program) => {
    const bus = await connectBus({ servers: nats.server.url, name: 'spec' });
    await ensureTopology(bus);
    const alone = join(folder, `alone-${program}`);
    const node = `w-1.${program}`;
    mkdirSync(join(alone, 'root'), { recursive: true });
    cpSync(join(folder, 'applier.cjs'), join(alone, 'applier.cjs'));
    const args = [
      // The bundle is a single file that needs no other files.
      ...(program === 'sluice' ? [join(ROOT, 'bin/sluice'), 'applier'] : [program]),
      '--node',
      node,
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
      env: { PATH: process.env['PATH'], SLUICE_LABELS: 'role=edge,zone=a' },
    });
    try {
      const subject = reportSubject('announced', node);
      const message = await until(
        async () => (await bus.stored(REPORTS, { last_by_subj: subject })) ?? undefined,
        'the announcement',
      );
      expect(decodeReport(subject, message.string())).toMatchObject({
        kind: 'announced',
        node,
        labels: { role: 'edge', zone: 'a' },
        version: VERSION,
        capabilities: expect.arrayContaining(['kind:File']) as string[],
      });
    } finally {
      const ended = new Promise((done) => applier.once('exit', done));
      applier.kill('SIGTERM');
      await ended;
      await bus.close();
    }
  });

  test('does not start on an older Node.js, and says which one it needs', async () => {
    const older = join(folder, 'older.cjs');
    writeFileSync(older, `Object.defineProperty(process.versions, 'node', { value: '20.20.2' });`);
    const started = exec(process.execPath, ['--require', older, join(folder, 'applier.cjs'), '--version']);
    await expect(started).rejects.toMatchObject({
      code: 1,
      stderr: `sluice-applier needs Node.js 22 or newer; ${process.execPath} is 20.20.2\n`,
    });
  });

  test('starts like sluice applier: the same options, settings and refusals', async () => {
    const doors = { cli: [join(ROOT, 'bin/sluice'), 'applier'], bundle: [join(folder, 'applier.cjs')] };
    const run = (door: keyof typeof doors, argv: readonly string[], env: Readonly<Record<string, string>>) =>
      exec(process.execPath, [...doors[door], ...argv], { env: { PATH: process.env['PATH'], ...env } }).then(
        ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
        ({ code, stderr }: { readonly code: number; readonly stderr: string }) => ({ code, output: stderr }),
      );
    const both = async (argv: readonly string[], env: Readonly<Record<string, string>> = {}) =>
      (await Promise.all([run('cli', argv, env), run('bundle', argv, env)])).map(({ code, output }) => ({
        code,
        // The bundle is a separate program, of one machine: its name, its --version, the hint at more help, and the
        // options for targets differ.
        output: output
          .replace(/^Targets elsewhere:\n(?:.+\n)+\n/m, '')
          .replace(/^(Usage: .*| +-[Vh], .*|\(run sluice(-applier| applier)? --help for usage\))\n/gm, '')
          .trim(),
      }));
    for (const [argv, env, code] of [
      [['--help'], {}, 0],
      [[], {}, 2],
      [['--node', 'W_1'], {}, 2],
      [[], { SLUICE_LABELS: 'zone' }, 2],
      [['--heartbeat-seconds', '0'], { SLUICE_NODE: 'w-1' }, 2],
      [['--node', 'w-1'], { SLUICE_ALLOW_EXEC: 'perhaps' }, 2],
      [['--node', 'w-1', '--creds', '/none'], {}, 2],
      [['--node', 'w-1', '--context', 'none'], {}, 2],
      [['--nodes', 'w-1'], {}, 2],
    ] as const) {
      const [cli, bundle] = await both(argv, env);
      expect(bundle).toEqual(cli);
      expect(cli).toEqual({ code, output: expect.stringMatching(/\w/) as string });
    }
    const image = readFileSync(join(ROOT, 'deploy/applier/Dockerfile'), 'utf8');
    const [, program] = /^ENTRYPOINT \["node", "(.*)"\]$/m.exec(image) ?? [];
    expect(image).toContain(`COPY --from=build /app/build/applier.cjs ${program}\n`);
  });

  testWith(['dpkg-deb'], 'the Debian package holds what its unit starts, and keeps its settings', async () => {
    await exec(process.execPath, [join(ROOT, 'tools/package.cjs'), '--out', folder], { cwd: ROOT });
    const deb = readdirSync(folder).find((name) => name.endsWith('.deb')) ?? '';
    const inside = join(folder, 'inside');
    await exec('dpkg-deb', ['-x', join(folder, deb), inside]);
    await exec('dpkg-deb', ['-e', join(folder, deb), join(inside, 'DEBIAN')]);
    const unit = readFileSync(join(inside, 'usr/lib/systemd/system/sluice-applier.service'), 'utf8');
    const wrapper = readFileSync(join(inside, programOf(unit)), 'utf8');
    const program = /^#!\/bin\/sh\nexec node (\S+) "\$@"\n$/.exec(wrapper)?.[1] ?? 'nothing';
    expect(readFileSync(join(inside, program))).toEqual(readFileSync(join(folder, 'applier.cjs')));
    const compiled = join(inside, 'usr/lib/sluice/node_modules/koffi');
    const loads = await exec(process.execPath, ['-e', `console.log(typeof require('${compiled}').load)`]);
    expect(loads.stdout).toBe('function\n');
    expect(existsSync(join(inside, /^EnvironmentFile=-(.*)$/m.exec(unit)?.[1] ?? 'nothing'))).toBe(true);
    const control = readFileSync(join(inside, 'DEBIAN/control'), 'utf8');
    expect(control).toContain(`\nVersion: ${VERSION}\n`);
    expect(control).not.toMatch(/@\w+@/);
    expect(readFileSync(join(inside, 'DEBIAN/conffiles'), 'utf8')).toBe('/etc/default/sluice-applier\n');
    expect(statSync(join(inside, 'etc/default/sluice-applier')).mode & 0o777).toBe(0o640);
    for (const script of ['postinst', 'prerm', 'postrm']) await exec('sh', ['-n', join(inside, 'DEBIAN', script)]);
  });

  test('its unit sees the /tmp of everybody, makes no setuid files, and gets secrets from systemd', () => {
    const text = (name: string): readonly string[] =>
      readFileSync(join(ROOT, 'deploy/applier', name), 'utf8').split('\n');
    const unit = text('sluice-applier.service');
    // Without PrivateTmp, a file in /tmp is the one that others see.
    expect(unit.filter((line) => line.startsWith('PrivateTmp='))).toEqual([]);
    expect(unit).toContain('RestrictSUIDSGID=true');
    expect(text('setuid.conf')).toContain('RestrictSUIDSGID=false');
    const credentials = text('credentials.conf');
    const loaded = credentials.flatMap((line) => /^LoadCredential=(\w[\w.-]*):/.exec(line)?.[1] ?? []);
    const used = credentials.flatMap((line) => /^Environment=.*%d\/(\S+)$/.exec(line)?.[1] ?? []);
    expect(loaded.length).toBeGreaterThan(0);
    expect(used.sort()).toEqual([...loaded].sort());
  });

  testWith(['systemd-analyze'], 'its unit and the drop-ins of all backends are understood by systemd', async () => {
    const units = join(folder, 'units');
    const dropIns = join(units, 'sluice-applier.service.d');
    mkdirSync(dropIns, { recursive: true });
    const unit = readFileSync(join(ROOT, 'deploy/applier/sluice-applier.service'), 'utf8');
    writeFileSync(join(units, 'sluice-applier.service'), unit.replace(programOf(unit), process.execPath));
    for (const name of readdirSync(join(ROOT, 'deploy/applier/backends')))
      cpSync(join(ROOT, 'deploy/applier/backends', name), join(dropIns, name));
    for (const name of ['credentials.conf', 'setuid.conf'])
      cpSync(join(ROOT, 'deploy/applier', name), join(dropIns, name));
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
