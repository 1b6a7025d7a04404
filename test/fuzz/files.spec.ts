import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run, type CommandOutput } from '../e2e/fleet.js';
import { SLUICE } from '../e2e/processes.js';
import { GOOD_FILES, ODD_FILES } from './doors/files.js';

/** Nothing listens there. */
const NO_SERVER = 'nats://127.0.0.1:1';
/**
 * The limit of the JavaScript heap. A command that reads or builds everything in memory dies with another exit code.
 */
const HEAP_MIB = 200;

describe('odd files given to -f', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-fuzz-files-'));
  const file = join(folder, 'odd.yaml');
  const env = {
    ...process.env,
    NATS_URL: NO_SERVER,
    NO_COLOR: '1',
    HOME: folder,
    XDG_CONFIG_HOME: folder,
    NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}`,
  };
  const sluice = (args: readonly string[], input = ''): Promise<CommandOutput> =>
    run(process.execPath, [SLUICE, ...args], { env, input });
  const plan = (path: string, input = ''): Promise<CommandOutput> => sluice(['plan', '-f', path], input);
  const outputOf = ({ stdout, stderr }: CommandOutput): string => stdout + stderr;

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.each(Object.keys(ODD_FILES))('%s', async (name) => {
    const { content, code, output } = (
      ODD_FILES[name] as () => { content: Buffer | string; code: number; output: RegExp }
    )();
    writeFileSync(file, content);
    const ran = await plan(file);
    expect({ code: ran.code, words: outputOf(ran).slice(0, 2_000) }).toEqual({
      code,
      words: expect.stringMatching(output) as string,
    });
  });

  test.each(Object.keys(GOOD_FILES))('%s is accepted', async (name) => {
    writeFileSync(file, GOOD_FILES[name] as Buffer);
    expect(await plan(file)).toMatchObject({
      code: 6,
      stderr: expect.stringMatching(/no nats-server answers/) as string,
    });
  });

  test('a pipe without a writer, a device, and a folder with odd contents are refused', async () => {
    const odd = join(folder, 'folder');
    mkdirSync(join(odd, 'below.yaml'), { recursive: true });
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    expect(await plan(pipe)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/pipe is a pipe that nothing writes to/) as string,
    });
    expect(await plan('/dev/null')).toMatchObject({ code: 2, stderr: expect.stringMatching(/no manifest/) as string });
    const endless = await plan('/dev/zero');
    expect([endless.code, outputOf(endless)]).toEqual([
      3,
      expect.stringMatching(/\/dev\/zero is larger than 4096 KiB/),
    ]);
    expect(await plan(odd)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/below\.yaml is a folder/) as string,
    });
    rmSync(join(odd, 'below.yaml'), { recursive: true });
    symlinkSync('/nowhere', join(odd, 'dangling.yaml'));
    expect(await plan(odd)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/dangling\.yaml: is a link to \/nowhere, which does not exist/) as string,
    });
    symlinkSync('loop.yaml', join(folder, 'loop.yaml'));
    expect(await plan(join(folder, 'loop.yaml'))).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/loop\.yaml: .*symbolic links/) as string,
    });
  });

  test('a pipe is read as long as its writer writes', async () => {
    const pipe = join(folder, 'written');
    execFileSync('mkfifo', [pipe]);
    writeFileSync(file, GOOD_FILES['CRLF'] as Buffer);
    const [read] = await Promise.all([plan(pipe), run('sh', ['-c', `cat '${file}' > '${pipe}'`])]);
    expect(read).toMatchObject({ code: 6, stderr: expect.stringMatching(/no nats-server answers/) as string });
  });

  test('stdin is read up to the size limit of a change', async () => {
    const ran = await plan('-', '# comment\n'.repeat(1_000_000));
    expect([ran.code, outputOf(ran)]).toEqual([3, expect.stringMatching(/stdin is larger than 4096 KiB/)]);
  });

  test('the other flags that name files are as careful', async () => {
    writeFileSync(file, Buffer.alloc(5 * 1024 * 1024, ' '));
    expect(await sluice(['actions', '--from', file, '--to', file])).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/odd\.yaml is larger than 4096 KiB/) as string,
    });
    const up = (inventory: string): Promise<CommandOutput> =>
      sluice(['up', '--data', join(folder, 'data'), '--inventory', inventory]);
    expect(await up(file)).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/--inventory .*odd\.yaml is larger than 4096 KiB/) as string,
    });
    expect(await up(folder)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--inventory .* is a folder/) as string,
    });
    writeFileSync(file, '{"nodes": [{"name": "__proto__"}, 7]}');
    expect(await up(file)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /nodes\[1\]: must be an object, but is a number\n.*nodes\[0\]\.name: must be the name of a node/,
      ) as string,
    });
  });
});
