import { isOverwritten, type PlanAnswer, type PoolView, type Reason } from '#libs/contracts';
import { EXIT, RejectedError, type ExitCode } from '../output/exit.js';
import { checkSize, readManifestInput } from '../input/manifest-input.js';
import { planScreen } from '../output/plan.js';
import type { Session } from '../connection/session.js';

const EMPTY: PlanAnswer = { rejected: [], warnings: [], waitsFor: [], nodes: [], pools: {}, touched: 0, unchanged: 0 };

/** `sluice plan -f PATH`: what would happen if this were applied now; changes nothing. */
export async function plan(session: Session, { filename = [], strict = false }: PlanFlags): Promise<ExitCode> {
  const answer = await askPlan(session, filename, strict);
  session.io.out(session.isJson ? JSON.stringify(answer) : planScreen(answer, session.io.colours));
  return answer.rejected.length > 0 ? EXIT.rejected : EXIT.done;
}

interface PlanFlags {
  readonly filename?: readonly string[];
  /** A warning rejects the change. */
  readonly strict?: boolean;
}

async function askPlan(session: Session, paths: readonly string[], strict: boolean): Promise<PlanAnswer> {
  try {
    const { documents } = await readManifestInput(paths, session.io);
    return await withDrift(session, await allPages(session, documents, strict));
  } catch (error) {
    if (!(error instanceof RejectedError)) throw error;
    return { ...EMPTY, rejected: error.reasons };
  }
}

async function allPages(session: Session, documents: readonly unknown[], strict: boolean): Promise<PlanAnswer> {
  checkSize(JSON.stringify({ apply: documents, delete: [] }));
  const fleet = await session.fleet();
  let joined: PlanAnswer | undefined;
  let cursor: string | undefined;
  do {
    const page: Partial<PlanAnswer> & { readonly next?: string } = await fleet.request('ops.config.plan', {
      apply: documents,
      delete: [],
      ...(strict ? { strategy: { strict } } : {}),
      ...(cursor === undefined ? {} : { cursor }),
    });
    const { next, ...part } = page;
    joined =
      joined === undefined ? { ...EMPTY, ...part } : { ...joined, nodes: [...joined.nodes, ...(part.nodes ?? [])] };
    cursor = next;
  } while (cursor !== undefined && cursor !== '');
  return joined;
}

/** Warns of nodes that the change passes by, because it would overwrite their drift. Only the scheduler knows drift. */
async function withDrift(session: Session, answer: PlanAnswer): Promise<PlanAnswer> {
  if (answer.nodes.length === 0) return answer;
  const fleet = await session.fleet();
  const [statuses, pools] = await Promise.all([fleet.list('status'), fleet.list('pools')]);
  const kept = new Set(
    [...statuses.values()]
      .filter(({ drifted, restored, pool }) => restored && drifted.some(isOverwritten) && keeps(pools.get(pool)))
      .map(({ node }) => node),
  );
  const nodes = answer.nodes.map(({ node }) => node).filter((node) => kept.has(node));
  if (nodes.length === 0) return answer;
  const count = nodes.length === 1 ? '1 node is' : `${nodes.length} nodes are`;
  const message = `${count} deferred until the drift there is undone, or the pool says drift: overwrite: see sluice get drift`;
  const warning: Reason = { fragment: '', field: '', code: 'drift', message, nodes: nodes.slice(0, SHOWN) };
  return { ...answer, warnings: [...answer.warnings, warning] };
}

const SHOWN = 3;
const keeps = (pool: PoolView | undefined): boolean => (pool?.drift ?? 'report') === 'report';
