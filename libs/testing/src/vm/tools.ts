import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildOnce } from '#libs/process';

/** The programs that build and run a VM. */
export interface VmTools {
  /** With a PATH to the programs and to the libraries that they need. */
  readonly env: NodeJS.ProcessEnv;
  /** The path of qemu's firmware, if it is not at qemu's default path. */
  readonly firmware: readonly string[];
}

const PROGRAMS = ['qemu-system-x86_64', 'mmdebstrap', 'mke2fs'];
const PACKAGES = ['qemu-system-x86', 'mmdebstrap', 'e2fsprogs'];
const SYSTEM_PATH = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`;
const run = promisify(execFile);

/**
 * The programs of this machine. If one is missing, those of Debian's packages, unpacked into the user's cache. Nothing
 * is installed.
 */
export async function findVmTools(say: (text: string) => void): Promise<VmTools> {
  if (missing().length === 0) return { env: { ...process.env, PATH: SYSTEM_PATH }, firmware: [] };
  const folder = join(cacheFolder(), `vm-tools-${codename()}`);
  if (!existsSync(folder))
    await buildOnce(
      folder,
      say,
      `${missing().join(' and ')} of Debian's packages, for the tests in a VM (SLUICE_NO_VM=1 leaves those out)`,
      unpack,
    );
  return unpacked(folder);
}

/** The programs that are not installed. */
export const missing = (): readonly string[] =>
  PROGRAMS.filter(
    (program) =>
      spawnSync('sh', ['-c', `command -v ${program}`], { env: { ...process.env, PATH: SYSTEM_PATH } }).status !== 0,
  );

/** The code name of this machine's Debian; undefined on another system. */
export function codename(): string | undefined {
  const text = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
  return /^ID=debian$/m.test(text) ? /^VERSION_CODENAME=(\w+)$/m.exec(text)?.[1] : undefined;
}

/** The file that says where this machine gets Debian's own packages. Other package sources are not used. */
export function debianSources(): string | undefined {
  const folder = '/etc/apt/sources.list.d';
  const files = [
    '/etc/apt/sources.list',
    ...(existsSync(folder)
      ? readdirSync(folder)
          .toSorted()
          .map((name) => join(folder, name))
      : []),
  ];
  return files.find((file) => {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    return (
      /debian-archive-keyring|^deb[^#]*\/debian\/? /m.test(text) && new RegExp(`\\b${codename() ?? ' '}\\b`).test(text)
    );
  });
}

/** The folder of tools, images and saved states. */
export function cacheFolder(): string {
  const cacheHome = process.env['XDG_CACHE_HOME'] ?? '';
  return join(cacheHome === '' ? join(process.env['HOME'] ?? homedir(), '.cache') : cacheHome, 'sluice');
}

/**
 * The packages that are missing, with their dependencies, as apt computes them, without using the machine's lists or
 * locks.
 */
async function unpack(folder: string): Promise<string> {
  const [apt, tools] = [join(folder, 'apt'), join(folder, 'tools')];
  for (const name of ['lists/partial', 'archives/partial']) await mkdir(join(apt, name), { recursive: true });
  await mkdir(tools);
  const settings = {
    'Dir::State::lists': join(apt, 'lists'),
    'Dir::Cache': apt,
    'Dir::Cache::archives': join(apt, 'archives'),
    'Dir::Etc::sourcelist': debianSources() ?? '',
    'Dir::Etc::sourceparts': '-',
    'APT::Sandbox::User': 'root',
    'Debug::NoLocking': '1',
    'Acquire::Retries': '3',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' };
  await run('apt-get', [...options, '--quiet', 'update'], { env });
  await run(
    'apt-get',
    [...options, '--quiet', '--yes', '--no-install-recommends', '--download-only', 'install', ...PACKAGES],
    { env, maxBuffer: 1 << 24 },
  );
  for (const name of (await readdir(join(apt, 'archives'))).filter((file) => file.endsWith('.deb')))
    await run('dpkg-deb', ['-x', join(apt, 'archives', name), tools]);
  await rm(apt, { recursive: true });
  return tools;
}

function unpacked(folder: string): VmTools {
  const paths = ['usr/bin', 'usr/sbin', 'bin', 'sbin'].map((name) => join(folder, name));
  const libraries = ['usr/lib', 'lib'].flatMap((name) => [join(folder, name, 'x86_64-linux-gnu'), join(folder, name)]);
  return {
    env: { ...process.env, PATH: `${paths.join(':')}:${SYSTEM_PATH}`, LD_LIBRARY_PATH: libraries.join(':') },
    firmware: ['qemu', 'seabios'].map((name) => join(folder, 'usr/share', name)),
  };
}
