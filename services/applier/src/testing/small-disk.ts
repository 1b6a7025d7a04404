import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { closeSync, ftruncateSync, mkdtempSync, openSync, readFileSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '#libs/testing';

/** File systems that a test can fill: in memory, and on a loop device. */
export type SmallDiskType = 'tmpfs' | 'ext4';

const PATH = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`;
const ENV = { ...process.env, PATH };
const IMAGE_KIB = 2_048;

/** Why this machine cannot create one; undefined if it can. */
export function whyNoSmallDisk(type: SmallDiskType): string | undefined {
  const tries: Readonly<Record<SmallDiskType, string>> = {
    tmpfs: 'mount -t tmpfs none /mnt',
    ext4: `f=$(mktemp) && truncate -s ${IMAGE_KIB}K $f && mkfs.ext4 -q $f; mount -o loop $f /mnt; code=$?; rm -f $f; exit $code`,
  };
  const { status } = spawnSync('unshare', ['-m', 'sh', '-c', tries[type]], { env: ENV });
  return status === 0 ? undefined : `no ${type} can be mounted here`;
}

const DEAD_MOUNT = 'mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none "$0"';

/** Why this machine cannot mount a file system that does not answer; undefined if it can. */
export function whyNoDeadMount(): string | undefined {
  const { status } = spawnSync('unshare', ['-m', 'sh', '-c', `exec 3<>/dev/fuse && ${DEAD_MOUNT}`, '/mnt'], {
    env: ENV,
  });
  return status === 0 ? undefined : 'no file system can be mounted with FUSE here';
}

/**
 * A small file system in a separate mount namespace. It is gone when the test ends it, or dies. Other processes see it
 * below `/proc/<pid>/root`.
 */
export class SmallDisk {
  private constructor(
    readonly path: string,
    private readonly folder: string,
    private readonly holder: ChildProcess,
  ) {}

  static async mount(type: SmallDiskType, kib: number): Promise<SmallDisk> {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-disk-'));
    const mount: Readonly<Record<SmallDiskType, string>> = {
      tmpfs: `mount -t tmpfs -o size=${kib}k none "$0"`,
      ext4: `truncate -s ${kib}K "$0.img" && mkfs.ext4 -q -m 0 "$0.img" && mount -o loop "$0.img" "$0" && rm "$0.img"`,
    };
    // `cat` ends, and the mount with it, when the test closes the pipe or dies.
    const holder = spawn('unshare', ['-m', 'sh', '-c', `${mount[type]} && echo mounted && exec cat`, folder], {
      env: ENV,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let output = '';
    holder.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    await until(() => output.includes('mounted') || holder.exitCode !== null, 'the disk is mounted');
    if (holder.exitCode !== null) throw new Error(`the disk cannot be mounted: ended with ${holder.exitCode}`);
    return new SmallDisk(`/proc/${holder.pid ?? 0}/root${folder}`, folder, holder);
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.path);
    return bavail * bsize;
  }

  /** Fills it with a file until this many bytes are free; 0 fills it completely. */
  fill(name: string, freeBytes = 0): void {
    const file = openSync(join(this.path, name), 'a');
    try {
      const part = Buffer.alloc(4_096, 1);
      while (this.freeBytes > freeBytes) writeSync(file, part);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    } finally {
      closeSync(file);
    }
  }

  /** Empties a file, which frees its space. */
  empty(name: string): void {
    const file = openSync(join(this.path, name), 'r+');
    ftruncateSync(file);
    closeSync(file);
  }

  /**
   * Mounts a file system over one of its folders that answers no call, because no program serves it. Returns what
   * unmounts it, so that the folder is as before. After two minutes, calls fail, so that no test hangs.
   */
  stopAnswering(folder: string): () => void {
    const enter = ['-t', String(this.holder.pid), '-m', 'sh', '-c'];
    const at = join(this.folder, folder);
    const fuse = openSync('/dev/fuse', 'r+');
    const mounted = spawnSync('nsenter', [...enter, DEAD_MOUNT, at], { env: ENV, stdio: ['ignore', 2, 2, fuse] });
    if (mounted.status !== 0) throw new Error(`nothing can be mounted at ${at}`);
    const silent = spawn('sleep', ['120'], { stdio: ['ignore', 'ignore', 'ignore', fuse] });
    closeSync(fuse);
    return () => {
      spawnSync('nsenter', [...enter, 'umount -l "$0"', at], { env: ENV, stdio: ['ignore', 2, 2] });
      silent.kill('SIGKILL');
    };
  }

  /** From now on, nothing can be written to it. */
  makeReadOnly(): void {
    const argv = ['-t', String(this.holder.pid), '-m', 'mount', '-o', 'remount,ro', this.folder];
    const { status } = spawnSync('nsenter', argv, { env: ENV, stdio: ['ignore', 2, 2] });
    if (status !== 0) throw new Error(`${this.folder} cannot be made read-only`);
  }

  read(name: string): string {
    return readFileSync(join(this.path, name), 'utf8');
  }

  async end(): Promise<void> {
    this.holder.stdin?.end();
    await until(() => this.holder.exitCode !== null || this.holder.signalCode !== null, 'the disk is unmounted');
    rmSync(this.folder, { recursive: true, force: true });
  }
}
