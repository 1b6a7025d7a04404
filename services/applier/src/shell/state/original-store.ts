import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing, writeWhole } from './whole-file.js';

const DIGEST = /^[0-9a-f]{64}$/;

/** Contents of originals, by their sha256, in the state folder. */
export class OriginalStore {
  constructor(private readonly folder: string) {}

  async keep(content: Buffer): Promise<string> {
    const digest = sha256(content);
    if ((await this.find(digest)) !== undefined) return digest;
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    await writeWhole(join(this.folder, digest), content);
    return digest;
  }

  async content(digest: string): Promise<Buffer> {
    const content = await this.find(digest);
    if (content === undefined) throw new Error(`${join(this.folder, digest)} is lost or damaged`);
    return content;
  }

  /** Forgets all but these. */
  async tidy(digests: ReadonlySet<string>): Promise<void> {
    const names = await readdir(this.folder).catch((error: unknown) => (isMissing(error) ? [] : Promise.reject(error)));
    for (const name of names) if (!digests.has(name)) await unlink(join(this.folder, name));
  }

  private async find(digest: string): Promise<Buffer | undefined> {
    if (!DIGEST.test(digest)) return undefined;
    try {
      const content = await readFile(join(this.folder, digest));
      return sha256(content) === digest ? content : undefined;
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }
}

export const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');
