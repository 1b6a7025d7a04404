import { byAge } from '#libs/contracts';
import { answered, assertNever, pageOf, refused, type Answer } from '#libs/engine';
import { emitRollout, type SchedulerDraft } from './draft.js';
import { frozenProgress, nodeProgress } from './frozen-rollout.js';
import type { Request } from './inputs.js';
import type { Change, Rollout } from './state.js';
import { giveUnit, takeUnit } from './units.js';
import { pausedText, poolView, rolloutView } from './views.js';
import { skipNode } from './skips.js';
import { why } from './why.js';

/** Answers a request. Facts that it causes are in the same batch. */
export function answerRequest(draft: SchedulerDraft, request: Request): Answer {
  switch (request.op) {
    case 'rollout.list':
      return listRollouts(draft, request);
    case 'rollout.get':
      return getRollout(draft, request);
    case 'rollout.pause':
    case 'rollout.resume':
    case 'rollout.abort':
      return steer(draft, request);
    case 'node.why': {
      const node = draft.state.nodes.get(request.node);
      if (node === undefined) return refused('not-found', `node ${request.node} not found`);
      return answered(why(draft.state, node, draft.now.monotonicMs));
    }
    case 'node.skip':
      return skip(draft, request);
    case 'pool.list':
      return listPools(draft, request);
    case 'pool.get': {
      const exists = draft.state.poolNames().includes(request.pool) && !poolView(draft.state, request.pool).gone;
      return exists
        ? answered(poolView(draft.state, request.pool))
        : refused('not-found', `pool ${request.pool} not found`);
    }
    case 'pool.take':
      return takeUnit(draft, request);
    case 'pool.give':
      return giveUnit(draft, request);
    default:
      return assertNever(request);
  }
}

type Page = { readonly cursor: string; readonly limit: number };

function listPools({ state }: SchedulerDraft, page: Page): Answer {
  const pools = state.poolNames().map((name) => poolView(state, name));
  const { items: shown, next } = pageOf(
    pools.filter(({ gone }) => !gone),
    page,
    ({ pool }) => pool,
  );
  return answered({ pools: shown, ...next });
}

function listRollouts({ state }: SchedulerDraft, page: Page): Answer {
  const { items: shown, next } = pageOf([...state.rollouts.keys()].sort(byAge), page, (change) => change, byAge);
  return answered({ rollouts: shown.map((change) => rolloutView(state, change)), ...next });
}

function getRollout({ state }: SchedulerDraft, request: Request & { readonly op: 'rollout.get' }): Answer {
  const rollout = state.rollouts.get(request.change);
  if (rollout === undefined) {
    const change = state.changes.get(request.change);
    if (change?.open === true)
      return refused(
        'not-started',
        `${request.change} is accepted, but its rollout has not started; see "sluice get changes"`,
      );
    return refused('not-found', `change ${request.change} has no rollout`);
  }
  const { items: shown, next } = pageOf(rollout.nodes, request, (name) => name);
  const nodes =
    rollout.frozen === undefined
      ? shown.map((name) => nodeProgress(state, request.change, name))
      : frozenProgress(state, rollout, shown);
  return answered({ ...rolloutView(state, request.change), nodes, ...next });
}

type SteeringRequest = Request & { readonly op: 'rollout.pause' | 'rollout.resume' | 'rollout.abort' };

function steer(draft: SchedulerDraft, request: SteeringRequest): Answer {
  const change = draft.state.changes.get(request.change);
  if (change === undefined) return refused('not-found', `change ${request.change} not found; see "sluice get changes"`);
  const rollout = draft.state.rollouts.get(request.change);
  const refusal = cannotSteer(change, rollout, request.op);
  if (refusal !== undefined) return refused('conflict', refusal);
  const { by, reason } = request;
  if (request.op === 'rollout.abort') abort(draft, change, by, reason);
  else if (request.op === 'rollout.pause') {
    const isOther = reason !== '' && change.pausedBecause !== pausedText(by, reason);
    if (!change.paused || isOther) emitRollout(draft, 'paused', request.change, { by, reason });
  } else if (change.paused) emitRollout(draft, 'resumed', request.change, { by, reason });
  const { paused, aborted } = draft.state.changes.get(request.change) ?? change;
  const phase = draft.state.rollouts.get(request.change)?.phase ?? (aborted ? 'ended' : 'waiting');
  return answered({ change: request.change, phase, paused, aborted });
}

function cannotSteer(change: Change, rollout: Rollout | undefined, op: SteeringRequest['op']): string | undefined {
  if (op === 'rollout.abort' && change.aborted) return undefined; // a repeated request: it is already aborted
  if (!change.open) return `${change.change} has ended${rollout === undefined ? '' : ` (${rollout.phase})`}`;
  if (rollout === undefined || rollout.phase === 'rolling') return undefined;
  if (rollout.phase === 'complete') return `${change.change} is complete on every node and about to be committed`;
  return `${change.change} is already ${rollout.phase}`;
}

function abort(draft: SchedulerDraft, change: Change, by: string, reason: string): void {
  const why = reason === '' ? `aborted by ${by}` : `aborted by ${by}: ${reason}`;
  if (change.aborted) {
    const rollout = draft.state.rollouts.get(change.change);
    if (rollout?.phase === 'reverting' && reason !== '' && rollout.reason !== why)
      emitRollout(draft, 'aborted', change.change, { by, reason: why });
    return;
  }
  emitRollout(draft, 'aborted', change.change, { by, reason: why });
  if (change.started) emitRollout(draft, 'reverting', change.change, { by, reason: why });
}

function skip(draft: SchedulerDraft, { node: name, by, reason }: Request & { readonly op: 'node.skip' }): Answer {
  const node = draft.state.nodes.get(name);
  if (node === undefined || !node.joined) return refused('not-found', `node ${name} is not in the fleet`);
  if (!node.silent && node.change === undefined && node.lease === undefined) {
    return refused(
      'conflict',
      `there is nothing to skip: ${name} is alive, holds no lease and is not a target of an open rollout`,
    );
  }
  skipNode(draft, node, by, reason);
  return answered({ node: name, skipped: true });
}
