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
    const found = new Map<string, GatherResult>();
    for (const need of needs) found.set(need.key, yield* gatherOne(need, state));
    return found;
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
        return { did: 'plan', plan: yield* plan(need.body, need.again, state) };
    }
  }

  function* plan(body: unknown, again: boolean, state: State): Gathering<Plan> {
    const id = digest(JSON.stringify(body));
    const known = again ? plans.get(id) : undefined;
    if (known !== undefined) return known;
    const made = yield* planChange(state, body, digest);
    plans.delete(id);
    plans.set(id, made);
    for (const oldest of [...plans.keys()].slice(0, -MAX_PLANS)) plans.delete(oldest);
    return made;
  }
}

function* change(name: string, replaces: readonly string[], state: State, digest: Digest): Gathering<GatherResult> {
  const content = state.changes.get(name);
  if (content === undefined) throw new Error(`cannot render ${name}: unknown node`);
  const { texts, ...rendering } = yield* renderChange(state, content, replaces, digest);
  const { targets } = rendering;
  yield* putConfigs([...texts].map(([node, text]) => ({ node, text, hash: targets[node]?.to ?? '' })));
  return { did: 'render-change', rendering, blobs: yield* putTargets(name, targets), targets };
}
