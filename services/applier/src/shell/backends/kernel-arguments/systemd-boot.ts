import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Surroundings } from '../../ports.js';
import { blocksOf, withBlock, withoutBlocks } from '../marked-block.js';
import { putFile } from '../paths/path-changes.js';
import { contentAt, pathStateAt } from '../paths/path-state.js';
import type { BootLoader } from './boot-loader.js';

/** The folders of loader entries that bootctl searches. */
const FOLDERS = ['/boot/loader/entries', '/efi/loader/entries', '/boot/efi/loader/entries'];

/**
 * systemd-boot: a marked `options` line in each loader entry, because all such lines of an entry count together. The
 * entry of a kernel that is installed later lacks it. That is drift, and is repaired.
 */
export class SystemdBoot implements BootLoader {
  constructor(
    private readonly surroundings: Surroundings,
    private readonly folder: string,
  ) {}

  fileOf(): undefined {
    return undefined;
  }

  async differs(name: string, args: readonly string[]): Promise<string | undefined> {
    const line = lineOf(args);
    for (const path of this.entries()) {
      const [lines = [], ...more] = blocksOf(await this.textAt(path), mark(name));
      if (lines.length !== 1 || lines[0] !== line || more.length > 0) return `${path} does not have ${args.join(' ')}`;
    }
    return undefined;
  }

  async put(name: string, args: readonly string[]): Promise<void> {
    await this.change((text) => withBlock(text, mark(name), [lineOf(args)]));
  }

  async remains(name: string): Promise<string | undefined> {
    for (const path of this.entries())
      if (blocksOf(await this.textAt(path), mark(name)).length > 0) return `its arguments are still in ${path}`;
    return undefined;
  }

  async clear(name: string): Promise<void> {
    await this.change((text) => withoutBlocks(text, mark(name)));
  }

  private async change(changed: (text: string) => string): Promise<void> {
    const { root } = this.surroundings;
    for (const path of this.entries()) {
      const [text, now] = [await this.textAt(path), await pathStateAt(root, path)];
      const next = changed(text);
      if (now.state === 'file' && next !== text) await putFile(root, path, Buffer.from(next, 'latin1'));
    }
  }

  private entries(): readonly string[] {
    return readdirSync(join(this.surroundings.root, this.folder))
      .filter((name) => name.endsWith('.conf'))
      .sort()
      .map((name) => `${this.folder}/${name}`);
  }

  private async textAt(path: string): Promise<string> {
    const content = await contentAt(this.surroundings.root, path);
    if (content === undefined) throw new Error(`${path} is not a file`);
    return content.toString('latin1');
  }
}

/** The folder of the loader entries below a root; undefined if there is none. */
export const loaderEntries = (root: string): string | undefined =>
  FOLDERS.find((folder) => {
    const path = join(root, folder);
    return existsSync(path) && readdirSync(path).some((name) => name.endsWith('.conf'));
  });

const mark = (name: string): string => `KernelArguments/${name}`;
const lineOf = (args: readonly string[]): string => `options ${args.join(' ')}`;
