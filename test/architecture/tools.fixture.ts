import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';

export const ROOT = resolve(__dirname, '../..');

export interface CommandOutput {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of this package's node_modules by the Node that runs the tests. */
export function runTool(script: string, args: readonly string[], cwd = ROOT): CommandOutput {
  return run(process.execPath, [join(ROOT, 'node_modules', script), ...args], cwd);
}

export function run(command: string, args: readonly string[], cwd = ROOT): CommandOutput {
  const { FORCE_COLOR: _, ...env } = process.env;
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    env: { ...env, NO_COLOR: '1' },
    encoding: 'utf8',
    maxBuffer: 1 << 27,
  });
  if (error !== undefined) throw error;
  return { status, stdout, stderr };
}
