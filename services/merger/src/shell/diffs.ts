import { Injectable } from '@nestjs/common';
import { decodeConfig, type Config } from '#libs/contracts';
import type { Answer } from '#libs/kernel';
import { readView, type Blobs, type Bus } from '#libs/bus';

/** Shows two configs of a node beside each other: what it has and what it shall have, or any two by hash. */
@Injectable()
export class Diffs {
  constructor(
    private readonly bus: Bus,
    private readonly blobs: Blobs,
  ) {}

  async diff(node: string, from: string | undefined, to: string | undefined): Promise<Answer> {
    const status = from === undefined || to === undefined ? await readView(this.bus, 'status', node) : undefined;
    if (status === undefined && (from === undefined || to === undefined))
      return notFound(`nothing is known of a node ${node}`);
    const hashes = { from: from ?? status?.hash ?? '', to: to ?? status?.desired ?? '' };
    const [fromConfig, toConfig] = await Promise.all([this.config(node, hashes.from), this.config(node, hashes.to)]);
    if (fromConfig === undefined) return notFound(gone(node, hashes.from));
    if (toConfig === undefined) return notFound(gone(node, hashes.to));
    return { ok: true, body: { node, ...hashes, fromConfig, toConfig } };
  }

  private async config(node: string, hash: string): Promise<Config | undefined> {
    if (hash === '') return undefined;
    const text = await this.blobs.config(node, hash);
    return text === undefined ? undefined : decodeConfig(text);
  }
}

const gone = (node: string, hash: string): string =>
  hash === ''
    ? `${node} has no config that is known`
    : `the config ${hash} of ${node} is not in the bucket configs: nobody wrote it, or it is gone because nothing had named it for days`;
const notFound = (message: string): Answer => ({ ok: false, code: 'not-found', message });
