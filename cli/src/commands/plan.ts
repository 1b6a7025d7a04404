import type { PlanAnswer } from '#libs/contracts';
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
    return await allPages(session, documents, strict);
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
