import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import type { Json, Original } from '../../../core/index.js';
import { mayWrite } from '../../host/host.js';
import { RefusedError, type Backend, type BackendFactory, type SaveContext, type Surroundings } from '../../ports.js';
import { PathOriginals } from '../paths/path-originals.js';
import type { BootLoader } from './boot-loader.js';
import { Grub } from './grub.js';
import { loaderEntries, SystemdBoot } from './systemd-boot.js';

const PREFIX = 'kernel-arguments:';
const ARGUMENT = /^[A-Za-z0-9_][A-Za-z0-9_.,:;/=+@%~^-]*$/;
const BACK_MS = 120_000;

/**
 * `KernelArguments {arguments}`: stored in the boot loader's config for the next boot, and in force once the running
 * kernel has them.
 */
class KernelArgumentsBackend implements Backend {
  readonly kind = 'KernelArguments';
  private readonly paths: PathOriginals;

  constructor(
    private readonly surroundings: Surroundings,
    private readonly loader: BootLoader,
    private readonly proc: string,
  ) {
    this.paths = new PathOriginals(this.kind, surroundings);
  }

  /** The set is removed after its file is restored: `path:` comes first in that order. */
  resources(entry: ConfigEntry): readonly string[] {
    const file = this.loader.fileOf(entry.name);
    return [`${PREFIX}${entry.name}`, ...(file === undefined ? [] : [this.surroundings.aliases.key(file)])];
  }

  title(entry: ConfigEntry): string {
    return `KernelArguments/${entry.name}`;
  }

  check(entry: ConfigEntry): Promise<void> {
    argumentsOf(entry);
    return Promise.resolve();
  }

  async original(key: string, _entry: ConfigEntry, saving: SaveContext): Promise<Original> {
    if (!key.startsWith(PREFIX)) return this.paths.read(key, saving);
    return { kind: this.kind, was: null, made: [] };
  }

  async restore(key: string, original: Original): Promise<void> {
    if (!key.startsWith(PREFIX)) return this.paths.restore(key, original);
    await this.loader.clear(key.slice(PREFIX.length), BACK_MS);
  }

  /** The arguments of the running kernel are not checked: removing a set needs a reboot, which the boot id shows. */
  async differsFromOriginal(key: string, was: Json): Promise<string | undefined> {
    return key.startsWith(PREFIX) ? this.loader.remains(key.slice(PREFIX.length)) : this.paths.differs(key, was);
  }

  async apply(entry: ConfigEntry, leftMs: () => number): Promise<void> {
    const args = argumentsOf(entry);
    if ((await this.loader.differs(entry.name, args)) !== undefined) await this.loader.put(entry.name, args, leftMs());
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    const args = argumentsOf(entry);
    const how = await this.loader.differs(entry.name, args);
    if (how !== undefined) return how;
    const running = await this.running();
    const missing = args.filter((arg) => !running.includes(arg));
    return missing.length === 0 ? undefined : `the kernel runs without ${missing.join(' ')}`;
  }

  private async running(): Promise<readonly string[]> {
    return (await readFile(join(this.proc, 'cmdline'), 'utf8')).trim().split(/\s+/);
  }
}

/** Available if there is a supported boot loader, and the machine may reboot. */
export const kernelArgumentsBackend: BackendFactory = {
  capabilities: (surroundings) => (partsFor(surroundings) === undefined ? [] : ['kind:KernelArguments']),
  create: (surroundings) => {
    const parts = partsFor(surroundings);
    return parts === undefined ? undefined : new KernelArgumentsBackend(surroundings, parts.loader, parts.proc);
  },
};

function partsFor(surroundings: Surroundings): { readonly loader: BootLoader; readonly proc: string } | undefined {
  const { host, root } = surroundings;
  if (host.proc === undefined || host.rebootCommand.length === 0) return undefined;
  const entries = loaderEntries(root);
  if (entries !== undefined && mayWrite(join(root, entries)))
    return { loader: new SystemdBoot(surroundings, entries), proc: host.proc };
  if (
    host.updateGrub === undefined ||
    !existsSync(join(root, 'etc/default/grub')) ||
    !mayWrite(join(root, 'boot/grub'))
  )
    return undefined;
  return { loader: new Grub(surroundings, host.updateGrub), proc: host.proc };
}

function argumentsOf({ spec }: ConfigEntry): readonly string[] {
  const args = spec['arguments'];
  if (
    !Array.isArray(args) ||
    args.length === 0 ||
    !args.every((arg) => typeof arg === 'string' && ARGUMENT.test(arg))
  ) {
    throw new RefusedError('content', 'arguments must be a list of single kernel arguments');
  }
  return args as readonly string[];
}
