import type { FragmentCounts, PoolProgress } from '#libs/contracts';
import type { Schema } from '../shape/checked.js';

const TEXT = { type: 'string' } as const;
const COUNT = { type: 'integer', format: 'int64', minimum: 0 } as const;

const described = (schema: object, description: string): Schema => ({ ...schema, description });

/** Standard Kubernetes conditions. */
const CONDITIONS: Schema = {
  description: 'Standard Kubernetes conditions, one of each type.',
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
  items: {
    type: 'object',
    required: ['type', 'status', 'lastTransitionTime', 'reason', 'message'],
    properties: {
      type: described({ ...TEXT, maxLength: 316 }, '`Accepted`, `Validated`, `Progressing` or `Ready`.'),
      status: described({ ...TEXT, enum: ['True', 'False', 'Unknown'] }, 'Whether the condition is true.'),
      observedGeneration: described(COUNT, 'The generation that the condition describes.'),
      lastTransitionTime: described({ ...TEXT, format: 'date-time' }, 'When `status` last changed.'),
      reason: described({ ...TEXT, minLength: 1, maxLength: 1024 }, 'Why, in one word for programs.'),
      message: described({ ...TEXT, maxLength: 32_768 }, 'Why, for people.'),
    },
  },
};

const STATUS = 'The result, written by the gateway.';

const COUNTS = {
  nodes: described(COUNT, 'Nodes that the change affects.'),
  applied: described(COUNT, 'Nodes that have applied it.'),
  failed: described(COUNT, 'Nodes on which it failed.'),
  unknown: described(COUNT, 'Nodes that did not answer in time.'),
  deferred: described(COUNT, 'Nodes that get it later, once they can.'),
  pending: described(COUNT, 'Nodes that have not changed yet.'),
};

/** How far a committed object has reached its nodes. */
const REACHED = {
  inSync: described(
    { type: 'boolean' },
    'Whether every node that the object selects has it and is ready: not silent, unavailable, taken, degraded, drifted or unhealthy.',
  ),
  appliedGeneration: described(COUNT, 'The generation that all nodes have. Only while `inSync`.'),
  appliedTime: described(
    { ...TEXT, format: 'date-time' },
    'When it last reached a node that did not have it. Only while `inSync`.',
  ),
  counts: {
    description: 'How many of the nodes that the object selects have it, kept up to date after its change has ended.',
    type: 'object',
    properties: {
      nodes: described(COUNT, 'Nodes that the object selects.'),
      upToDate: described(COUNT, 'Nodes that have it.'),
      applying: described(COUNT, 'Nodes that are changing now.'),
      failed: described(COUNT, 'Nodes whose last lease failed.'),
      deferred: described(COUNT, 'Nodes that get it later, once they can.'),
      waiting: described(COUNT, 'Nodes that wait for their turn.'),
      drifted: described(COUNT, 'Nodes that have it, but where something of it was changed.'),
    } satisfies Readonly<Record<keyof FragmentCounts, object>>,
  },
};

const COMMON = {
  phase: described(TEXT, 'State of the object, in one word.'),
  message: described(TEXT, 'Why it is in that phase.'),
  observedGeneration: described(COUNT, 'The generation that this status describes.'),
  conditions: CONDITIONS,
};

/** The status of a fragment, which the gateway writes. */
export const FRAGMENT_STATUS: Schema = {
  description: STATUS,
  type: 'object',
  properties: {
    ...COMMON,
    change: described(TEXT, 'The change that it was published in, which is also the name of its Rollout.'),
    hash: described(TEXT, 'sha256 of the published labels and spec, as canonical JSON.'),
    ...COUNTS,
    ...REACHED,
  },
};

/** The status of a pool: also its budget, and the nodes that use it. */
export const POOL_STATUS: Schema = {
  description: STATUS,
  type: 'object',
  properties: {
    ...(FRAGMENT_STATUS['properties'] as object),
    members: described(COUNT, 'Nodes in the pool.'),
    budget: described(COUNT, 'How many nodes may be unavailable at once.'),
    unavailable: described(COUNT, 'Nodes that are unavailable now.'),
    usedBy: described(TEXT, 'The first unavailable nodes, and why each is unavailable.'),
    waiting: described(COUNT, 'Nodes that wait for a unit of the budget.'),
  },
};

/** The status of a rollout, which the gateway writes. */
export const ROLLOUT_STATUS: Schema = {
  description: STATUS,
  type: 'object',
  properties: {
    ...COMMON,
    ...COUNTS,
    paused: described({ type: 'boolean' }, 'Whether the rollout is paused.'),
    source: described(TEXT, 'The source of the change.'),
    progress: described(TEXT, 'How many of the nodes are done.'),
    blocked: described(
      COUNT,
      'Nodes whose drain is blocked by a PodDisruptionBudget, pods that must not be evicted, or the API server.',
    ),
    stalledBy: described({ type: 'array', items: TEXT }, 'The nodes that stall the rollout.'),
    supersededBy: described(TEXT, 'The change that replaced this one.'),
    startedAt: described(TEXT, 'When the rollout started.'),
    endedAt: described(TEXT, 'When it ended.'),
    pools: {
      description: 'Progress of each pool, by name.',
      type: 'object',
      additionalProperties: {
        type: 'object',
        properties: {
          nodes: described(COUNT, 'Nodes of the pool that the change affects.'),
          done: described(COUNT, 'Nodes that are done.'),
          active: described(COUNT, 'Nodes that are changing now.'),
          untouched: described(COUNT, 'In a rollback: nodes that are done because the change has not changed them.'),
          degraded: described(COUNT, 'In a rollback: nodes that are done, but whose rollback failed.'),
        } satisfies Readonly<Record<keyof PoolProgress, object>>,
      },
    },
  },
};
