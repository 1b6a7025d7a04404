import { existsSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { SERVICES } from '#libs/contracts';
import { until } from '#libs/testing';
import { fleetFixture, run } from './fleet.js';
import { file } from './manifests.js';
import { NatsCli } from './nats-cli.js';
import { describeWith } from './needs.js';

const GUIDE = readFileSync(join(__dirname, '../../docs/guides/upgrade-and-backup.md'), 'utf8');

/** The commands that the guide shows under a heading. */
function commandsUnder(heading: string): string {
  const section = GUIDE.split(/^## /m).find((one) => one.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)].map(([, commands]) => commands).join('');
}

describeWith(['nats'], 'a backup that is made as the guide says', () => {
  const stage = fleetFixture({ sizes: [2, 1, 3] });

  test('restores the fleet on an empty server: nodes get its config back, and take new changes', async () => {
    const { fleet } = stage;
    const nats = await NatsCli.of(fleet);
    const inShell = async (commands: string): Promise<string> => {
      const PATH = [dirname(nats.path), fleet.env['PATH']].join(delimiter);
      const env = { ...fleet.env, PATH, XDG_CONFIG_HOME: join(fleet.data, 'config') };
      const { code, stdout, stderr } = await run('bash', ['-c', commands], { env, cwd: fleet.data });
      return code === 0 ? '' : stdout + stderr;
    };
    const content = (text: string) => fleet.filesWith(() => ({ '/etc/app.conf': text }));
    const roll = async (text: string): Promise<void> => {
      expect(await fleet.ended(await fleet.apply(file('app', text)))).toMatchObject({ phase: 'committed', nodes: 6 });
      expect(fleet.files()).toEqual(content(text));
    };

    await roll('saved\n');
    expect(await inShell(commandsUnder('Back up'))).toBe('');
    await roll('lost\n');

    await Promise.all(SERVICES.map((service) => fleet.processes.kill(service)));
    fleet.server.kill();
    const store = join(fleet.server.dataDir, 'jetstream');
    expect(existsSync(store)).toBe(true);
    rmSync(store, { recursive: true });
    await fleet.server.restart();
    expect(await inShell(commandsUnder('Restore'))).toBe('');
    for (const service of SERVICES) fleet.startService(service);

    await until(
      () => JSON.stringify(fleet.files()) === JSON.stringify(content('saved\n')),
      'the saved content is back',
    );
    const doctor = await until(async () => {
      const output = await fleet.cli('doctor');
      return output.code === 0 ? output : undefined;
    }, 'doctor finds no problems');
    expect(doctor.stdout).toContain('nodes                6, all reporting');
    await roll('new\n');
  });
});
