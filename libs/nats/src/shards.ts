import { nuid } from '@nats-io/nats-core';
import { createHash } from 'node:crypto';
import { LEADERS } from '#libs/contracts';
import type { Logger } from '#libs/process';
import type { Bus } from './connection.js';
import { Election } from './election.js';
import { kvStream, kvSubject } from './topology.js';

export interface ShardsOptions {
  readonly bus: Bus;
  /** What is shared, such as `functions`. */
  readonly name: string;
  readonly count: number;
  readonly ttlMs: number;
  readonly logger: Logger;
  /** Called whenever this copy begins or ceases to lead a shard. */
  readonly onChange: (shard: number, leads: boolean) => void;
}

/**
 * Shares work among copies: each shard has one leader. Every copy shows with a key that it is there, and the copy with
 * the highest hash for a shard runs for election in it (rendezvous hashing, Thaler and Ravishankar 1998). So a copy
 * that joins or leaves moves only its own shards. A copy that hangs loses its shards as soon as another one takes them,
 * and none if it is the only one.
 */
export class Shards {
  private readonly id = nuid.next();
  private readonly elections: readonly Election[];
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(private readonly options: ShardsOptions) {
    const { bus, name, count, ttlMs, logger, onChange } = options;
    this.elections = Array.from(
      { length: count },
      (_, shard) =>
        new Election({
          bus,
          name: `${name}-${shard}`,
          ttlMs,
          logger,
          leadsUntilReplaced: true,
          onChange: (leads) => onChange(shard, leads),
        }),
    );
  }

  async start(): Promise<void> {
    await this.share();
    for (const election of this.elections) election.start();
  }

  /** Gives up all shards, so that other copies lead them at once. Hand the work over before. */
  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    await Promise.all(this.elections.map((election) => election.stop()));
    const { bus } = this.options;
    await bus.jsm.streams.purge(kvStream(LEADERS), { filter: this.key(this.id) }).catch(() => undefined);
  }

  /** Shows that this copy is there, and runs for election where it should lead. */
  private async share(): Promise<void> {
    const { bus, ttlMs, logger, name } = this.options;
    try {
      await bus.publish(this.key(this.id), this.id);
      const copies = await this.copies();
      for (const [shard, election] of this.elections.entries())
        election.stand(preferred(copies, `${name}-${shard}`) === this.id);
    } catch (error) {
      logger.debug({ error }, 'the copies of this process are not known; keeping the shards');
    }
    if (!this.isStopped) this.timer = setTimeout(() => void this.share(), ttlMs / 3);
  }

  private async copies(): Promise<readonly string[]> {
    const { state } = await this.options.bus.streamInfo(kvStream(LEADERS), { subjects_filter: this.key('*') });
    const ids = Object.keys(state.subjects ?? {}).map((subject) => subject.slice(subject.lastIndexOf('.') + 1));
    return [...new Set([...ids, this.id])];
  }

  private key(id: string): string {
    return kvSubject(LEADERS, `copies.${this.options.name}.${id}`);
  }
}

/** The copy that should lead a shard. */
export function preferred(copies: readonly string[], shard: string): string | undefined {
  const weight = (copy: string): string => createHash('sha256').update(`${copy} ${shard}`).digest('hex');
  return [...copies].sort((a, b) => (weight(a) < weight(b) ? 1 : -1))[0];
}
