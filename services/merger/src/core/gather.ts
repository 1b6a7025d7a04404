import { putConfigs, putTargets, type Digest, type Gathering } from '#libs/engine';
import { hashFragments } from './committed-digest.js';
import type { GatherResult, RenderNeed } from './inputs.js';
import { planChange } from './plan.js';
import { renderChange, renderNodes } from './rendering.js';
import type { State } from './state.js';

type Plan = (GatherResult & { readonly did: 'plan' })['plan'];
type GatherFunction = (needs: readonly RenderNeed[], state: State) => Gathering<ReadonlyMap<string, GatherResult>>;

/** How many plans are kept for paging at once. */
const MAX_PLANS = 4;

/**
 * Renders, and stores the results before a fact names them. A plan of ten thousand nodes has many pages, so it is
 * computed once and kept for all of them.
 */
export function gathering(digest: Digest): GatherFunction {
  const plans = new Map<string, Plan>();
  return function* gather(needs, state) {
    const results = new Map<string, GatherResult>();
    for (const need of needs) results.set(need.key, yield* gatherOne(need, state));
    return results;
  };

  function* gatherOne(need: RenderNeed, state: State): Gathering<GatherResult> {
    switch (need.do) {
      case 'render-change':
        return yield* change(need.change, need.replaces, state, digest);
      case 'render-nodes': {
        const nodes = yield* renderNodes(state, need.nodes, digest);
        yield* putConfigs(nodes.filter(({ hash }) => hash !== ''));
        return { did: 'render-nodes', nodes };
      }
      case 'hash-fragments':
        yield* hashFragments(state, digest);
        return { did: 'hash-fragments' };
      case 'plan':
        return { did: 'plan', plan: yield* plan(need, state) };
    }
  }

  function* plan(need: RenderNeed & { readonly do: 'plan' }, state: State): Gathering<Plan> {
    const id = digest(JSON.stringify([need.source, need.body]));
    const cached = need.again ? plans.get(id) : undefined;
    if (cached !== undefined) return cached;
    const plan = yield* planChange(state, need, digest);
    plans.delete(id);
    plans.set(id, plan);
    for (const oldest of [...plans.keys()].slice(0, -MAX_PLANS)) plans.delete(oldest);
    return plan;
  }
}

function* change(name: string, replaces: readonly string[], state: State, digest: Digest): Gathering<GatherResult> {
  const content = state.changes.get(name);
  if (content === undefined) throw new Error(`cannot render ${name}: unknown node`);
  const { texts, ...rendering } = yield* renderChange(state, content, replaces, digest);
  const { targets } = rendering;
  yield* putConfigs(Object.entries(targets).map(([node, { to }]) => ({ node, text: texts.get(node) ?? '', hash: to })));
  return { did: 'render-change', rendering, blobs: yield* putTargets(name, targets), targets };
}
