import { spawn, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { cacheHome, findNatsServer } from '#libs/process';
import { run } from '../e2e/fleet.js';

const ROOT = join(__dirname, '../..');
/** `sluice up` is ready when it prints how to stop it. */
const READY = 'Press Ctrl-C';

/** Port 4222 and the folder of the system may be in use on this machine. */
const WRAPPER = `#!/bin/sh
for arg do
  shift
  [ "$arg" = /var/lib/sluice ] && arg="$HOME/state-$$"
  set -- "$@" "$arg"
done
[ "$1" = up ] && exec PROGRAM "$@" --port 0
exec PROGRAM "$@"
`;

/** One command of a page, and the output that the page shows. */
export interface Step {
  readonly command: string;
  readonly isBackground: boolean;
  readonly shown: string;
  /** The position of the shown output in the page. */
  readonly from: number;
  readonly to: number;
}

/**
 * Finds `<!-- run -->` (or `run in background`) before an sh block and `<!-- output -->` before a text block, and
 * `<!-- run: COMMAND -->` before a text block.
 */
export function stepsOf(page: string): readonly Step[] {
  const marks =
    /<!-- run( in background)? -->\s*```sh\n([\s\S]*?)```\s*<!-- output -->\s*```text\n([\s\S]*?)```|<!-- run: (.*?) -->\s*```text\n([\s\S]*?)```/g;
  return [...page.matchAll(marks)].map((match) => {
    const [whole, background, block, blockOutput, line, lineOutput] = match;
    const shown = blockOutput ?? lineOutput ?? '';
    const to = match.index + whole.length - '```'.length;
    return { command: block ?? line ?? '', isBackground: background !== undefined, shown, from: to - shown.length, to };
  });
}

/** A reader with a separate home folder, who has `sluice` in PATH. */
export class Reader {
  readonly home = mkdtempSync(join(tmpdir(), 'sluice-docs-'));
  private readonly background: ChildProcess[] = [];
  private env: NodeJS.ProcessEnv = {};

  /** `programs`: more programs in PATH, by name. */
  async settle(programs: Readonly<Record<string, string>> = {}): Promise<void> {
    const bin = join(this.home, '.bin');
    mkdirSync(bin);
    const sluice = join(bin, 'sluice');
    const program = `node '${join(ROOT, 'bin/sluice')}'`;
    writeFileSync(sluice, WRAPPER.replaceAll('PROGRAM', program));
    chmodSync(sluice, 0o755);
    for (const [name, path] of Object.entries(programs)) symlinkSync(path, join(bin, name));
    const env = { ...process.env };
    delete env['XDG_DATA_HOME'];
    delete env['NATS_URL'];
    delete env['KUBECONFIG'];
    const server = await findNatsServer();
    this.env = {
      ...env,
      HOME: this.home,
      // What was built is in the cache of the user who runs the tests.
      XDG_CACHE_HOME: dirname(cacheHome(process.env)),
      PATH: `${bin}:${env['PATH']}`,
      SLUICE_NATS_SERVER: server,
      NO_COLOR: '1',
    };
  }

  async run({ command, isBackground }: Step): Promise<string> {
    const child = spawn('bash', ['-c', isBackground ? `exec ${command}` : command], { cwd: this.home, env: this.env });
    let output = '';
    const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
    const ready = new Promise<void>((resolve) => {
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (data: Buffer) => {
          output += data.toString();
          if (output.includes(READY)) resolve();
        });
    });
    if (!isBackground) {
      await ended;
      return this.asShown(output);
    }
    this.background.push(child);
    await Promise.race([ready, ended]);
    this.env['NATS_URL'] = /nats:\/\/[\d.:]+/.exec(output)?.[0];
    return this.asShown(output);
  }

  /** Runs commands, as a shell does that ends with the first that fails. */
  async sh(commands: string): Promise<string> {
    const { code, stdout, stderr } = await run('bash', ['-euc', commands], { env: this.env, cwd: this.home });
    if (code !== 0) throw new Error(`exit code ${code}: ${commands}\n${stdout}${stderr}${this.logs()}`);
    return this.asShown(stdout + stderr);
  }

  /** Starts what runs until the reader leaves. Its output is in a file. */
  start(command: string): void {
    const log = openSync(join(this.home, `${this.background.length}.log`), 'a');
    this.background.push(
      spawn('bash', ['-c', `exec ${command}`], { cwd: this.home, env: this.env, stdio: ['ignore', log, log] }),
    );
    closeSync(log);
  }

  /** The URL of the NATS server that was started last. */
  get url(): string {
    return this.env['NATS_URL'] ?? '';
  }

  private logs(): string {
    const files = readdirSync(this.home).filter((name) => /^\d+\.log$/.test(name));
    return files.map((name) => `\n${name}:\n${readFileSync(join(this.home, name), 'utf8').slice(-4_000)}`).join('');
  }

  async leave(): Promise<void> {
    for (const child of this.background) {
      const ended = new Promise((resolve) => child.on('close', resolve));
      if (child.exitCode === null && child.kill('SIGINT')) await ended;
    }
    rmSync(this.home, { recursive: true, force: true });
  }

  /** As any reader would see it: their name, their home, the usual port. */
  private asShown(output: string): string {
    return output
      .replaceAll(this.home, '/home/you')
      .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:4222')
      .replace(/\/tmp\/sluice-demo-\w+/g, '/tmp/sluice-demo')
      .replace(new RegExp(`(?<=\\s)${userInfo().username}(?=\\s|$)`, 'g'), 'you');
  }
}

/**
 * Whether the output matches a page: times and hashes may differ, a line `…` matches any number of lines, and `…` at
 * the end of a line matches the rest of it.
 */
export function isAsShown(shown: string, output: string, nodesMayDiffer = false): boolean {
  const [expectedLines, got] = [shown, output].map((text) => comparable(text, nodesMayDiffer)) as [string[], string[]];
  return matches(expectedLines, got);
}

function matches(expectedLines: readonly string[], got: readonly string[]): boolean {
  const [first, ...rest] = expectedLines;
  if (first === undefined) return got.length === 0;
  if (first === '…') return got.some((_, from) => matches(rest, got.slice(from))) || rest.length === 0;
  return got[0] !== undefined && isLine(first, got[0]) && matches(rest, got.slice(1));
}

const isLine = (expected: string, got: string): boolean =>
  expected === got || (expected.endsWith(' …') && got.startsWith(expected.slice(0, -' …'.length)));

function comparable(text: string, nodesMayDiffer: boolean): string[] {
  return text
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d\d:\d\d:\d\d(\.\d+)?\b/g, '<time>')
    .replace(/\b\d+(\.\d+)?(ms|s|m|h|d)\b/g, '<for>')
    .replace(/\b[0-9a-f]{12}([0-9a-f]{52})?\b/g, '<hash>')
    .replace(nodesMayDiffer ? /\b(node|edge|worker|cnf|cluster)-\d+\b/g : /(?!)/g, '<node>')
    .split('\n')
    .map((line) => line.trim().replace(/\s{2,}/g, '  '))
    .filter((line) => line !== '');
}

/** How often the progress of a change is printed depends on timing. Only its end is compared. */
const PROGRESS = /^c\d+ +(accepted|rendered|validated|rolling|reverting|complete|succeeded)\b/;
const LONGEST_LINE = 110;

/** The output as a page shows it: without lines that differ in every run, and with long lines cut. */
function asPageShows(output: string): string {
  const lines = output
    .trimEnd()
    .split('\n')
    .map((line) => (PROGRESS.test(line) ? '…' : shortened(line.trimEnd())));
  return lines.filter((line, at) => line !== '…' || lines[at - 1] !== '…').join('\n');
}

const shortened = (line: string): string =>
  line.length <= LONGEST_LINE ? line : `${line.slice(0, line.lastIndexOf(' ', LONGEST_LINE - 2))} …`;

/** With SLUICE_UPDATE_DOCS=1, replaces the shown output with the current output. */
export function update(path: string, steps: readonly (Step & { readonly output: string })[]): void {
  let page = readFileSync(path, 'utf8');
  for (const { from, to, output } of [...steps].reverse())
    page = `${page.slice(0, from)}${asPageShows(output)}\n${page.slice(to)}`;
  writeFileSync(path, page);
}
