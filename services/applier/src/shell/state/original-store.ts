import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { mkdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { contentOf, isMissing, writeWhole } from './whole-file.js';

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
    for (const name of this.names()) if (!digests.has(name)) await unlink(join(this.folder, name));
  }

  private async find(digest: string): Promise<Buffer | undefined> {
    if (!DIGEST.test(digest)) return undefined;
    const content = await contentOf(join(this.folder, digest));
    return content !== undefined && sha256(content) === digest ? content : undefined;
  }

  private names(): readonly string[] {
    try {
      return readdirSync(this.folder);
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }
}

export const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');
