import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { mkdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { contentOf, isMissing, writeWhole } from './whole-file.js';

const DIGEST = /^[0-9a-f]{64}$/;
const CONTENT_FILE = /^[0-9a-f]{64}(\.tmp)?$/;

/** Contents of originals, by their sha256, in the state folder. */
export class OriginalStore {
  constructor(private readonly folder: string) {}

  async keep(content: Buffer): Promise<string> {
    const digest = sha256(content);
    if ((await this.find(digest)) !== undefined) return digest;
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    await writeWhole(this.pathOf(digest), content);
    return digest;
  }

  async content(digest: string): Promise<Buffer> {
    const content = await this.find(digest);
    if (content === undefined) throw new Error(`${this.pathOf(digest)} is lost or damaged`);
    return content;
  }

  pathOf(digest: string): string {
    return join(this.folder, digest);
  }

  /** Forgets all but these. Gives what it could not remove, and why. */
  tidy(digests: ReadonlySet<string>): Promise<string[]> {
    return removeFrom(this.folder, (name) => CONTENT_FILE.test(name) && !digests.has(name));
  }

  private async find(digest: string): Promise<Buffer | undefined> {
    if (!DIGEST.test(digest)) return undefined;
    const content = await contentOf(this.pathOf(digest));
    return content !== undefined && sha256(content) === digest ? content : undefined;
  }
}

/** Removes files of a folder. Gives what it could not remove, and why. */
export async function removeFrom(folder: string, isOver: (name: string) => boolean): Promise<string[]> {
  const troubles: string[] = [];
  for (const name of namesIn(folder, troubles))
    if (isOver(name))
      await unlink(join(folder, name)).catch((error: unknown) => {
        if (!isMissing(error)) troubles.push((error as Error).message);
      });
  return troubles;
}

function namesIn(folder: string, troubles: string[]): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (!isMissing(error)) troubles.push((error as Error).message);
    return [];
  }
}

export const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');
