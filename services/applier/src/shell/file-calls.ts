import { constants as osConstants } from 'node:os';
import { getSystemErrorName } from 'node:util';

/** Extended attributes of a file: name → value in base64. ACLs and SELinux labels are among them. */
export type Xattrs = Readonly<Record<string, string>>;

/** System calls that Node.js lacks. All work on open files, so that nothing can be replaced in between. */
export interface FileCalls {
  /** Empty if the file system does not support them. */
  xattrs(fd: number): Xattrs;
  /** Sets exactly these. Throws an error with the name of one that cannot be set. */
  setXattrs(fd: number, desired: Xattrs): void;
  /** Nanoseconds since 1970, negative before. */
  setModified(fd: number, ns: bigint): void;
  /** For files that were opened with `O_PATH`, such as links. */
  setOwner(fd: number, uid: number, gid: number): void;
  /** What `chattr` set: not even root may change it. Undefined if nothing, or if the file system does not say. */
  protection(fd: number): Protection | undefined;
}

/** `chattr +i`, and `chattr +a`. In a folder, the second allows only new names. */
export type Protection = 'immutable' | 'append-only';

/**
 * Opens a descriptor that only refers to a file. Node.js does not export the flag. It has the same value on x86 and
 * ARM.
 */
export const O_PATH = 0o10000000;

let loaded: FileCalls | string | undefined;

/** The system calls, or why they are not available. */
export function fileCalls(): FileCalls | string {
  loaded ??= load();
  return loaded;
}

/** The system calls. Throws if they are not available. */
export function neededFileCalls(): FileCalls {
  const calls = fileCalls();
  if (typeof calls === 'string') throw new Error(calls);
  return calls;
}

declare const require: (name: 'koffi') => typeof import('koffi');

/** Loaded on demand: most processes with this code never need it, and it takes 9 ms and 4 MB. */
function load(): FileCalls | string {
  if (process.platform !== 'linux') return `extended attributes are not supported on ${process.platform}`;
  try {
    return bound(require('koffi'));
  } catch (error) {
    return `the package koffi cannot be loaded: ${String((error as Error).message.split('\n')[0])}`;
  }
}

const { ENODATA, ENOTSUP, EOPNOTSUPP, ERANGE } = osConstants.errno;
const AT_EMPTY_PATH = 0x1000;
const UTIME_OMIT = 0x3ffffffen;
/** `struct statx` and its attributes. */
const STATX_BYTES = 256;
const STATX_ATTRIBUTES_AT = 8;
const STATX_IMMUTABLE = 0x10;
const STATX_APPEND = 0x20;
const FIRST_BYTES = 1_024;
/** The kernel's limit for a list and for a value. */
const MOST_BYTES = 65_536;
/** Set by the kernel or its security policy for every file. They cannot be removed. */
const OF_THE_KERNEL = /^security\.(selinux|ima|evm|SMACK)/;

function bound(koffi: typeof import('koffi')): FileCalls {
  const libc = koffi.load(null);
  const list = libc.func('intptr_t flistxattr(int fd, _Out_ uint8_t *list, size_t size)');
  const get = libc.func('intptr_t fgetxattr(int fd, const uint8_t *name, _Out_ uint8_t *value, size_t size)');
  const set = libc.func('int fsetxattr(int fd, const uint8_t *name, const uint8_t *value, size_t size, int flags)');
  const remove = libc.func('int fremovexattr(int fd, const uint8_t *name)');
  const times = libc.func('int futimens(int fd, const int64_t *times)');
  const chown = libc.func('int fchownat(int fd, const char *path, uint32_t uid, uint32_t gid, int flags)');

  const stat = libc.func('int statx(int fd, const char *path, int flags, uint32_t mask, _Out_ uint8_t *into)');

  const failed = (call: string): Error => {
    const errno = koffi.errno();
    const code = getSystemErrorName(-errno);
    return Object.assign(new Error(`${code}: ${call}`), { code, errno });
  };
  const nameOf = (name: string): Buffer => Buffer.from(`${name}\0`, 'latin1');
  /** The result of a call that fills a buffer. Undefined if there is none. */
  const filled = (call: string, fill: (into: Buffer) => number): Buffer | undefined => {
    for (let size = FIRST_BYTES; ; size = MOST_BYTES) {
      const into = Buffer.alloc(size);
      const length = Number(fill(into));
      if (length >= 0) return into.subarray(0, length);
      const errno = koffi.errno();
      if (errno === ENODATA || errno === ENOTSUP || errno === EOPNOTSUPP) return undefined;
      if (errno !== ERANGE || size === MOST_BYTES) throw failed(call);
    }
  };

  const xattrs = (fd: number): Xattrs => {
    const names = filled('flistxattr', (into) => list(fd, into, into.length) as number);
    const found: [string, string][] = [];
    for (const name of names?.toString('latin1').split('\0') ?? []) {
      if (name === '') continue;
      const value = filled(`fgetxattr ${name}`, (into) => get(fd, nameOf(name), into, into.length) as number);
      if (value !== undefined) found.push([name, value.toString('base64')]);
    }
    return Object.fromEntries(found.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  };

  return {
    xattrs,
    setXattrs(fd, desired) {
      const now = xattrs(fd);
      for (const name of Object.keys(now))
        if (!(name in desired) && !OF_THE_KERNEL.test(name) && remove(fd, nameOf(name)) !== 0)
          throw notKept(name, failed('fremovexattr'));
      for (const [name, text] of Object.entries(desired)) {
        if (now[name] === text) continue;
        const value = Buffer.from(text, 'base64');
        if (set(fd, nameOf(name), value, value.length, 0) !== 0) throw notKept(name, failed('fsetxattr'));
      }
    },
    setModified(fd, ns) {
      // The part of a second counts forward, also before 1970.
      const part = ((ns % NS_PER_S) + NS_PER_S) % NS_PER_S;
      const spec = new BigInt64Array([0n, UTIME_OMIT, (ns - part) / NS_PER_S, part]);
      if (times(fd, spec) !== 0) throw failed('futimens');
    },
    setOwner(fd, uid, gid) {
      if (chown(fd, '', uid, gid, AT_EMPTY_PATH) !== 0) throw failed('fchownat');
    },
    protection(fd) {
      const into = Buffer.alloc(STATX_BYTES);
      if (stat(fd, '', AT_EMPTY_PATH, 0, into) !== 0) return undefined;
      const attributes = into.readUInt32LE(STATX_ATTRIBUTES_AT);
      if ((attributes & STATX_IMMUTABLE) !== 0) return 'immutable';
      return (attributes & STATX_APPEND) === 0 ? undefined : 'append-only';
    },
  };
}

const NS_PER_S = 1_000_000_000n;

const notKept = (name: string, error: Error): Error =>
  Object.assign(new Error(`its extended attribute ${name} cannot be kept: ${error.message}`, { cause: error }), {
    code: (error as NodeJS.ErrnoException).code,
  });
