import { stalledText, type PoolView, type Reason, type RolloutView } from '#libs/contracts';
import { durationText, pluralOf } from '#libs/manifests';
import { certificateLine, type CertificateStatus } from './admission/certificate.js';
import type { Change } from './changes.js';
import { conditionsOf, reasonOf, wordsOf, type ConditionDraft } from './conditions.js';
import { DEFINITIONS_TODO } from './definitions.js';
import { drainedOf } from './drains.js';
import { RETRY, type Resource, type Status } from './resource.js';
import { againAfterMs, type PublishedState } from './published-state.js';
import type { State } from './state.js';

/** How many of the nodes that use a budget are named. */
const MOST_NAMED = 10;

interface ChangeStatus {
  readonly phase: string;
  readonly message: string;
  readonly drafts: readonly ConditionDraft[];
}

/** The status that an object should have; undefined while it is about to change. */
export function statusOf(state: State, resource: Resource, published: PublishedState, at: string): Status | undefined {
  switch (published.state) {
    case 'unread':
    case 'differs':
    case 'nothing':
      return undefined;
    case 'malformed':
      return wholeOf(state, resource, refused(resource.problems, resource.id, true), at);
    case 'carried':
    case 'failed': {
      const { change } = published;
      const rollout = state.rollouts.get(change.change);
      const isRolledBack = published.state === 'failed' && change.phase === 'committed';
      const story = isRolledBack ? rolledBack(change, resource) : tellOf(change, rollout, state.pools, resource);
      const counts = { change: change.change, ...countsOf(change, rollout) };
      const againMs = published.state === 'failed' ? againAfterMs(state, resource, change) : undefined;
      if (resource.deleting)
        return {
          ...wholeOf(state, resource, leavingOf(state, resource, deletionOf(story, change, resource, againMs)), at),
          ...counts,
        };
      const text = againMs === undefined ? story : withWords(story, againText(change, resource, againMs));
      const reached = published.state === 'carried' ? reachedOf(state, resource, change) : {};
      return { ...wholeOf(state, resource, text, at), hash: resource.hash, ...counts, ...reached };
    }
  }
}

/** Counts of a change, as far as they are known. */
export function countsOf({ nodes }: Change, rollout: RolloutView | undefined): Status {
  if (rollout === undefined) return { nodes };
  const { applied, failed, unknown, deferred, pending } = rollout;
  return { nodes, applied, failed, unknown, deferred, pending };
}

/**
 * How many nodes have what the object says, once it is committed. What was applied, and when, is only shown while it is
 * in sync.
 */
function reachedOf({ reached }: State, { id, generation }: Resource, { change, phase }: Change): Status {
  const found = phase === 'committed' ? reached.get(id) : undefined;
  if (found === undefined || found.gone) return { inSync: false };
  const { counts, inSync, appliedAt } = found;
  const isCurrent = found.change === change && inSync;
  return {
    inSync: isCurrent,
    ...(counts === undefined ? {} : { counts }),
    ...(isCurrent ? { appliedGeneration: generation, appliedTime: appliedAt } : {}),
  };
}

const ACCEPTED: ConditionDraft = ['Accepted', 'True', 'Accepted'];
const VALIDATED: ConditionDraft = ['Validated', 'True', 'Validated'];

/** The status of a change: phase, one line, and conditions. */
export function tellOf(
  change: Change,
  rollout: RolloutView | undefined,
  pools: State['pools'],
  of?: Resource,
): ChangeStatus {
  switch (change.phase) {
    case 'published': {
      const message = `published as ${change.change}; waiting for the merger`;
      return storyOf('Pending', message, 'Published', ['Accepted', 'Unknown', 'Published']);
    }
    case 'accepted':
    case 'rendered':
      return storyOf('Reviewing', '', 'InReview', ACCEPTED, ['Validated', 'Unknown', 'InReview']);
    case 'waiting': {
      const { needs } = change;
      if (needs.length > 0) {
        const missing = `needs ${needs.join(', ')}, which ${needs.length === 1 ? 'does' : 'do'} not exist yet`;
        return storyOf('Waiting', missing, 'MissingReference', ACCEPTED, ['Validated', 'Unknown', 'MissingReference']);
      }
      const message = `waits for ${change.waitsFor.join(', ')}`;
      return storyOf('Waiting', message, 'Waiting', ACCEPTED, ['Validated', 'Unknown', 'Waiting']);
    }
    case 'validated':
    case 'rolling':
      return rolling(rollout, pools);
    case 'committed': {
      // The two views arrive one after the other: Ready is shown only with the matching counts.
      if (rollout?.phase === 'rolling') return rolling(rollout, pools);
      const deferred =
        rollout === undefined || rollout.deferred === 0
          ? ''
          : `${rollout.deferred} of ${change.nodes} nodes are deferred: they get it as soon as they can`;
      const ready: ConditionDraft = ['Ready', 'True', deferred === '' ? 'Committed' : 'NodesDeferred', deferred];
      const drafts = [ACCEPTED, VALIDATED, ['Progressing', 'False', 'Committed', deferred], ready] as const;
      return { phase: 'Ready', message: deferred, drafts };
    }
    case 'rejected':
      return refused(change.reasons, of?.id ?? '', change.apply.length + change.delete.length === 0);
    case 'ended': {
      const reason = reasonOf(change.outcome);
      const message = change.reason || rollout?.reason || (rollout?.supersededBy ? `by ${rollout.supersededBy}` : '');
      const over = [
        ['Progressing', 'False', reason, message],
        ['Ready', 'False', reason, message],
      ] as const;
      return { phase: reason, message, drafts: [ACCEPTED, VALIDATED, ...over] };
    }
  }
}

/** A person rolled back the change that contained what the object says. */
function rolledBack({ change, rollbackOf = '' }: Change, { kind, name }: Resource): ChangeStatus {
  const message = `${rollbackOf} was rolled back by ${change}; edit the object, or publish it again: ${annotate(kind, name, change)}`;
  return {
    phase: 'RolledBack',
    message,
    drafts: [ACCEPTED, VALIDATED, ['Progressing', 'False', 'RolledBack'], ['Ready', 'False', 'RolledBack', message]],
  };
}

/** How a failed object is tried again: by itself after some time, or by a person. */
const againText = ({ change }: Change, { kind, name }: Resource, againMs: number | undefined): string =>
  `${againMs === undefined ? 'to try it again' : `it is tried again automatically after ${durationText(againMs)}; to try it now`}: ${annotate(kind, name, change)}`;

/** The same, with more words wherever its message is shown. */
const withWords = ({ phase, message, drafts }: ChangeStatus, words: string): ChangeStatus => ({
  phase,
  message: `${message}; ${words}`,
  drafts: drafts.map(([type, status, reason, line]) =>
    line === message ? [type, status, reason, `${line}; ${words}`] : [type, status, reason, line],
  ),
});

const annotate = (kind: string, name: string, change: string): string =>
  `kubectl annotate ${pluralOf(kind)}.sluice.dev ${name} ${RETRY}=${change} --overwrite`;

/** An open change: it makes progress and is not ready, for the same reason. */
const storyOf = (
  phase: string,
  message: string,
  reason: string,
  ...drafts: readonly ConditionDraft[]
): ChangeStatus => ({
  phase,
  message,
  drafts: [...drafts, ['Progressing', 'True', reason, message], ['Ready', 'False', reason, message]],
});

function rolling(rollout: RolloutView | undefined, pools: State['pools']): ChangeStatus {
  const [phase, message] = wordOf(rollout, stallOf(rollout, pools));
  return storyOf(phase, message, phase, ACCEPTED, VALIDATED);
}

/** What a stalled rollout waits for; empty if it is not stalled. */
export const stallOf = (rollout: RolloutView | undefined, pools: State['pools']): string =>
  rollout === undefined || rollout.stalledBy.length === 0 ? '' : stalledText(rollout.stalledBy, pools.values());

function wordOf(rollout: RolloutView | undefined, stall: string): readonly [phase: string, message: string] {
  if (rollout?.phase === 'reverting' || rollout?.phase === 'reverted')
    return ['Reverting', stall === '' ? rollout.reason : `${rollout.reason}; the rollback is ${stall}`];
  if (rollout?.paused === true) return ['Paused', rollout.reason];
  return stall === '' ? ['Rolling', rollout?.reason ?? ''] : ['Stalled', stall];
}

/** Prefers the reasons of the object itself: others in the same change may have been refused too. */
function refused(reasons: readonly Reason[], id: string, byForm: boolean): ChangeStatus {
  // A conflict is reported for one of two objects, and names the other.
  const own = reasons.filter(
    ({ fragment, message }) => fragment === id || fragment === '' || message.split(/[^A-Za-z0-9/-]+/).includes(id),
  );
  const chosen = own.length > 0 ? own : reasons;
  const [first] = chosen;
  const message = wordsOf(chosen, id);
  const reason = own.length > 0 || id === '' ? reasonOf(first?.code ?? '') : 'RefusedWithOthers';
  const drafts: readonly ConditionDraft[] = byForm
    ? [['Accepted', 'False', reason, message]]
    : [ACCEPTED, ['Validated', 'False', reason, message]];
  return {
    phase: 'Rejected',
    message,
    drafts: [...drafts, ['Progressing', 'False', 'Rejected'], ['Ready', 'False', 'Rejected', message]],
  };
}

/**
 * The status of an object that is being deleted: it is never ready, because after the deletion it is gone. A deleted
 * object cannot be edited, so the message says how to try the deletion again.
 */
function deletionOf(
  { phase, message, drafts }: ChangeStatus,
  change: Change,
  resource: Resource,
  againMs: number | undefined,
): ChangeStatus {
  const isOver = drafts.some(([type, status]) => type === 'Progressing' && status === 'False');
  const failed = isOver && phase !== 'Ready';
  const again = againText(change, resource, againMs);
  const words = failed ? `the deletion is ${phase.toLowerCase()}: ${message}; ${again}` : message;
  return {
    phase: failed ? 'DeletionFailed' : 'Deleting',
    message: words,
    drafts: drafts.map(([type, status, reason, line]) =>
      type === 'Ready' ? [type, 'False', failed ? 'DeletionFailed' : 'Deleting', words] : [type, status, reason, line],
    ),
  };
}

/** A deletion that is committed and not complete says which nodes it waits for. */
function leavingOf({ reached }: State, { id }: Resource, told: ChangeStatus): ChangeStatus {
  const { removing = false, stillOn = [], counts } = reached.get(id) ?? {};
  if (!removing || told.phase !== 'Deleting') return told;
  const more = (counts?.nodes ?? 0) - (counts?.upToDate ?? 0) - stillOn.length;
  const message = `still on ${stillOn.join(', ')}${more > 0 ? ` and ${more} more` : ''}: it is removed there as soon as they can change; if a node never returns: sluice remove NODE`;
  return {
    ...told,
    message,
    drafts: told.drafts.map(([type, status, reason, line]) =>
      type === 'Ready' ? [type, status, reason, message] : [type, status, reason, line],
    ),
  };
}

function wholeOf(state: State, resource: Resource, { phase, message, drafts }: ChangeStatus, at: string): Status {
  const { generation, status } = resource;
  return {
    phase,
    message,
    observedGeneration: generation,
    conditions: conditionsOf(
      [...drafts, ...definitionOf(state, resource), ...admissionOf(state, resource), ...poolDrainsOf(state, resource)],
      generation,
      status,
      at,
    ),
    ...poolOf(state, resource),
  };
}

const ADMISSION: Readonly<Record<CertificateStatus['is'], readonly ['True' | 'False', string]>> = {
  good: ['True', 'Answering'],
  ending: ['True', 'CertificateEnding'],
  expired: ['False', 'CertificateExpired'],
  'not-yet': ['False', 'CertificateNotYetValid'],
  kept: ['True', 'CertificateKept'],
  unusable: ['False', 'NoCertificate'],
};

/** Only shown if the definition differs: the API server may have dropped fields. */
function definitionOf({ definitions }: State, { kind }: Resource): readonly ConditionDraft[] {
  const words = definitions.kinds.get(kind);
  return words === undefined ? [] : [['Definition', 'False', 'AnotherVersion', `${words}: ${DEFINITIONS_TODO}`]];
}

/** A Pool shows whether the webhook enforces its editors. */
function admissionOf({ admission }: State, { kind }: Resource): readonly ConditionDraft[] {
  if (admission === undefined || kind !== 'Pool') return [];
  const [status, reason] = ADMISSION[admission.is];
  return [['Admission', status, reason, certificateLine(admission)]];
}

const poolDrainsOf = ({ drainTroubles }: State, { kind, name }: Resource): readonly ConditionDraft[] =>
  kind === 'Pool' ? drainedOf(drainTroubles.ofPool.get(name)) : [];

function poolOf({ pools }: State, { kind, name }: Resource): Status {
  const pool = kind === 'Pool' ? pools.get(name) : undefined;
  if (pool === undefined || pool.gone) return {};
  return {
    members: pool.members,
    budget: pool.budget,
    unavailable: pool.used,
    usedBy: usersOf(pool.unavailable),
    waiting: pool.waiting,
  };
}

function usersOf(nodes: PoolView['unavailable']): string {
  const names = nodes
    .slice(0, MOST_NAMED)
    .map(({ node, because }) => `${node} (${because})`)
    .join(', ');
  return nodes.length > MOST_NAMED ? `${names} and ${nodes.length - MOST_NAMED} more` : names;
}
