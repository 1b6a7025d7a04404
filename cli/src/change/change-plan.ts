import type { FragmentRef, PlanAnswer } from '#libs/contracts';
import { strategyOf, type StrategyFlags } from './strategy.js';
import { checkSize } from '../input/manifest-input.js';
import { SOURCE, type Session } from '../connection/session.js';

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
