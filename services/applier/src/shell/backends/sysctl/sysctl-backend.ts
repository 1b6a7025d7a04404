import { constants } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import type { Json, Original, Originals } from '../../../core/index.js';
import { mayWrite } from '../../host/host.js';
import { bytesContent, type Content } from '../../content.js';
import {
  RefusedError,
  type Backend,
  type BackendFactory,
  type CheckContext,
  type SaveContext,
  type Surroundings,
} from '../../ports.js';
import { codeOf } from '../../state/whole-file.js';
import { checkPath } from '../paths/path-check.js';
import { PathOriginals } from '../paths/path-originals.js';
import { ensureFile } from '../paths/path-changes.js';
import { fileDiffers } from '../paths/path-differences.js';

const ASKED = { mode: 0o644 };
/** Never created: a parameter that the kernel does not have cannot be set. */
const OVERWRITE = constants.O_WRONLY | constants.O_TRUNC;
/** Root may write any other file, whatever its mode, but not a parameter of the kernel. */
const WRITABLE = 0o222;
const KEY = /^[A-Za-z0-9_:@-]+(\/[A-Za-z0-9_:@-]+)*(\.[A-Za-z0-9_:@-]+(\/[A-Za-z0-9_:@-]+)*)+$/;
const PREFIX = 'sysctl:';

/** `Sysctl {key, value}`: the value in the running kernel, and a file in /etc/sysctl.d for the next boot. */
class SysctlBackend implements Backend {
  readonly kind = 'Sysctl';
  private readonly paths: PathOriginals;

  constructor(
    private readonly surroundings: Surroundings,
    private readonly proc: string,
  ) {
    this.paths = new PathOriginals(this.kind, surroundings);
  }

  resources(entry: ConfigEntry): readonly string[] {
    return [`${PREFIX}${this.title(entry)}`, this.surroundings.aliases.key(filePath(this.title(entry)))];
  }

  title(entry: ConfigEntry): string {
    return String(entry.spec['key']);
  }

  async check(entry: ConfigEntry, checked: CheckContext): Promise<void> {
    const { key, value } = settingOf(entry);
    await checkPath(
      this.surroundings,
      {
        id: `Sysctl/${entry.name}`,
        path: filePath(key),
        wrong: 'directory',
        content: contentOf(entry),
        desired: ASKED,
      },
      checked,
    );
    if (words(await this.read(key)) !== words(value)) await this.assertWritable(key);
  }

  /** Some values change by themselves. A rollback could not write the one from before the lease. */
  private async assertWritable(key: string): Promise<void> {
    const { mode } = await stat(this.procPath(key));
    if ((mode & WRITABLE) === 0) throw new RefusedError('content', `the kernel lets nobody change ${key}`);
  }

  async original(key: string, _entry: ConfigEntry, saving: SaveContext): Promise<Original> {
    return key.startsWith(PREFIX) ? this.value(key) : this.paths.read(key, saving);
  }

  /** A value or file that somebody changed. Otherwise the config has both. */
  async snapshot(entry: ConfigEntry, leftMs: () => number): Promise<Originals> {
    if ((await this.differs(entry)) === undefined) return {};
    const originals: Record<string, Original> = {};
    for (const key of this.resources(entry))
      originals[key] = key.startsWith(PREFIX) ? await this.value(key) : await this.paths.snapshot(key, false, leftMs);
    return originals;
  }

  async restore(key: string, original: Original): Promise<void> {
    if (!key.startsWith(PREFIX)) return this.paths.restore(key, original);
    if ((await this.differsFromOriginal(key, original.was)) !== undefined)
      await this.write(key.slice(PREFIX.length), String(original.was));
  }

  async differsFromOriginal(key: string, was: Json): Promise<string | undefined> {
    if (!key.startsWith(PREFIX)) return this.paths.differs(key, was);
    const now = await this.read(key.slice(PREFIX.length));
    return words(now) === words(String(was)) ? undefined : `is ${words(now)}, but was ${words(String(was))} before`;
  }

  async apply(entry: ConfigEntry): Promise<void> {
    const { key, value } = settingOf(entry);
    await ensureFile(this.surroundings.root, filePath(key), contentOf(entry), ASKED);
    if (words(await this.read(key)) !== words(value)) await this.write(key, value);
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    const { key, value } = settingOf(entry);
    if (await this.fileDiffers(entry)) return `${filePath(key)} differs from what Sluice wrote`;
    const now = words(await this.read(key));
    return now === words(value) ? undefined : `is ${now} instead of ${words(value)}`;
  }

  private async fileDiffers(entry: ConfigEntry): Promise<boolean> {
    const path = filePath(this.title(entry));
    return (await fileDiffers(this.surroundings.root, path, contentOf(entry), ASKED)) !== undefined;
  }

  private async value(key: string): Promise<Original> {
    return { kind: this.kind, was: await this.read(key.slice(PREFIX.length)), made: [] };
  }

  private async read(key: string): Promise<string> {
    try {
      return await readFile(this.procPath(key), 'utf8');
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR' || codeOf(error) === 'EISDIR')
        throw new RefusedError('content', `the kernel has no parameter ${key}`);
      throw error;
    }
  }

  /** In one call of write(2), because the kernel reads a value as a whole. */
  private async write(key: string, value: string): Promise<void> {
    try {
      await writeFile(this.procPath(key), `${value.trim()}\n`, { flag: OVERWRITE });
    } catch (error) {
      if (codeOf(error) === 'EINVAL' || codeOf(error) === 'ERANGE')
        throw new RefusedError('content', `the kernel rejects ${words(value)} for ${key}`);
      throw error;
    }
  }

  private procPath(key: string): string {
    return join(this.proc, 'sys', ...key.split('.').map((part) => part.replaceAll('/', '.')));
  }
}

/** Available if the kernel's parameters can be written. */
export const sysctlBackend: BackendFactory = {
  // The mode of the folders in /proc/sys never allows writing, so a parameter that every kernel has is tried.
  capabilities: ({ host }) =>
    host.proc === undefined || !mayWrite(join(host.proc, 'sys/vm/swappiness')) ? [] : ['kind:Sysctl'],
  create: (surroundings) =>
    surroundings.host.proc === undefined ? undefined : new SysctlBackend(surroundings, surroundings.host.proc),
};

/** After all files of distributions: the last file that sets a parameter wins. */
const filePath = (key: string): string => `/etc/sysctl.d/99-zz-sluice-${key.replaceAll('/', '~')}.conf`;

function settingOf({ spec }: ConfigEntry): { readonly key: string; readonly value: string } {
  const { key, value } = spec;
  if (typeof key !== 'string' || key.length > 200 || !KEY.test(key))
    throw new RefusedError('content', `key ${JSON.stringify(key)} is not the name of a kernel parameter`);
  if (typeof value !== 'string' || value.trim() === '' || /[\n\r\0]/.test(value))
    throw new RefusedError('content', `value ${JSON.stringify(value)} is not one line of text`);
  return { key, value };
}

function contentOf(entry: ConfigEntry): Content {
  const { key, value } = settingOf(entry);
  return bytesContent(Buffer.from(`# Sluice: Sysctl/${entry.name}\n${key} = ${value.trim()}\n`, 'utf8'));
}

/** Some parameters consist of several numbers, which the kernel separates by tabs. */
const words = (text: string): string => text.trim().split(/\s+/).join(' ');
