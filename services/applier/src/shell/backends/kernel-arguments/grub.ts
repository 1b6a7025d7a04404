import { runCommand } from '../../command.js';
import type { Surroundings } from '../../ports.js';
import { removeLeftovers, putFile } from '../paths/path-changes.js';
import { fileAt } from '../paths/path-state.js';
import type { BootLoader } from './boot-loader.js';

const GENERATED = '/boot/grub/grub.cfg';
const MODE = 0o644;

/**
 * GRUB as in Debian: one file per set in /etc/default/grub.d, and `update-grub`, which generates grub.cfg from all of
 * them.
 */
export class Grub implements BootLoader {
  constructor(
    private readonly surroundings: Surroundings,
    private readonly updateGrub: readonly string[],
  ) {}

  fileOf(name: string): string {
    return `/etc/default/grub.d/90-sluice-${name}.cfg`;
  }

  async differs(name: string, args: readonly string[]): Promise<string | undefined> {
    if ((await this.textAt(this.fileOf(name))) !== contentOf(name, args))
      return `${this.fileOf(name)} differs from what Sluice wrote`;
    const words = new Set(((await this.textAt(GENERATED)) ?? '').split(/\s+/));
    const missing = args.filter((arg) => !words.has(arg));
    return missing.length === 0 ? undefined : `${GENERATED} does not have ${missing.join(' ')}`;
  }

  async put(name: string, args: readonly string[], timeoutMs: number): Promise<void> {
    const { root } = this.surroundings;
    if ((await this.textAt(this.fileOf(name))) === contentOf(name, args))
      await removeLeftovers(root, this.fileOf(name));
    else await putFile(root, this.fileOf(name), Buffer.from(contentOf(name, args)), { mode: MODE });
    await this.update(timeoutMs);
  }

  remains(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  clear(_name: string, timeoutMs: number): Promise<void> {
    return this.update(timeoutMs);
  }

  private async update(timeoutMs: number): Promise<void> {
    const { root, ending } = this.surroundings;
    if (timeoutMs <= 0) throw new Error('not enough time for update-grub');
    const { passed, reason } = await runCommand(this.updateGrub, { root, timeoutMs, ending });
    if (!passed) throw new Error(reason);
  }

  private async textAt(path: string): Promise<string | undefined> {
    const { root } = this.surroundings;
    return (await fileAt(root, path, { wants: () => true })).content?.toString('utf8');
  }
}

const contentOf = (name: string, args: readonly string[]): string =>
  `# Sluice: KernelArguments/${name}\nGRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX ${args.join(' ')}"\n`;
