import { readOwn } from './own-file.js';
import { writeWhole } from './whole-file.js';

/** Nodes have fewer objects. */
const MOST_SIZES = 1_000;

/**
 * The sizes of objects in bytes, by sha256: a file of another size does not have to be read to see that it differs. The
 * owner of a file can make it larger than the disk, and reading it would take hours.
 */
export class ObjectSizes {
  /** The sizes of objects that this node has read itself, oldest first. */
  private known: Map<string, number> | undefined;
  /** The sizes in the object store, of objects that this node has not had yet. */
  private readonly sizes = new Map<string, number>();

  constructor(private readonly path: string) {}

  /** Undefined if it is not known. */
  of(sha256: string): number | undefined {
    return this.load().get(sha256) ?? this.sizes.get(sha256);
  }

  tell(sha256: string, bytes: number): void {
    if (this.sizes.size === MOST_SIZES) this.sizes.clear();
    this.sizes.set(sha256, bytes);
  }

  /** Also for the next process. If it cannot be written, that process has to read the file once more. */
  async learn(sha256: string, bytes: number): Promise<void> {
    const known = this.load();
    if (known.get(sha256) === bytes) return;
    known.set(sha256, bytes);
    const [oldest] = known.keys();
    if (known.size > MOST_SIZES && oldest !== undefined) known.delete(oldest);
    await writeWhole(this.path, JSON.stringify(Object.fromEntries(known))).catch(() => undefined);
  }

  private load(): Map<string, number> {
    this.known ??= read(this.path);
    return this.known;
  }
}

/** Empty if the file does not exist or is damaged: sizes are learned again. */
function read(path: string): Map<string, number> {
  try {
    const sizes = Object.entries(JSON.parse(readOwn(path)) as object);
    return new Map(sizes.filter((size): size is [string, number] => Number.isSafeInteger(size[1])));
  } catch {
    return new Map();
  }
}
