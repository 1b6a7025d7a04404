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

/** The folder with everything of one local installation. */
export interface DataFolder {
  readonly path: string;
  readonly nats: string;
  readonly logs: string;
  readonly inventory: string;
  /** Whether an earlier `up` was killed and left these processes. */
  readonly leftPids: readonly number[];
  write(state: UpState): void;
  /** Releases the folder. Its data stays. */
  release(): void;
}

/** Longer than the processes of a killed `up` need to end. */
const LEFTOVERS_MS = 8_000;

/** The default data folder of `up`, and of `up --kube`. */
export function defaultDataFolder(env: NodeJS.ProcessEnv, name: 'sluice' | 'sluice-kubernetes' = 'sluice'): string {
  const folder = env['XDG_DATA_HOME'] ?? '';
  return join(folder === '' ? join(env['HOME'] ?? homedir(), '.local', 'share') : folder, name);
}

/** Takes a folder for this process. Refuses one that another `up` uses, and names its pid. */
export function takeDataFolder(folder: string): DataFolder {
  const path = resolve(folder);
  const [logs, file, lock] = [join(path, 'logs'), join(path, 'up.json'), join(path, 'up.lock')];
  makeClosed(path);
  makeFolder(logs);
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

/**
 * One folder after another: with `recursive`, mkdir never ends below /proc, and names the wrong cause on a read-only
 * disk.
 */
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

/**
 * Contains the contents and journals of all nodes, so no other user may read it. Only a folder with the mark, a new one
 * and an empty one are used: in any other one, files of somebody else would be closed or replaced.
 */
function makeClosed(path: string): void {
  makeFolder(path);
  if (!statSync(path).isDirectory()) throw new Error(`${path} is not a folder: choose another one with --data`);
  const mark = join(path, MARK);
  const [{ mode, uid }, isMarked] = [statSync(path), existsSync(mark)];
  if (!isMarked && readdirSync(path).length > 0)
    throw new Error(`${path} holds other files: choose a new or empty folder with --data`);
  if ((mode & OTHERS) !== 0) {
    if ((mode & SHARED) !== 0 || uid !== process.geteuid?.())
      throw new Error(`${path} is shared with other users, or belongs to one: choose another folder with --data`);
    chmodSync(path, CLOSED);
  }
  if (!isMarked) writeFileSync(mark, 'This folder belongs to sluice up, which closes it to other users.\n');
}

const MARK = 'sluice-up.txt';
const OTHERS = 0o077;
/** Every user may write to it. */
const SHARED = 0o002;
const CLOSED = 0o700;

/** The folders of a node's files and of its journal. */
export const nodeFolders = (data: string, node: string): { readonly root: string; readonly state: string } => ({
  root: join(data, 'nodes', node, 'root'),
  state: join(data, 'nodes', node, 'state'),
});

/** Waits for the processes of a killed `up`, because two appliers of one node would write to the same journal. */
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

/** Whether this process runs and belongs to Sluice: another program may have reused the pid. */
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
