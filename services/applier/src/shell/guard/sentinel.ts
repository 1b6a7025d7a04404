import { spawn, type ChildProcess } from 'node:child_process';
import { constants, existsSync } from 'node:fs';
import { join, dirname } from 'node:path';
import { openOwn } from '../state/own-file.js';

/**
 * Waits next to the applier, as a shell script: that takes 2 MB, and another Node.js 40 MB. It sleeps until the time in
 * the watch file, at most 5 s, and checks twice, because after a sleep of the machine every process is late. Then it
 * runs the guard, which prints in how many seconds to run it again. A guard that prints nothing was killed or cannot
 * start, and is retried for ten minutes. The sentinel ends if the file is gone or belongs to another process, or if the
 * guard prints 0.
 */
export const SENTINEL = `
id=$1 file=$2 late= again=0 tries=0
shift 2
while read -r owner due _ <"$file" && [ "$owner" = "$id" ] && [ "$due" != 0 ]; do
  read -r up _ </proc/uptime
  now=\${up%%.*}
  left=$((due - now))
  [ "$late" = "$due" ] && [ "$again" -gt "$due" ] && left=$((again - now))
  if [ "$left" -gt 0 ]; then
    [ "$left" -gt 5 ] && left=5
    sleep "$left"
  elif [ "$late" != "$due" ]; then
    late=$due
    sleep 2
  else
    next=$("$@" "$id $file")
    [ "$next" = 0 ] && exit 0
    [ -n "$next" ] && tries=0 || tries=$((tries + 1))
    [ "$tries" -lt 12 ] || exit 0
    again=$((now + \${next:-$((tries * tries))}))
  fi
done
exit 0
`;

/**
 * A service manager ends all processes of a unit together, so a process that must outlive the applier cannot be in its
 * unit.
 */
const SYSTEMD = '/run/systemd/system';
/** The pause before a killed sentinel is started again. */
const AGAIN_MS = 1_000;

/** Waits outside the applier, in case it hangs. */
export interface Sentinel {
  end(): void;
}

/** Starts a sentinel for one id in a watch file; `command` runs the guard. Throws if it cannot be started. */
export async function startSentinel(command: readonly string[], id: string, file: string): Promise<Sentinel> {
  const argv = ['/bin/sh', '-c', SENTINEL, 'sluice-guard', id, file, ...command];
  if (existsSync(SYSTEMD) && (await asService(argv, `sluice-guard-${id}`))) return { end: () => undefined };
  return asProcess(argv, join(dirname(file), 'guard.log'));
}

/** The arguments that make it a separate service, which systemd restarts if it is killed. It ends by itself. */
export const serviceWords = (argv: readonly string[], unit: string): readonly string[] => [
  'systemd-run',
  '--quiet',
  '--collect',
  `--unit=${unit}`,
  '--property=Restart=on-failure',
  '--property=RestartSec=1',
  '--',
  ...argv,
];

/** False if systemd refuses it. */
function asService(argv: readonly string[], unit: string): Promise<boolean> {
  const [command = '', ...rest] = serviceWords(argv, unit);
  return new Promise((resolve) => {
    const child = spawn(command, rest, { stdio: 'ignore' });
    child.on('error', () => resolve(false));
    child.on('exit', (status) => resolve(status === 0));
  });
}

async function asProcess(argv: readonly string[], logFile: string): Promise<Sentinel> {
  let ended = false;
  const start = async (): Promise<ChildProcess> => {
    const started = await spawned(argv, logFile);
    started.once('exit', (code) => {
      if (ended || code === 0) return;
      setTimeout(() => void restart().catch(() => undefined), AGAIN_MS).unref();
    });
    return started;
  };
  const restart = async (): Promise<void> => {
    if (!ended) child = await start();
    if (ended) endGroup(child.pid);
  };
  let child = await start();
  return {
    end: () => {
      ended = true;
      endGroup(child.pid);
    },
  };
}

function spawned(argv: readonly string[], logFile: string): Promise<ChildProcess> {
  const [command = '', ...rest] = argv;
  const log = openOwn(logFile, constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND, 0o600);
  return new Promise<ChildProcess>((resolve, reject) => {
    const child = spawn(command, rest, { stdio: ['ignore', log.fd, log.fd], detached: true, cwd: '/' });
    child.on('error', (error) => reject(new Error(`the guard cannot be started: ${error.message}`, { cause: error })));
    child.on('spawn', () => {
      child.unref();
      resolve(child);
    });
  }).finally(() => log.close());
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGTERM');
  } catch {
    // it has ended
  }
}
