import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Digest } from '#libs/kernel';
import type { Blobs } from '#libs/bus';
import { inSlices } from '#libs/runtime';
import { planChange, renderChange, renderNodes, type Gathered, type RenderNeed, type State } from '../core/index.js';

export const sha256: Digest = (text) => createHash('sha256').update(text).digest('hex');

type Plan = (Gathered & { readonly did: 'plan' })['plan'];
/** So many people may page through plans at once. */
const KEPT_PLANS = 4;

/** Renders, and writes what it rendered before any fact names it. */
@Injectable()
export class Renderer {
  private readonly plans = new Map<string, Plan>();

  constructor(private readonly blobs: Blobs) {}

  async gather(needs: readonly RenderNeed[], state: State): Promise<ReadonlyMap<string, Gathered>> {
    const found = new Map<string, Gathered>();
    for (const need of needs) found.set(need.key, await this.one(need, state));
    return found;
  }

  private async one(need: RenderNeed, state: State): Promise<Gathered> {
    switch (need.do) {
      case 'render-change':
        return this.change(need.change, need.replaces, state);
      case 'render-nodes': {
        const nodes = renderNodes(state, need.nodes, sha256);
        await this.blobs.putConfigs(nodes.filter(({ hash }) => hash !== ''));
        return { did: 'render-nodes', nodes };
      }
      case 'plan':
        return { did: 'plan', plan: await this.plan(need.body, need.again, state) };
    }
  }

  /** A plan of ten thousand nodes has many pages, and is worked out once for all of them. */
  private async plan(body: unknown, again: boolean, state: State): Promise<Plan> {
    const id = sha256(JSON.stringify(body));
    const known = again ? this.plans.get(id) : undefined;
    if (known !== undefined) return known;
    const plan = await inSlices(planChange(state, body, sha256));
    this.plans.delete(id);
    this.plans.set(id, plan);
    for (const oldest of [...this.plans.keys()].slice(0, -KEPT_PLANS)) this.plans.delete(oldest);
    return plan;
  }

  private async change(name: string, replaces: readonly string[], state: State): Promise<Gathered> {
    const change = state.changes.get(name);
    if (change === undefined) throw new Error(`${name} is to be rendered, and is not known`);
    const { texts, ...rendering } = await inSlices(renderChange(state, change, replaces, sha256));
    const { targets } = rendering;
    await this.blobs.putConfigs([...texts].map(([node, text]) => ({ node, text, hash: targets[node]?.to ?? '' })));
    return { did: 'render-change', rendering, blobs: await this.blobs.putTargets(name, targets), targets };
  }
}
