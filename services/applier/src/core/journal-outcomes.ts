import { EMPTY_CONFIG } from '#libs/contracts';
import { distance, draw } from './chance.js';
import { type Health, intervalMs, newHealth } from './health.js';
import { type Journal, mayBeWrittenLater, type Work } from './journal.js';
import type { Refusal } from './ports.js';
import {
  withPreparation,
  uncheckedDrift,
  nextNonce,
  progressed,
  remember,
  START,
  type State,
  VIEW_LAG_MS,
} from './state.js';

const DISK_FIRST_MS = 1_000;
const DISK_LAST_MS = 60_000;

export const onDisk = (state: State, nowMs: number): State =>
  remember(state, { disk: { failures: 0, retryAtMs: nowMs } });

/** The journal could not be written: the wait before the next try grows. */
export function notWritten(state: State, journal: Journal, { reason }: Refusal, nowMs: number): State {
  const { failures } = state.memory.disk;
  const retryAtMs = nowMs + Math.min(DISK_LAST_MS, DISK_FIRST_MS * 2 ** failures);
  const next = withPreparation(remember(state, { disk: { failures: failures + 1, retryAtMs } }), { trouble: reason });
  return mayBeWrittenLater(state.journal.work, journal.work) ? journaled(next, journal, nowMs) : next;
}

/** The journal says this now. */
export function journaled(state: State, journal: Journal, nowMs: number): State {
  const { memory } = state;
  let next: State = remember({ ...state, journal }, { health: healthAfter(state, journal, nowMs) });
  if (journal.seq !== state.journal.seq || journal.nonce !== state.journal.nonce)
    next = reportMade(next, journal, nowMs);
  if (journal.incarnation !== state.journal.incarnation) {
    const { ms, next: chance } = distance(memory.reborn.count, memory.chance);
    next = remember(next, {
      nonce: nextNonce(journal.nonce),
      reborn: { count: memory.reborn.count + 1, dueMs: nowMs + ms },
      chance,
    });
  }
  if (
    journal.work?.phase !== state.journal.work?.phase ||
    escalations(journal.work) !== escalations(state.journal.work) ||
    journal.outstanding?.bootId !== state.journal.outstanding?.bootId
  )
    next = remember(next, { progress: START });
  if (journal.outstanding !== state.journal.outstanding) next = actionsTried(next, journal, nowMs);
  const counts = undosBegun(journal);
  const noted = Object.keys(counts).filter((id) => counts[id] !== undosBegun(state.journal)[id]);
  if (noted.length > 0) next = progressed(next, { undoing: new Set([...next.memory.progress.undoing, ...noted]) });
  if (journal.work?.restartsApplier === true && state.journal.work?.restartsApplier !== true)
    next = progressed(next, { restarting: true });
  const note = journal.work?.ran.at(-1);
  if (note !== undefined && (journal.work?.ran.length ?? 0) > (state.journal.work?.ran.length ?? 0))
    next = progressed(next, { noted: note });
  if (
    journal.lastDealt?.lease !== state.journal.lastDealt?.lease ||
    journal.sound !== state.journal.sound ||
    journal.madeIn !== state.journal.madeIn ||
    memory.forgot
  ) {
    next = remember(next, {
      forgot: false,
      preparation: undefined,
      configs: new Map(),
      absent: new Set(),
      progress: START,
      untidy: true,
      repair: { count: 0, dueMs: nowMs + (journal.sound ? ACT_AGAIN_FIRST_MS : VIEW_LAG_MS) },
      drift: uncheckedDrift(memory.drift.round + 1, nowMs + state.settings.driftCheckMs),
    });
  }
  return next;
}

/**
 * The health of the node once the journal says this. A change starts a new round. When it was confirmed, its probes
 * have just run; when it was rolled back, they run at once.
 */
function healthAfter(
  { journal: { work }, memory, settings: { emptyHash } }: State,
  next: Journal,
  nowMs: number,
): Health {
  const { health, configs, progress } = memory;
  if ((work === undefined) === (next.work === undefined)) return health;
  const round = health.round + 1;
  if (next.work !== undefined) return { ...health, round };
  const config = next.inForce === emptyHash ? EMPTY_CONFIG : configs.get(next.inForce);
  if (next.report?.kind !== 'applied') return newHealth(round, config, () => nowMs);
  const results = [...(progress.probes ?? []), ...(progress.others ?? [])];
  return newHealth(round, config, (probe) => nowMs + intervalMs(probe), results);
}

/** How long to wait until actions that keep failing are tried again. It doubles each time. */
const ACT_AGAIN_FIRST_MS = 60_000;
const ACT_AGAIN_LAST_MS = 3_600_000;

function actionsTried(state: State, { outstanding }: Journal, nowMs: number): State {
  const { repair, chance, health } = state.memory;
  const { value, next } = draw(chance);
  const ms = Math.min(ACT_AGAIN_LAST_MS, ACT_AGAIN_FIRST_MS * 2 ** repair.count) * (0.75 + value / 4);
  return remember(state, {
    chance: next,
    progress: START,
    repair: { count: outstanding?.failing === undefined ? 0 : repair.count + 1, dueMs: nowMs + ms },
    health: { ...health, isNew: health.isNew || health.probes !== undefined },
  });
}

const undosBegun = ({ work }: Journal): Readonly<Record<string, number>> =>
  (work?.phase === 'rolling-back' ? work.undosBegun : undefined) ?? {};

/** How many escalations the work has. A new one changes the actions, so the pass starts over. */
const escalations = (work: Work | undefined): number =>
  (work?.escalated === undefined ? 0 : 1) +
  (work?.phase === 'rolling-back' && work.rollbackEscalated !== undefined ? 1 : 0);

function reportMade(state: State, journal: Journal, nowMs: number): State {
  const { memory } = state;
  const { ms, next } = distance((memory.viewRetry?.count ?? 0) + 3, memory.chance);
  const kind = journal.report?.kind;
  return remember(state, {
    reportRetry: { count: 0, dueMs: nowMs },
    chance: next,
    announce: memory.announce && kind !== 'announced',
    ...(memory.viewRetry === undefined
      ? {}
      : { viewRetry: { count: memory.viewRetry.count + 1, dueMs: nowMs + ms }, leaseDueMs: nowMs + ms }),
    ...(kind === 'drifted'
      ? { drift: { ...memory.drift, latest: undefined, reported: journal.report?.differences } }
      : {}),
    ...(kind === 'probed' ? { health: { ...memory.health, isNew: false, reportedMs: nowMs } } : {}),
  });
}
