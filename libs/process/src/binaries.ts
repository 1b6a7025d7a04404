import { execFile } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { buildOnce } from './build-once.js';

export interface FindOptions {
  /** Default: the environment of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** Receives progress messages for people. Default: stderr. */
  readonly say?: (text: string) => void;
}

/** The version to build if none is installed. */
export const PINNED_NATS_SERVER = '2.14.9';
/** The oldest version that has the atomic batches of the ledger. */
export const OLDEST_NATS_SERVER = '2.12.0';

const run = promisify(execFile);

/**
 * The path of a nats-server ≥ 2.12: from SLUICE_NATS_SERVER, PATH or the user's cache, or built into that cache with
 * Go.
 */
export async function findNatsServer(options: FindOptions = {}): Promise<string> {
  const { env, say } = withDefaults(options);
  const path = env['SLUICE_NATS_SERVER'];
  if (path !== undefined && path !== '') {
    const version = await serverVersion(path);
    if (version === undefined)
      throw new Error(
        `SLUICE_NATS_SERVER is ${path}, which is not a nats-server that can run on this machine: correct or unset it`,
      );
    if (!isAtLeast(version, OLDEST_NATS_SERVER)) {
      throw new Error(
        `SLUICE_NATS_SERVER is ${path}, version ${version}; Sluice needs ${OLDEST_NATS_SERVER} or newer: set it to a newer one, or unset it`,
      );
    }
    return path;
  }
  const tooOld: string[] = [];
  for (const path of inPath('nats-server', env)) {
    const version = await serverVersion(path);
    if (version !== undefined && isAtLeast(version, OLDEST_NATS_SERVER)) return path;
    const why =
      version === undefined
        ? 'cannot run on this machine'
        : `is version ${version}, and Sluice needs ${OLDEST_NATS_SERVER} or newer`;
    tooOld.push(`${path} ${why}`);
    say(`${path} ${why}; looking for another one`);
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

function withDefaults(options: FindOptions): Required<FindOptions> {
  return { env: options.env ?? process.env, say: options.say ?? ((text) => void process.stderr.write(`${text}\n`)) };
}

async function serverVersion(path: string): Promise<string | undefined> {
  try {
    const { stdout } = await run(path, ['--version'], { timeout: 10_000 });
    return /v?(\d+\.\d+\.\d+\S*)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}

/** Compares the numbers of two versions. A suffix after a dash or a plus is ignored. */
export function isAtLeast(version: string, least: string): boolean {
  const [a, b] = [version, least].map((text) =>
    text
      .split(/[-+]/, 1)[0]
      ?.split('.')
      .map((part) => Number(part) || 0),
  );
  for (const i of [0, 1, 2]) if ((a?.[i] ?? 0) !== (b?.[i] ?? 0)) return (a?.[i] ?? 0) > (b?.[i] ?? 0);
  return true;
}

/** The programs of this name in PATH. */
export function inPath(name: string, env: NodeJS.ProcessEnv): string[] {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  return [...new Set(folders.map((folder) => join(folder, name)))].filter(isExecutable);
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The path of a program that was built here. */
export function cachePath(env: NodeJS.ProcessEnv, name: string, version: string): string {
  return join(cacheHome(env), `${name}-${version}`, name);
}

/** The folder of everything that was built here. */
export function cacheHome(env: NodeJS.ProcessEnv): string {
  const folder = env['XDG_CACHE_HOME'] ?? '';
  return join(folder === '' ? join(env['HOME'] ?? homedir(), '.cache') : folder, 'sluice');
}

function noServer(tooOld: readonly string[], cached: string, goWhy: string): string {
  return [
    `no nats-server ${OLDEST_NATS_SERVER} or newer${tooOld.length > 0 ? ` found (${tooOld.join('; ')})` : ' found'}, and ${goWhy}. Provide one of these:`,
    '  - SLUICE_NATS_SERVER=/path/to/nats-server',
    '  - nats-server in PATH (https://github.com/nats-io/nats-server/releases)',
    `  - nats-server ${PINNED_NATS_SERVER} at ${cached}`,
    `  - Go in PATH (https://go.dev/dl), to build it with go install github.com/nats-io/nats-server/v2@v${PINNED_NATS_SERVER}`,
    `  - the container image: docker run --network host docker.io/library/nats:${PINNED_NATS_SERVER} -js, and --server nats://127.0.0.1:4222`,
  ].join('\n');
}

function lastLines(error: unknown): string {
  const text = (error as { stderr?: string }).stderr ?? '';
  return (text === '' ? (error as Error).message : text).trim().split('\n').slice(-3).join(' ');
}
