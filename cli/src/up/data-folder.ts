import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** The content of `up.json`. */
export interface UpState {
  readonly server: string;
  /** Of `sluice up` itself. */
  readonly pid: number;
  readonly pids: Readonly<Record<string, number>>;
}

/** The folder that holds everything of one local installation. */
export interface DataFolder {
  readonly path: string;
  readonly nats: string;
  readonly logs: string;
  readonly inventory: string;
  /** Whether an earlier `up` in it was killed, and left these. */
  readonly leftPids: readonly number[];
  write(state: UpState): void;
  /** Lets go of the folder; its data stays. */
  release(): void;
}

/** Processes of a killed `up` end by themselves; this is longer than that takes. */
const LEFTOVERS_MS = 8_000;

/** Where `up` keeps its data by default. */
export function defaultDataFolder(env: NodeJS.ProcessEnv): string {
  const named = env['XDG_DATA_HOME'] ?? '';
  return join(named === '' ? join(env['HOME'] ?? homedir(), '.local', 'share') : named, 'sluice');
}

/** Takes a folder for this process. Refuses one that another `up` has, naming its pid. */
export function takeDataFolder(folder: string): DataFolder {
  const path = resolve(folder);
  const [logs, file, lock] = [join(path, 'logs'), join(path, 'up.json'), join(path, 'up.lock')];
  makeClosed(path, logs);
  lockFor(path, lock);
  const left = readState(file);
  rmSync(file, { force: true });
  return {
    path,
    logs,
    nats: join(path, 'nats'),
    inventory: join(path, 'inventory.json'),
    leftPids: left === undefined ? [] : Object.values(left.pids),
    write(state) {
      const part = join(path, `.up.json.${process.pid}`);
      writeFileSync(part, `${JSON.stringify(state)}\n`);
      renameSync(part, file);
    },
    release() {
      rmSync(file, { force: true });
      rmSync(lock, { force: true });
    },
  };
}

/** One folder after the other: `recursive` never ends below /proc, and names the wrong cause on a read-only disk. */
function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw new Error(`cannot make the data folder: ${(error as Error).message}; choose another one with --data`, {
        cause: error,
      });
  }
}

/** Contents and journals of all nodes are in it: nobody else may look. A folder with files of others is left alone. */
function makeClosed(path: string, logs: string): void {
  const isOurs = !existsSync(path) || readdirSync(path).length === 0 || existsSync(logs);
  if (!isOurs && (statSync(path).mode & OTHERS) !== 0)
    throw new Error(`${path} holds other files, and other users may read it: choose another folder with --data`);
  makeFolder(logs);
  if ((statSync(path).mode & OTHERS) !== 0) chmodSync(path, CLOSED);
}

const OTHERS = 0o077;
const CLOSED = 0o700;

/** Where a node's files and its journal are. */
export const nodeFolders = (data: string, node: string): { readonly root: string; readonly state: string } => ({
  root: join(data, 'nodes', node, 'root'),
  state: join(data, 'nodes', node, 'state'),
});

/** Waits for the processes of a killed `up`: two appliers of one node would write to one journal. */
export async function awaitLeftovers(pids: readonly number[], path: string): Promise<void> {
  const untilMs = performance.now() + LEFTOVERS_MS;
  for (;;) {
    const left = pids.filter((pid) => isOurs(pid, path));
    if (left.length === 0) return;
    if (performance.now() > untilMs)
      throw new Error(
        `${path}: processes of an earlier sluice up are still running: stop them with kill ${left.join(' ')}`,
      );
    await sleep(50);
  }
}

function lockFor(path: string, lock: string): void {
  for (let tries = 0; tries < 3; tries += 1) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx' });
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const holder = Number(existsSync(lock) ? readFileSync(lock, 'utf8') : '');
    if (holder > 0 && isOurs(holder, path))
      throw new Error(
        `${path} is in use by another sluice up (pid ${holder}): stop it (kill ${holder}), or choose another folder with --data`,
      );
    rmSync(lock, { force: true });
  }
  throw new Error(`${path}: another sluice up is starting there; choose another folder with --data`);
}

function readState(file: string): UpState | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as UpState;
  } catch {
    return undefined;
  }
}

/** Whether this process runs, and is one of Sluice's: a pid may have passed to another program. */
function isOurs(pid: number, path: string): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return command.includes('sluice') || command.includes(path) || pid === process.pid;
  } catch {
    return !existsSync('/proc/self');
  }
}
