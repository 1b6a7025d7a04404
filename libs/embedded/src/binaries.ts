import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { buildOnce } from './build-once.js';

export interface FindOptions {
  /** Default: the environment of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** Words about progress, for people; default: stderr. */
  readonly say?: (text: string) => void;
}

/** The version that is built where there is none, and the oldest that has atomic batches. */
export const PINNED_NATS_SERVER = '2.12.15';
const OLDEST_NATS_SERVER = '2.12.0';
const PINNED_NATS_CLI = '0.3.0';

const run = promisify(execFile);

/** The path of a nats-server ≥ 2.12: SLUICE_NATS_SERVER, PATH, the user's cache, or built into that cache with Go. */
export async function findNatsServer(options: FindOptions = {}): Promise<string> {
  const { env, say } = withDefaults(options);
  const named = env['SLUICE_NATS_SERVER'];
  if (named !== undefined && named !== '') {
    const version = await serverVersion(named);
    if (version === undefined)
      throw new Error(`SLUICE_NATS_SERVER is ${named}, which is not a nats-server that runs here: correct or unset it`);
    if (!isRecent(version)) {
      throw new Error(
        `SLUICE_NATS_SERVER is ${named}, version ${version}; Sluice needs ${OLDEST_NATS_SERVER} or newer: name a newer one, or unset it`,
      );
    }
    return named;
  }
  const tooOld: string[] = [];
  for (const found of inPath('nats-server', env)) {
    const version = await serverVersion(found);
    if (version !== undefined && isRecent(version)) return found;
    const why =
      version === undefined
        ? 'does not run here'
        : `is version ${version}, and Sluice needs ${OLDEST_NATS_SERVER} or newer`;
    tooOld.push(`${found} ${why}`);
    say(`${found} ${why}: looking further`);
  }
  const cached = cachePath(env, 'nats-server', PINNED_NATS_SERVER);
  if (isExecutable(cached)) return cached;
  const go = inPath('go', env)[0];
  if (go === undefined) throw new Error(noServer(tooOld, cached, 'there is no Go in PATH'));
  try {
    await buildOnce(cached, say, `nats-server ${PINNED_NATS_SERVER}`, async (folder) => {
      const { GOFLAGS: _, GOOS: __, GOARCH: ___, ...rest } = env;
      await run(go, ['install', `github.com/nats-io/nats-server/v2@v${PINNED_NATS_SERVER}`], {
        env: { ...rest, GOBIN: folder },
        maxBuffer: 1 << 24,
      });
      return join(folder, 'nats-server');
    });
  } catch (error) {
    throw new Error(noServer(tooOld, cached, `go install failed: ${lastLines(error)}`), { cause: error });
  }
  return cached;
}

/** The path of the `nats` CLI, for tests: SLUICE_NATS_CLI, PATH, the user's cache, or built into that cache with Go. */
export async function findNatsCli(options: FindOptions = {}): Promise<string> {
  const { env, say } = withDefaults(options);
  const named = env['SLUICE_NATS_CLI'];
  if (named !== undefined && named !== '') {
    if (!isExecutable(named))
      throw new Error(`SLUICE_NATS_CLI is ${named}, which cannot be executed: correct or unset it`);
    return named;
  }
  const cached = cachePath(env, 'nats', PINNED_NATS_CLI);
  const found = natsCliHere(env);
  if (found !== undefined) return found;
  const go = inPath('go', env)[0];
  if (go === undefined) throw new Error(`no nats CLI: ${natsCliWays(env)}`);
  await buildOnce(cached, say, `nats ${PINNED_NATS_CLI}`, async (folder) => {
    const { writeFile } = await import('node:fs/promises');
    await writeFile(
      join(folder, 'go.mod'),
      `module tools\n\ngo 1.24\n\nrequire github.com/nats-io/natscli v${PINNED_NATS_CLI}\n`,
    );
    await writeFile(
      join(folder, 'tools.go'),
      '//go:build tools\n\npackage tools\n\nimport _ "github.com/nats-io/natscli/nats"\n',
    );
    const out = join(folder, 'nats');
    await run(go, ['build', '-o', out, 'github.com/nats-io/natscli/nats'], {
      cwd: folder,
      env: { ...env, GOFLAGS: '-mod=mod' },
      maxBuffer: 1 << 24,
    });
    return out;
  });
  return cached;
}

/** Why there can be no `nats` CLI here, for tests that need it; undefined when it is there or can be built. */
export function whyNoNatsCli(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const named = env['SLUICE_NATS_CLI'] ?? '';
  if (named !== '' || natsCliHere(env) !== undefined || inPath('go', env).length > 0) return undefined;
  return `there is no nats CLI: ${natsCliWays(env)}`;
}

function natsCliHere(env: NodeJS.ProcessEnv): string | undefined {
  const cached = cachePath(env, 'nats', PINNED_NATS_CLI);
  return inPath('nats', env)[0] ?? (isExecutable(cached) ? cached : undefined);
}

const natsCliWays = (env: NodeJS.ProcessEnv): string =>
  `set SLUICE_NATS_CLI, put nats into PATH or at ${cachePath(env, 'nats', PINNED_NATS_CLI)}, or install Go so that it can be built`;

function withDefaults(options: FindOptions): Required<FindOptions> {
  return { env: options.env ?? process.env, say: options.say ?? ((text) => void process.stderr.write(`${text}\n`)) };
}

/** Whether this file is a nats-server, and of which version. */
async function serverVersion(path: string): Promise<string | undefined> {
  try {
    const { stdout } = await run(path, ['--version'], { timeout: 10_000 });
    return /v?(\d+\.\d+\.\d+\S*)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}

function isRecent(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  const [oldMajor = 0, oldMinor = 0] = OLDEST_NATS_SERVER.split('.').map(Number);
  return major > oldMajor || (major === oldMajor && minor >= oldMinor);
}

function inPath(name: string, env: NodeJS.ProcessEnv): string[] {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return [...new Set(folders.map((folder) => join(folder, name)))].filter(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function cachePath(env: NodeJS.ProcessEnv, name: string, version: string): string {
  const named = env['XDG_CACHE_HOME'] ?? '';
  const base = named === '' ? join(env['HOME'] ?? homedir(), '.cache') : named;
  return join(base, 'sluice', `${name}-${version}`, name);
}

function noServer(tooOld: readonly string[], cached: string, goWhy: string): string {
  return [
    `no nats-server ${OLDEST_NATS_SERVER} or newer${tooOld.length > 0 ? ` (${tooOld.join('; ')})` : ''}, and ${goWhy}. One of these helps:`,
    '  - SLUICE_NATS_SERVER=/path/to/nats-server',
    '  - nats-server in PATH (https://github.com/nats-io/nats-server/releases)',
    `  - nats-server ${PINNED_NATS_SERVER} at ${cached}`,
    `  - Go in PATH (https://go.dev/dl): then it is built by go install github.com/nats-io/nats-server/v2@v${PINNED_NATS_SERVER}`,
    `  - the container image: docker run --network host docker.io/library/nats:${PINNED_NATS_SERVER} -js, and --server nats://127.0.0.1:4222`,
  ].join('\n');
}

function lastLines(error: unknown): string {
  const text = (error as { stderr?: string }).stderr ?? '';
  return (text === '' ? (error as Error).message : text).trim().split('\n').slice(-3).join(' ');
}
