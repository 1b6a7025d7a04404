import type { NewObject } from '#libs/client';
import {
  fragmentId,
  wayOut,
  type Fragment,
  type PlanAnswer,
  type PlannedPool,
  type PoolView,
  type Reason,
} from '#libs/contracts';
import { objectRefOf } from '#libs/manifests/lean';
import { EXIT, RejectedError, type ExitCode } from '../output/exit.js';
import { EMPTY_PLAN, requestPlan } from '../change/change-plan.js';
import type { StrategyFlags } from '../change/strategy.js';
import { withDriftLooked } from '../change/drift-look.js';
import { lookFirst } from '../change/look-first.js';
import { readManifestInput } from '../input/manifest-input.js';
import { planScreen } from '../output/plan.js';
import type { Session } from '../connection/session.js';
import { objectSizes, objectText } from './get-objects.js';

/** `sluice plan -f PATH`: what would happen if this were applied now; changes nothing. */
export async function plan(session: Session, flags: PlanFlags): Promise<ExitCode> {
  const { answer, contents } = await askPlan(session, flags);
  const { io, isJson } = session;
  io.out(isJson ? JSON.stringify(answer) : [planScreen(answer, io.colours), ...contents].join('\n'));
  return answer.rejected.length > 0 ? EXIT.rejected : EXIT.done;
}

interface PlanFlags extends StrategyFlags {
  readonly filename?: readonly string[];
  /** The change may touch fragments that belong to other sources. */
  readonly takeOver?: boolean;
}

/** `contents`: what the manifests put into files, where that is in the object store. */
async function askPlan(
  session: Session,
  flags: PlanFlags,
): Promise<{ readonly answer: PlanAnswer; readonly contents: readonly string[] }> {
  try {
    const { documents, fragments, files } = await readManifestInput(flags.filename ?? [], session.io);
    const { found, unknown } = await lookFirst(session, fragments);
    const planned = await withDriftLooked(session, await requestPlan(session, { apply: documents, delete: [] }, flags));
    const pools = planned.nodes.length === 0 ? new Map() : await (await session.fleet()).list('pools');
    const known = planned.rejected.filter(isNotUploadedBy(files));
    // The merger has already added its warnings to what it would reject.
    const [rejected, warnings] =
      flags.strict === true ? [[...known, ...found], unknown] : [known, [...planned.warnings, ...found, ...unknown]];
    return {
      answer: withUnits({ ...planned, rejected, warnings }, pools),
      contents: await contentsOf(session, fragments, files),
    };
  } catch (error) {
    if (!(error instanceof RejectedError)) throw error;
    return { answer: { ...EMPTY_PLAN, rejected: error.reasons }, contents: [] };
  }
}

async function contentsOf(
  { fleet }: Session,
  fragments: readonly Fragment[],
  files: readonly NewObject[],
): Promise<readonly string[]> {
  const storedSizes = await objectSizes(await fleet(), fragments);
  const sizes = new Map([...storedSizes, ...files.map(({ sha256, bytes }) => [sha256, bytes] as const)]);
  return fragments.flatMap((fragment) => {
    const ref = objectRefOf(fragment);
    return ref === undefined ? [] : [`${fragmentId(fragment)}: ${objectText(ref, sizes)}`];
  });
}

/** `sluice apply` uploads these files first. */
export const isNotUploadedBy =
  (files: readonly NewObject[]) =>
  ({ code, message }: Reason): boolean =>
    code !== 'missing-object' || !files.some(({ sha256 }) => message.includes(sha256));

/** Adds which units of the pools are free. */
function withUnits(answer: PlanAnswer, pools: ReadonlyMap<string, PoolView>): PlanAnswer {
  const planned = Object.entries(answer.pools).map(([name, pool]) => [name, withFree(pool, pools.get(name))] as const);
  const warnings = planned.flatMap(([name, pool]) => heldUnits(pool, pools.get(name)));
  return { ...answer, warnings: [...answer.warnings, ...warnings], pools: Object.fromEntries(planned) };
}

const withFree = (pool: PlannedPool, view: PoolView | undefined): PlannedPool =>
  view === undefined || view.gone ? pool : { ...pool, free: Math.max(0, pool.budget - view.used) };

/** Warns about nodes that hold units and will not release them by themselves. */
function heldUnits({ budget }: PlannedPool, view: PoolView | undefined): readonly Reason[] {
  const holders = (view?.unavailable ?? []).filter(
    ({ lease, because }) => lease === '' || because.startsWith('unknown'),
  );
  if (view === undefined || holders.length === 0) return [];
  const names = holders.slice(0, SHOWN).map(({ node, because }) => `${node} (${because})`);
  const more = holders.length > names.length ? `, and ${holders.length - names.length} more` : '';
  const holds = holders.length === 1 ? 'holds' : 'hold';
  const units = budget === 1 ? 'the only unit' : `${Math.min(holders.length, budget)} of the ${budget} units`;
  const effect = view.used < budget ? 'fewer nodes can change at once' : 'no other node can change';
  const message = `${names.join(', ')}${more} ${holds} ${units} of pool ${view.pool}: ${effect}; ${wayOut(holders.map(({ because }) => because))}`;
  return [{ fragment: '', field: '', code: 'held-units', message, nodes: [] }];
}

const SHOWN = 3;
