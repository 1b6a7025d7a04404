import type { PoolView, Reason, RolloutView } from '#libs/contracts';
import { durationText, pluralOf } from '#libs/manifests';
import { lineOfStanding, type CertificateStanding } from './admission/certificate.js';
import type { Change } from './changes.js';
import { conditionsOf, reasonOf, type Said } from './conditions.js';
import { DEFINITIONS_TODO } from './definitions.js';
import { drainedOf } from './drains.js';
import { RETRY, type Resource, type Status } from './resource.js';
import { againAfterMs, type Stand } from './stand.js';
import type { State } from './state.js';
import { wordsOf } from './words.js';

/** Of the nodes that use up a budget. */
const MOST_NAMED = 10;

interface Story {
  readonly phase: string;
  readonly message: string;
  readonly said: readonly Said[];
}

/** The status that an object shall have; undefined while there is nothing to say that is not about to change. */
export function statusOf(state: State, resource: Resource, stand: Stand, at: string): Status | undefined {
  switch (stand.is) {
    case 'unread':
    case 'differs':
    case 'nothing':
      return undefined;
    case 'malformed':
      return wholeOf(state, resource, refused(resource.problems, resource.id, true), at);
    case 'carried':
    case 'failed': {
      const { change } = stand;
      const rollout = state.rollouts.get(change.change);
      const story = tellOf(change, rollout, resource);
      return {
        ...wholeOf(
          state,
          resource,
          resource.deleting ? deletionOf(story, change, resource, againAfterMs(state, resource, change)) : story,
          at,
        ),
        ...(resource.deleting ? {} : { hash: resource.hash }),
        change: change.change,
        ...countsOf(change, rollout),
      };
    }
  }
}

/** Counts of a change, as far as they are known. */
export const countsOf = (change: Change, rollout: RolloutView | undefined): Status => ({
  nodes: change.nodes,
  ...(rollout === undefined
    ? {}
    : {
        applied: rollout.applied,
        failed: rollout.failed,
        unknown: rollout.unknown,
        owed: rollout.owed,
        pending: rollout.pending,
      }),
});

/** Where a change stands, as phase, one line and conditions. */
export function tellOf(change: Change, rollout: RolloutView | undefined, of?: Resource): Story {
  switch (change.phase) {
    case 'published':
      return story(
        'Pending',
        `published as ${change.change}, and not taken yet`,
        ['Accepted', 'Unknown', 'Published'],
        ['Progressing', 'True', 'Published'],
        ['Ready', 'False', 'Published'],
      );
    case 'accepted':
    case 'rendered':
      return story(
        'Reviewing',
        '',
        ['Accepted', 'True', 'Accepted'],
        ['Validated', 'Unknown', 'InReview'],
        ['Progressing', 'True', 'InReview'],
        ['Ready', 'False', 'InReview'],
      );
    case 'waiting':
      return story(
        'Waiting',
        `behind ${change.behind.join(', ')}`,
        ['Accepted', 'True', 'Accepted'],
        ['Validated', 'Unknown', 'Waiting'],
        ['Progressing', 'True', 'Waiting'],
        ['Ready', 'False', 'Waiting'],
      );
    case 'validated':
    case 'rolling':
      return rolling(rollout);
    case 'committed': {
      // The two views are heard one by one: ready is told with the counts that go with it.
      if (rollout?.phase === 'rolling') return rolling(rollout);
      const owed =
        rollout === undefined || rollout.owed === 0
          ? ''
          : `${rollout.owed} of ${change.nodes} nodes are owed: they get it as soon as they can`;
      const reason = owed === '' ? 'Committed' : 'NodesOwed';
      return story(
        'Ready',
        owed,
        ['Accepted', 'True', 'Accepted'],
        ['Validated', 'True', 'Validated'],
        ['Progressing', 'False', 'Committed'],
        ['Ready', 'True', reason],
      );
    }
    case 'rejected':
      return refused(change.reasons, of?.id ?? '', change.apply.length + change.delete.length === 0);
    case 'ended': {
      const reason = reasonOf(change.outcome);
      const why = change.reason || rollout?.reason || (rollout?.supersededBy ? `by ${rollout.supersededBy}` : '');
      return story(
        reason,
        why,
        ['Accepted', 'True', 'Accepted'],
        ['Validated', 'True', 'Validated'],
        ['Progressing', 'False', reason],
        ['Ready', 'False', reason],
      );
    }
  }
}

function rolling(rollout: RolloutView | undefined): Story {
  const [phase, message] = wordOf(rollout);
  return story(
    phase,
    message,
    ['Accepted', 'True', 'Accepted'],
    ['Validated', 'True', 'Validated'],
    ['Progressing', 'True', phase],
    ['Ready', 'False', phase],
  );
}

function wordOf(rollout: RolloutView | undefined): readonly [phase: string, message: string] {
  if (rollout?.phase === 'reverting' || rollout?.phase === 'reverted') return ['Reverting', rollout.reason];
  if (rollout?.paused === true) return ['Paused', rollout.reason];
  if (rollout !== undefined && rollout.stalledBy.length > 0)
    return ['Stalled', `held by ${rollout.stalledBy.join(', ')}`];
  return ['Rolling', rollout?.reason ?? ''];
}

/** The story with its line in every condition that is not as one wishes. */
function story(phase: string, message: string, ...said: readonly Said[]): Story {
  return {
    phase,
    message,
    said: said.map(([type, status, reason]) => [
      type,
      status,
      reason,
      type === 'Ready' || type === 'Progressing' ? message : '',
    ]),
  };
}

/** Its own reasons first: others of the same change may have been refused too. */
function refused(reasons: readonly Reason[], id: string, byForm: boolean): Story {
  // A conflict is told of one of the two, and names the other.
  const own = reasons.filter(
    ({ fragment, message }) => fragment === id || fragment === '' || message.split(/[^A-Za-z0-9/-]+/).includes(id),
  );
  const shown = own.length > 0 ? own : reasons;
  const [first] = shown;
  const message = wordsOf(shown, id);
  const reason = own.length > 0 || id === '' ? reasonOf(first?.code ?? '') : 'RefusedWithOthers';
  const said: readonly Said[] = byForm
    ? [['Accepted', 'False', reason, message]]
    : [
        ['Accepted', 'True', 'Accepted'],
        ['Validated', 'False', reason, message],
      ];
  return {
    phase: 'Rejected',
    message,
    said: [...said, ['Progressing', 'False', 'Rejected'], ['Ready', 'False', 'Rejected', message]],
  };
}

/** The same of a deletion: it is never ready, it is over and the object gone. An object that goes cannot be edited, so how it is tried again is told. */
function deletionOf(
  { phase, message, said }: Story,
  change: Change,
  { kind, name }: Resource,
  againMs: number | undefined,
): Story {
  const isOver = said.some(([type, status]) => type === 'Progressing' && status === 'False');
  const failed = isOver && phase !== 'Ready';
  const again = `${againMs === undefined ? 'to try it again' : `it is tried again by itself after ${durationText(againMs)}; to try it at once`}: kubectl annotate ${pluralOf(kind)}.sluice.dev ${name} ${RETRY}=${change.change} --overwrite`;
  const words = failed ? `the deletion is ${phase.toLowerCase()}: ${message}; ${again}` : message;
  return {
    phase: failed ? 'DeletionFailed' : 'Deleting',
    message: words,
    said: said.map(([type, status, reason, line]) =>
      type === 'Ready' ? [type, 'False', failed ? 'DeletionFailed' : 'Deleting', words] : [type, status, reason, line],
    ),
  };
}

function wholeOf(state: State, resource: Resource, { phase, message, said }: Story, at: string): Status {
  const { generation, status } = resource;
  return {
    phase,
    message,
    observedGeneration: generation,
    conditions: conditionsOf(
      [...said, ...definitionOf(state, resource), ...admissionOf(state, resource), ...poolDrainsOf(state, resource)],
      generation,
      status,
      at,
    ),
    ...poolOf(state, resource),
  };
}

const ADMISSION: Readonly<Record<CertificateStanding['is'], readonly ['True' | 'False', string]>> = {
  good: ['True', 'Answering'],
  ending: ['True', 'CertificateEnding'],
  expired: ['False', 'CertificateExpired'],
  'not-yet': ['False', 'CertificateNotYetValid'],
  kept: ['True', 'CertificateKept'],
  unusable: ['False', 'NoCertificate'],
};

/** Only told where something is wrong: what somebody wrote may not be what was stored. */
function definitionOf({ definitions }: State, { kind }: Resource): readonly Said[] {
  const words = definitions.kinds.get(kind);
  return words === undefined ? [] : [['Definition', 'False', 'AnotherVersion', `${words}: ${DEFINITIONS_TODO}`]];
}

/** Whether the editors of a pool are asked for is told where they stand. */
function admissionOf({ admission }: State, { kind }: Resource): readonly Said[] {
  if (admission === undefined || kind !== 'Pool') return [];
  const [status, reason] = ADMISSION[admission.is];
  return [['Admission', status, reason, lineOfStanding(admission)]];
}

const poolDrainsOf = ({ drainTroubles }: State, { kind, name }: Resource): readonly Said[] =>
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
  const named = nodes
    .slice(0, MOST_NAMED)
    .map(({ node, because }) => `${node} (${because})`)
    .join(', ');
  return nodes.length > MOST_NAMED ? `${named} and ${nodes.length - MOST_NAMED} more` : named;
}
