import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Turns } from '#libs/process';

/** Nothing waits longer for a file system: a rollback must restore the other paths in time. */
const ANSWER_MS = 5_000;
/** After that, each of many folders is tried on its own. */
const BATCH_MS = 1_000;
/** How long an answer counts. A folder may hold thousands of files. */
const FRESH_MS = 1_000;
/** How long no answer counts, so that thousands of files do not each wait for one. */
const SILENT_MS = 5_000;
/** How many folders one process tries, because the length of its arguments is limited. */
const BATCH = 100;
/** How many processes try one folder each, if one of many does not answer. */
const turns = new Turns(16);
/** The kernel answers for these without a server or another program. */
const LOCAL =
  /^(ext[234]|xfs|btrfs|zfs|f2fs|bcachefs|vfat|iso9660|squashfs|erofs|overlay|tmpfs|ramfs|nsfs|rpc_pipefs)$/;
/** Where the kernel mounts file systems of its own. */
const OF_THE_KERNEL = /^\/(proc|sys|dev)(\/|$)/;
const MOUNT = /^(?:\S+ ){4}(?<place>\S+) .* - (?<type>\S+) /;

interface Tried {
  readonly answers: boolean;
  readonly untilMs: number;
}

/** Tries file systems before the applier uses them. A call to one that does not answer would block the applier. */
export class FileSystems {
  /** By folder. */
  private tried = new Map<string, Tried>();
  private mounts = { mayHang: false, untilMs: -Infinity };

  constructor(private readonly root: string) {}

  /** Whether this machine has file systems that may not answer. Without any, nothing has to be tried. */
  get mayHang(): boolean {
    if (this.mounts.untilMs < performance.now())
      this.mounts = { mayHang: mayAnyHang(this.root), untilMs: performance.now() + FRESH_MS };
    return this.mounts.mayHang;
  }

  /** Tries many folders together, with one process unless one of them does not answer. */
  async tryAll(folders: readonly string[]): Promise<void> {
    if (!this.mayHang) return;
    const nowMs = performance.now();
    this.tried = new Map([...this.tried].filter(([, { untilMs }]) => untilMs >= nowMs));
    const due = [...new Set(folders)].filter((folder) => !this.tried.has(folder));
    for (let i = 0; i < due.length; i += BATCH) await this.tryBatch(due.slice(i, i + BATCH));
  }

  /** Whether the file system that holds this folder answers. */
  async answers(folder: string): Promise<boolean> {
    await this.tryAll([folder]);
    return this.tried.get(folder)?.answers !== false;
  }

  /** Throws if the file system that holds this folder does not answer. */
  async requireAnswer(folder: string): Promise<void> {
    if (!(await this.answers(folder))) throw new Error(`the file system at ${folder} does not answer`);
  }

  private async tryBatch(folders: readonly string[]): Promise<void> {
    const isOne = folders.length === 1;
    const answers = await this.respond(folders, isOne ? ANSWER_MS : BATCH_MS);
    const isSure = answers || isOne;
    await Promise.all(
      folders.map(async (folder) => {
        const isAnswered = isSure ? answers : await turns.take(() => this.respond([folder], ANSWER_MS));
        this.tried.set(folder, {
          answers: isAnswered,
          untilMs: performance.now() + (isAnswered ? FRESH_MS : SILENT_MS),
        });
      }),
    );
  }

  /** Asks for the state of the file system: that of a file may be in a cache. */
  private respond(folders: readonly string[], answerMs: number): Promise<boolean> {
    return respond(['-f', '--', ...folders.map((folder) => join(this.root, folder))], answerMs);
  }
}

function mayAnyHang(root: string): boolean {
  // This may be the root of another process, with other mounts.
  if (root.startsWith('/proc/')) return true;
  try {
    return hasRemote(readFileSync('/proc/self/mountinfo', 'utf8'));
  } catch {
    return true;
  }
}

/** Whether these mounts, in the format of `/proc/self/mountinfo`, need a server or another program, such as NFS. */
export const hasRemote = (mounts: string): boolean =>
  mounts.split('\n').some((line) => {
    const { place = '', type = '' } = MOUNT.exec(line)?.groups ?? {};
    return type !== '' && !LOCAL.test(type) && !OF_THE_KERNEL.test(place);
  });

/**
 * Whether `stat` with these arguments ends in time. A separate process tries it, because a call to a server that is
 * gone, as with NFS, never returns, and must not block the applier. True if there is no `stat` program.
 */
export function respond(args: readonly string[], answerMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn('stat', args, { stdio: 'ignore', env: process.env });
    const end = (isAnswered: boolean): void => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      child.unref();
      resolve(isAnswered);
    };
    const timer = setTimeout(() => end(false), answerMs);
    child.on('exit', () => end(true));
    child.on('error', () => end(true));
  });
}
