import type { FactType } from '#libs/contracts';
import type { Entry } from '#libs/kernel';
import { evolveConfig } from './fold/changes.js';
import { evolveNode } from './fold/nodes.js';
import { evolveLease, type LeaseFact } from './fold/leases.js';
import { evolveRollout } from './fold/rollouts.js';
import type { State } from './state.js';

/** The facts that the scheduler's fold uses. */
export const READS: readonly FactType[] = [
  'config.accepted',
  'config.waiting',
  'config.rendered',
  'config.validated',
  'config.rejected',
  'config.committed',
  'config.ended',
  'config.judged',
  'config.forgiven',
  'node.joined',
  'node.left',
  'node.changed',
  'node.silent',
  'node.heard',
  'node.unavailable',
  'node.available',
  'node.taken',
  'node.given',
  'node.rendered',
  'node.reviewed',
  'node.reported',
  'node.owed',
  'node.skipped',
  'node.drained',
  'node.drain.stopped',
  'node.uncordoned',
  'node.lease.granted',
  'node.lease.amended',
  'node.lease.ready',
  'node.lease.settled',
  'node.lease.uncordoning',
  'node.lease.released',
  'rollout.started',
  'rollout.paused',
  'rollout.resumed',
  'rollout.aborted',
  'rollout.failed',
  'rollout.reverting',
  'rollout.reverted',
  'rollout.complete',
  'rollout.succeeded',
  'rollout.superseded',
  'rollout.stalled',
];

/** Folds one fact of the ledger. */
export function evolve(state: State, entry: Entry): void {
  const { fact } = entry;
  if (fact.type.startsWith('config.')) evolveConfig(state, entry);
  else if (fact.type.startsWith('node.lease.')) evolveLease(state, entry, fact as LeaseFact);
  else if (fact.type.startsWith('node.')) evolveNode(state, entry);
  else if (fact.type.startsWith('rollout.')) evolveRollout(state, entry);
}
