import { dirname } from 'node:path';
import type { ConfigEntry } from '#libs/contracts';
import type { Item } from '../core/index.js';
import { PATH_PREFIX, pathOfKey } from './backends/paths/aliases.js';
import type { FileSystems } from './backends/paths/file-systems.js';
import { DIRECTORY } from './backends/paths/kind-change.js';
import type { Backend } from './ports.js';

/** Resources of one kind. */
export interface Resources {
  readonly kind: string;
  readonly keys: readonly string[];
}

/**
 * Tries the file systems of resources: one that does not answer must neither hang the applier, nor keep other paths
 * from being restored.
 */
export class ResourceFolders {
  constructor(
    private readonly fileSystems: FileSystems | undefined,
    private readonly backends: ReadonlyMap<string, Backend>,
  ) {}

  of(entry: ConfigEntry): Resources {
    return { kind: entry.kind, keys: this.backends.get(entry.kind)?.resources(entry) ?? [] };
  }

  ofItem(item: Item): Resources {
    return item.do === 'apply' ? this.of(item.entry) : { kind: item.original.kind, keys: [item.key] };
  }

  /** Tries many together, which takes one process instead of many. */
  async tryAll(resources: readonly Resources[]): Promise<void> {
    if (this.fileSystems?.mayHang !== true) return;
    const folders = await Promise.all(resources.map((some) => this.foldersOf(some)));
    await this.fileSystems.tryAll(folders.flat());
  }

  /** Throws if a file system does not answer. */
  async requireAnswer(resources: Resources): Promise<void> {
    if (this.fileSystems?.mayHang !== true) return;
    for (const folder of await this.foldersOf(resources)) await this.fileSystems.requireAnswer(folder);
  }

  private async foldersOf({ kind, keys }: Resources): Promise<readonly string[]> {
    const folders = await Promise.all(
      keys.map((key) => {
        if (!key.startsWith(PATH_PREFIX)) return this.backends.get(kind)?.folderOf?.(key);
        return kind === DIRECTORY ? pathOfKey(key) : dirname(pathOfKey(key));
      }),
    );
    return folders.filter((folder) => folder !== undefined);
  }
}
