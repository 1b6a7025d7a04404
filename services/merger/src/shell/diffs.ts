import { Injectable } from '@nestjs/common';
import { decodeConfig, type Config } from '#libs/contracts';
import type { Answer } from '#libs/kernel';
import { readView, type Blobs, type Bus } from '#libs/bus';

/** Shows two configs of a node beside each other: what it has and what it shall have, or any two by hash. */
@Injectable()
export class Diffs {
  constructor(private readonly bus: Bus, private readonly blobs: Blobs) {}

  async diff(node: string, from: string | undefined, to: string | undefined): Promise<Answer> {
    const status = from === undefined || to === undefined ? await readView(this.bus, 'status', node) : undefined;
    if (status === undefined && (from === undefined || to === undefined)) return notFound(`nothing is known of a node ${node}`);
    const hashes = { from: from ?? status?.hash ?? '', to: to ?? status?.desired ?? '' };
    const [fromConfig, toConfig] = await Promise.all([this.config(node, hashes.from), this.config(node, hashes.to)]);
    if (fromConfig === undefined) return notFound(`the config ${hashes.from} of ${node} is not in the bucket configs`);
    if (toConfig === undefined) return notFound(`the config ${hashes.to} of ${node} is not in the bucket configs`);
    return { ok: true, body: { node, ...hashes, fromConfig, toConfig } };
  }

  private async config(node: string, hash: string): Promise<Config | undefined> {
    if (hash === '') return undefined;
    const text = await this.blobs.config(node, hash);
    return text === undefined ? undefined : (decodeConfig(text));
  }
}

const notFound = (message: string): Answer => ({ ok: false, code: 'not-found', message });
