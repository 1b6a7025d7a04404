import { nodeOfToken, nodeToken, type DrainView } from '#libs/contracts';
import { viewKey, type ViewBody, type ViewKey } from '#libs/engine';
import { drainUnderWay, type Drain, type Progress, type State } from './state.js';

const NONE: Omit<Progress, 'lease'> = {
  total: 0,
  evicted: 0,
  waitingFor: [],
  reason: '',
  budget: '',
  allowed: 0,
  blocked: [],
  blockedSince: '',
};

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
  const seen = state.progress.get(node);
  const { lease: _, ...progress } = seen?.lease === lease && drain.phase === 'draining' ? seen : { lease, ...NONE };
  const shown: Omit<DrainView, 'ledger'> = {
    node,
    pool,
    change,
    lease,
    since,
    strategy: state.strategy,
    state: shownState(drain),
    ...progress,
    waitingFor: [...progress.waitingFor],
    blocked: [...progress.blocked],
  };
  return shown;
}

const shownState = ({ phase }: Drain): DrainView['state'] => (phase === 'uncordoning' ? 'drained' : phase);
