import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';

export const ROOT = resolve(__dirname, '../..');

export interface CommandOutput {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program from this package's node_modules with the Node.js that runs the tests. */
export function runTool(script: string, args: readonly string[], cwd = ROOT): CommandOutput {
  return run(process.execPath, [join(ROOT, 'node_modules', script), ...args], cwd);
}

/** Without settings of Sluice: with a `SLUICE_NODE`, an applier that is started to look at it would not end. */
export function run(command: string, args: readonly string[], cwd = ROOT): CommandOutput {
  const kept = Object.entries(process.env).filter(([name]) => name !== 'FORCE_COLOR' && !/^(SLUICE|NATS)_/.test(name));
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    env: { ...Object.fromEntries(kept), NO_COLOR: '1' },
    encoding: 'utf8',
    maxBuffer: 1 << 27,
  });
  if (error !== undefined) throw error;
  return { status, stdout, stderr };
}
