import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildOnce, cachePath, inPath, isExecutable } from '#libs/process';

const PINNED_NATS_CLI = '0.3.0';

const run = promisify(execFile);

/** The path of the `nats` CLI, for tests: SLUICE_NATS_CLI, PATH, the user's cache, or built into that cache with Go. */
export async function findNatsCli(
  env: NodeJS.ProcessEnv = process.env,
  say: (text: string) => void = (text) => void process.stderr.write(`${text}\n`),
): Promise<string> {
  const setting = env['SLUICE_NATS_CLI'];
  if (setting !== undefined && setting !== '') {
    if (!isExecutable(setting))
      throw new Error(`SLUICE_NATS_CLI is ${setting}, which cannot be executed: correct or unset it`);
    return setting;
  }
  const cached = cachePath(env, 'nats', PINNED_NATS_CLI);
  const found = natsCliHere(env);
  if (found !== undefined) return found;
  const go = inPath('go', env)[0];
  if (go === undefined) throw new Error(`no nats CLI: ${natsCliWays(env)}`);
  await buildOnce(cached, say, `nats ${PINNED_NATS_CLI}`, async (folder) => {
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

/** Why the `nats` CLI is not available for tests; undefined if it exists or can be built. */
export function whyNoNatsCli(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const setting = env['SLUICE_NATS_CLI'] ?? '';
  if (setting !== '' || natsCliHere(env) !== undefined || inPath('go', env).length > 0) return undefined;
  return `there is no nats CLI: ${natsCliWays(env)}`;
}

function natsCliHere(env: NodeJS.ProcessEnv): string | undefined {
  const cached = cachePath(env, 'nats', PINNED_NATS_CLI);
  return inPath('nats', env)[0] ?? (isExecutable(cached) ? cached : undefined);
}

const natsCliWays = (env: NodeJS.ProcessEnv): string =>
  `set SLUICE_NATS_CLI, put nats into PATH or at ${cachePath(env, 'nats', PINNED_NATS_CLI)}, or install Go so that it can be built`;
