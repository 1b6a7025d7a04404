import { isOverwritten, type FragmentRef, type PlanAnswer, type PoolView, type Reason } from '#libs/contracts';
import { strategyOf, type StrategyFlags } from './strategy.js';
import { checkSize } from '../input/manifest-input.js';
import { SOURCE, type Session } from '../connection/session.js';
import { count } from '../output/table.js';

/** What a change applies, as manifests, and what it deletes. */
export interface ChangeContent {
  readonly apply: readonly unknown[];
  readonly delete: readonly FragmentRef[];
}

export const EMPTY_PLAN: PlanAnswer = {
  rejected: [],
  warnings: [],
  waitsFor: [],
  nodes: [],
  pools: {},
  touched: 0,
  unchanged: 0,
};

/** Asks the merger what a change would do now, for all nodes. */
export async function requestPlan(
  session: Session,
  content: ChangeContent,
  { takeOver = false, ...strategy }: StrategyFlags & { readonly takeOver?: boolean },
): Promise<PlanAnswer> {
  checkSize(JSON.stringify(content));
  const fleet = await session.fleet();
  let joined: PlanAnswer | undefined;
  let cursor: string | undefined;
  do {
    const page: Partial<PlanAnswer> & { readonly next?: string } = await fleet.request('ops.config.plan', {
      ...content,
      source: SOURCE,
      takeOver,
      ...strategyOf(strategy),
      ...(cursor === undefined ? {} : { cursor }),
    });
    const { next, ...part } = page;
    joined =
      joined === undefined
        ? { ...EMPTY_PLAN, ...part }
        : { ...joined, nodes: [...joined.nodes, ...(part.nodes ?? [])] };
    cursor = next;
  } while (cursor !== undefined && cursor !== '');
  return joined;
}

/** What a plan depends on that only the scheduler knows. */
interface SchedulerViews {
  readonly pools: ReadonlyMap<string, PoolView>;
  /** The nodes with drift, and whether their pools let a change overwrite it. */
  readonly drift: ReadonlyMap<string, 'kept' | 'overwritten'>;
}

export const NO_VIEWS: SchedulerViews = { pools: new Map(), drift: new Map() };

export async function readSchedulerViews({ fleet }: Session): Promise<SchedulerViews> {
  const client = await fleet();
  const [statuses, pools] = await Promise.all([client.list('status'), client.list('pools')]);
  const drift = [...statuses.values()]
    .filter(({ drifted, restored }) => restored && drifted.some(isOverwritten))
    .map(({ node, pool }) => [node, keeps(pools.get(pool)) ? 'kept' : 'overwritten'] as const);
  return { pools, drift: new Map(drift) };
}

/** The nodes that a change would change and whose drift it would overwrite, or that it defers to keep their drift. */
const withDrift = (planned: PlanAnswer, { drift }: SchedulerViews, is: 'kept' | 'overwritten'): readonly string[] =>
  planned.nodes.map(({ node }) => node).filter((node) => drift.get(node) === is);

/** The plan with the nodes whose drift the change would overwrite. */
export function withOverwritten(planned: PlanAnswer, views: SchedulerViews): PlanAnswer {
  const overwritesDrift = withDrift(planned, views, 'overwritten');
  return overwritesDrift.length === 0 ? planned : { ...planned, overwritesDrift };
}

/** A warning about the nodes on which a change is deferred, because it would overwrite drift. */
export function driftWarnings(planned: PlanAnswer, views: SchedulerViews): readonly Reason[] {
  const nodes = withDrift(planned, views, 'kept');
  if (nodes.length === 0) return [];
  const message = `${count(nodes.length, 'node is', 'nodes are')} deferred until the drift there is undone, or the pool has drift: overwrite: see sluice get drift`;
  return [{ fragment: '', field: '', code: 'drift', message, nodes: nodes.slice(0, SHOWN) }];
}

const SHOWN = 3;
const keeps = (pool: PoolView | undefined): boolean => (pool?.drift ?? 'report') === 'report';
