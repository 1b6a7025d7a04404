import type { ConfigEntry } from '#libs/contracts';
import type { Json, Original, Originals } from '../../../core/index.js';
import type { Backend, BackendFactory, Checked, Surroundings } from '../../ports.js';
import { checkPath, modeOf, octal, pathKey, PathOriginals } from '../paths/path-originals.js';
import { normalized } from '../paths/rooted-path.js';
import { putDirectory, standingAt } from '../paths/standing.js';

const DEFAULT_MODE = 0o755;

/** `Directory {path, mode}`: is there, with that mode; what is in it is not its business, and never removed with it. */
class DirectoryBackend implements Backend {
  readonly kind = 'Directory';
  private readonly originals: PathOriginals;

  constructor(private readonly surroundings: Surroundings) {
    this.originals = new PathOriginals(this.kind, surroundings);
  }

  resources(entry: ConfigEntry): readonly string[] {
    return [pathKey(entry.spec['path'])];
  }

  title(entry: ConfigEntry): string {
    return normalized(entry.spec['path']);
  }

  async check(entry: ConfigEntry, checked: Checked): Promise<void> {
    modeOf(entry, DEFAULT_MODE);
    await checkPath(this.surroundings.root, entry, checked, 'file', 'is a file');
  }

  original(key: string, known: Originals): Promise<Original> {
    return this.originals.read(key, known);
  }

  putBack(key: string, original: Original): Promise<void> {
    return this.originals.putBack(key, original);
  }

  differsFromOriginal(key: string, was: Json): Promise<string | undefined> {
    return this.originals.differs(key, was);
  }

  async apply(entry: ConfigEntry): Promise<void> {
    if ((await this.differs(entry)) === undefined) return;
    await putDirectory(this.surroundings.root, this.title(entry), modeOf(entry, DEFAULT_MODE));
  }

  async differs(entry: ConfigEntry): Promise<string | undefined> {
    const now = await standingAt(this.surroundings.root, this.title(entry));
    if (now.state !== 'directory') return now.state === 'absent' ? 'missing' : `is a ${now.state}`;
    const mode = modeOf(entry, DEFAULT_MODE);
    return now.mode === mode ? undefined : `mode ${octal(now.mode)} instead of ${octal(mode)}`;
  }
}

export const directoryBackend: BackendFactory = {
  kind: 'Directory',
  capabilities: () => ['kind:Directory'],
  create: (surroundings) => new DirectoryBackend(surroundings),
};
