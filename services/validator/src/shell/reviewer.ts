import { Injectable } from '@nestjs/common';
import { decodeConfig, type Config } from '#libs/contracts';
import type { Blobs } from '#libs/bus';
import { inSlices } from '#libs/runtime';
import { policiesOf } from '#libs/policy';
import {
  reviewNodes,
  reviewTargets,
  type Material,
  type Reviewed,
  type ReviewNeed,
  type State,
} from '../core/index.js';

/** Reads at once: as many configs as a round trip to the server is worth. */
const WIDTH = 256;

/** Reads the configs that a review is about, and reviews them. */
@Injectable()
export class Reviewer {
  constructor(private readonly blobs: Blobs) {}

  async gather(needs: readonly ReviewNeed[], state: State): Promise<ReadonlyMap<string, Reviewed>> {
    const found = new Map<string, Reviewed>();
    for (const need of needs) found.set(need.key, await this.one(need, state));
    return found;
  }

  private async one(need: ReviewNeed, state: State): Promise<Reviewed> {
    if (need.do === 'review-nodes')
      return reviewNodes(need.nodes, this.material(state, '', await this.read(need.nodes)));
    const wanted = Object.entries(need.targets).flatMap(([node, { from, to }]) => [
      { node, hash: to },
      ...(from === '' ? [] : [{ node, hash: from }]),
    ]);
    return inSlices(reviewTargets(need.targets, this.material(state, need.change, await this.read(wanted))));
  }

  private material(state: State, change: string, configs: ReadonlyMap<string, Config>): Material {
    return {
      config: (_node, hash) => configs.get(hash),
      capabilities: (node) => state.capabilities.get(node) ?? [],
      labels: (node) => state.labels.get(node) ?? {},
      policies: policiesOf('DisruptionPolicy', state.policies.values(), state.carried.get(change)),
    };
  }

  /** By hash: the same hash is the same content on every node, and is read and checked once. */
  private async read(
    wanted: readonly { readonly node: string; readonly hash: string }[],
  ): Promise<ReadonlyMap<string, Config>> {
    const first = new Map(wanted.map(({ node, hash }) => [hash, node]));
    const configs = new Map<string, Config>();
    const queue = [...first];
    const readers = Array.from({ length: Math.min(WIDTH, queue.length) }, async () => {
      for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
        const text = await this.blobs.config(next[1], next[0]);
        // What is no config is as good as none: the review says which is missing.
        const config = text === undefined ? undefined : decodeConfig(text);
        if (config !== undefined) configs.set(next[0], config);
      }
    });
    await Promise.all(readers);
    return configs;
  }
}
