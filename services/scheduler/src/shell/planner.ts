import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { EMPTY_CONFIG, type Config } from '#libs/contracts';
import { effectivePolicy, planActions } from '#libs/actions';
import type { Blobs } from '#libs/bus';
import { emptyHash } from '#libs/rendering';
import type { Logger } from '#libs/runtime';
import type { Plan, PlanNeed } from '../core/index.js';

/** Configs that many nodes share are read once. */
const KEPT_CONFIGS = 2_000;

const EMPTY_HASH = emptyHash((text) => createHash('sha256').update(text).digest('hex'));

/** Plans the actions of leases from the configs' content. */
@Injectable()
export class Planner {
  private readonly configs = new Map<string, Config>();

  constructor(
    private readonly blobs: Blobs,
    private readonly logger: Logger,
  ) {}

  async gather(needs: readonly PlanNeed[]): Promise<ReadonlyMap<string, Plan>> {
    return new Map(await Promise.all(needs.map(async (need) => [need.key, await this.plan(need)] as const)));
  }

  private async plan({ node, from, to, policies, labels }: PlanNeed): Promise<Plan> {
    const [before, after] = await Promise.all([this.config(node, from), this.config(node, to)]);
    if (after === undefined)
      return {
        ok: false,
        only: node,
        reason: `the config ${to.slice(0, 12)} of ${node} is not in the bucket configs: nobody wrote it there, or somebody deleted it`,
      };
    const isMissing = before === undefined && from !== '' && from !== EMPTY_HASH;
    if (isMissing)
      this.logger.warn(
        { node, from, to },
        'what the node has in force is not in the bucket configs (nothing had named it for days): its lease is planned as if the node had nothing',
      );
    // A node may have something in force that no bucket knows any more: then everything is planned as new.
    return {
      ok: true,
      actions: planActions(before ?? EMPTY_CONFIG, after, effectivePolicy(policies, labels)).actions,
      ...(isMissing ? { only: node } : {}),
    };
  }

  private async config(node: string, hash: string): Promise<Config | undefined> {
    const known = this.configs.get(hash);
    if (known !== undefined) return known;
    const text = await this.blobs.config(node, hash);
    if (text === undefined) return undefined;
    const config = JSON.parse(text) as Config;
    if (this.configs.size >= KEPT_CONFIGS) this.configs.clear();
    this.configs.set(hash, config);
    return config;
  }
}
