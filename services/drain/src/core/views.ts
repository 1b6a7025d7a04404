import { nodeOfToken, nodeToken, type DrainView } from '#libs/contracts';
import { viewKey, type ViewBody, type ViewKey } from '#libs/engine';
import { drainUnderWay, type Block, type Drain, type Progress, type State } from './state.js';

/** A block as facts and views write it. */
export function writtenBlock({ reason, budget, pods, since }: Block) {
  return { reason, budget: budget?.name ?? '', allowed: budget?.allowed ?? 0, pods: [...pods], since };
}

const NO_BLOCK: Block = { reason: '', budget: undefined, pods: [], since: '' };

/** Stores the progress of a drain for the view. Returns false if nothing has changed, or the drain is over. */
export function noteProgress(state: State, node: string, progress: Progress): boolean {
  if (drainUnderWay(state, node, progress.lease) === undefined) return false;
  if (JSON.stringify(state.progress.get(node)) === JSON.stringify(progress)) return false;
  state.progress.set(node, progress);
  state.touched.add(viewKey('drains', nodeToken(node)));
  return true;
}

/** The value of one key of the bucket `drains`. */
export function view(state: State, { key }: ViewKey): ViewBody | undefined {
  const drain = state.drains.get(nodeOfToken(key));
  if (drain === undefined) return undefined;
  const { node, pool, change, lease, since } = drain;
  const latest = state.progress.get(node);
  const progress = latest?.lease === lease && drain.phase === 'draining' ? latest : undefined;
  const { pods: blocked, since: blockedSince, ...block } = writtenBlock(progress?.block ?? NO_BLOCK);
  const view: Omit<DrainView, 'ledger'> = {
    node,
    pool,
    change,
    lease,
    since,
    strategy: state.strategy,
    state: shownState(drain),
    total: progress?.total ?? 0,
    evicted: progress?.evicted ?? 0,
    waitingFor: [...(progress?.waitingFor ?? [])],
    ...block,
    blocked,
    blockedSince,
  };
  return view;
}

const shownState = ({ phase }: Drain): DrainView['state'] => (phase === 'uncordoning' ? 'drained' : phase);
