import { byAge, isChangeId } from '#libs/contracts';
import { assertNever, type Answer } from '#libs/kernel';
import { emitRollout, type SchedulerDraft } from './draft.js';
import { nodeProgress } from './frozen-rollout.js';
import type { Request } from './inputs.js';
import { isUndecided, settleLease } from './leases.js';
import type { Change, Rollout } from './state.js';
import { giveUnit, takeUnit } from './units.js';
import { poolView, rolloutView } from './views.js';
import { why } from './why.js';

const ok = (body: unknown): Answer => ({ ok: true, body });
const refused = (code: string, message: string): Answer => ({ ok: false, code, message });

/** Answers a request; what it decides stands in the same batch. */
export function answerRequest(draft: SchedulerDraft, request: Request): Answer {
  switch (request.op) {
    case 'rollout.list':
      return listRollouts(draft, request.cursor, request.limit);
    case 'rollout.get':
      return getRollout(draft, request);
    case 'rollout.pause':
    case 'rollout.resume':
    case 'rollout.abort':
      return steer(draft, request);
    case 'node.why': {
      const node = draft.state.nodes.get(request.node);
      if (node === undefined) return refused('not-found', `no node ${request.node} is known`);
      return ok(why(draft.state, node, draft.now.monotonicMs));
    }
    case 'node.skip':
      return skip(draft, request);
    case 'pool.list':
      return page(
        'pools',
        draft.state.poolNames().filter((name) => !poolView(draft.state, name).gone),
        request,
        (name) => poolView(draft.state, name),
      );
    case 'pool.get': {
      const known = draft.state.poolNames().includes(request.pool) && !poolView(draft.state, request.pool).gone;
      return known ? ok(poolView(draft.state, request.pool)) : refused('not-found', `no pool ${request.pool}`);
    }
    case 'pool.take':
      return takeUnit(draft, request);
    case 'pool.give':
      return giveUnit(draft, request);
    default:
      return assertNever(request);
  }
}

function page(
  field: string,
  names: readonly string[],
  { cursor, limit }: { readonly cursor: string; readonly limit: number },
  show: (name: string) => unknown,
): Answer {
  // What the cursor names may be gone by now: the page goes on behind its place.
  const found = cursor === '' ? 0 : names.findIndex((name) => isBehind(name, cursor));
  const from = found < 0 ? names.length : found;
  const shown = names.slice(from, from + limit);
  const last = shown.at(-1);
  const next = last !== undefined && from + limit < names.length ? { next: last } : {};
  return ok({ [field]: shown.map(show), ...next });
}

/** Changes go by age, all else by name. */
const isBehind = (name: string, cursor: string): boolean =>
  isChangeId(name) && isChangeId(cursor) ? byAge(name, cursor) > 0 : name > cursor;

const listRollouts = ({ state }: SchedulerDraft, cursor: string, limit: number): Answer =>
  page('rollouts', [...state.rollouts.keys()].sort(byAge), { cursor, limit }, (change) => rolloutView(state, change));

function getRollout({ state }: SchedulerDraft, request: Request & { readonly op: 'rollout.get' }): Answer {
  const rollout = state.rollouts.get(request.change);
  if (rollout === undefined) {
    const change = state.changes.get(request.change);
    if (change?.open === true)
      return refused(
        'not-started',
        `${request.change} is accepted, and its rollout has not started: see ops.config or the bucket changes`,
      );
    return refused('not-found', `no rollout of ${request.change} is known`);
  }
  const nodes = page('nodes', rollout.frozen === undefined ? rollout.nodes : [], request, (name) =>
    nodeProgress(state, request.change, name),
  );
  return ok({
    ...rolloutView(state, request.change),
    ...(nodes.ok ? (nodes.body as object) : {}),
    ...(rollout.frozen ? { nodes: rollout.frozen.worst } : {}),
  });
}

type Steering = Request & { readonly op: 'rollout.pause' | 'rollout.resume' | 'rollout.abort' };

function steer(draft: SchedulerDraft, request: Steering): Answer {
  const change = draft.state.changes.get(request.change);
  if (change === undefined)
    return refused('not-found', `no change ${request.change} is known; see "sluice get changes"`);
  const rollout = draft.state.rollouts.get(request.change);
  const refusal = cannotSteer(change, rollout, request.op);
  if (refusal !== undefined) return refused('conflict', refusal);
  const { by, reason } = request;
  if (request.op === 'rollout.abort') abort(draft, change, by, reason);
  else if (change.paused !== (request.op === 'rollout.pause')) {
    emitRollout(draft, request.op === 'rollout.pause' ? 'paused' : 'resumed', request.change, { by, reason });
  }
  const { paused, aborted } = draft.state.changes.get(request.change) ?? change;
  const phase = draft.state.rollouts.get(request.change)?.phase ?? (aborted ? 'ended' : 'waiting');
  return ok({ change: request.change, phase, paused, aborted });
}

function cannotSteer(change: Change, rollout: Rollout | undefined, op: Steering['op']): string | undefined {
  if (op === 'rollout.abort' && change.aborted) return undefined; // asked twice: it is aborted, as asked
  if (!change.open) return `${change.change} has ended${rollout === undefined ? '' : ` (${rollout.phase})`}`;
  if (rollout === undefined || rollout.phase === 'rolling') return undefined;
  if (rollout.phase === 'complete') return `${change.change} is complete on every node and about to be committed`;
  return `${change.change} is ${rollout.phase} already`;
}

function abort(draft: SchedulerDraft, change: Change, by: string, reason: string): void {
  if (change.aborted) return;
  const why = reason === '' ? `aborted by ${by}` : `aborted by ${by}: ${reason}`;
  emitRollout(draft, 'aborted', change.change, { by, reason: why });
  if (change.started) emitRollout(draft, 'reverting', change.change, { by, reason: why });
}

function skip(draft: SchedulerDraft, { node: name, by, reason }: Request & { readonly op: 'node.skip' }): Answer {
  const node = draft.state.nodes.get(name);
  if (node === undefined || !node.joined) return refused('not-found', `no node ${name} is in the fleet`);
  if (!node.silent && node.change === '' && node.lease === undefined) {
    return refused(
      'conflict',
      `there is nothing to skip: ${name} is alive, holds no lease and is no target of an open rollout`,
    );
  }
  if (node.skippedBy === '')
    draft.emit({
      type: 'node.skipped',
      node: name,
      pool: node.pool,
      lease: node.lease?.id ?? '',
      change: node.change,
      by,
      reason,
    });
  const lease = draft.state.nodes.get(name)?.lease;
  if (lease !== undefined && isUndecided(lease))
    settleLease(draft, name, lease, {
      because: 'skipped',
      reason: reason === '' ? `skipped by ${by}` : reason,
      restored: true,
    });
  return ok({ node: name, skipped: true });
}
