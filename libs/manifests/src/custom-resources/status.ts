import type { Schema } from '../shape/checked.js';

const TEXT = { type: 'string' } as const;
const COUNT = { type: 'integer', format: 'int64', minimum: 0 } as const;

/** As in all of Kubernetes: one of each type. */
const CONDITIONS: Schema = {
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
  items: {
    type: 'object',
    required: ['type', 'status', 'lastTransitionTime', 'reason', 'message'],
    properties: {
      type: { ...TEXT, maxLength: 316 },
      status: { ...TEXT, enum: ['True', 'False', 'Unknown'] },
      observedGeneration: COUNT,
      lastTransitionTime: { ...TEXT, format: 'date-time' },
      reason: { ...TEXT, minLength: 1, maxLength: 1024 },
      message: { ...TEXT, maxLength: 32_768 },
    },
  },
};

const described = (schema: object, description: string): Schema => ({ ...schema, description });

const COUNTS = {
  nodes: described(COUNT, 'Nodes that the change alters.'),
  applied: described(COUNT, 'Of them, those that have it.'),
  failed: COUNT,
  unknown: described(COUNT, 'Nodes that did not answer in time.'),
  owed: described(COUNT, 'Nodes that get it as soon as they can.'),
  pending: COUNT,
};

const COMMON = {
  phase: described(TEXT, 'Where the object stands, in one word.'),
  message: described(TEXT, 'The one thing that explains it.'),
  observedGeneration: described(COUNT, 'The generation that the rest is about.'),
  conditions: CONDITIONS,
};

/** What the gateway says of a fragment. */
export const FRAGMENT_STATUS: Schema = {
  type: 'object',
  properties: {
    ...COMMON,
    change: described(TEXT, 'The change that it was published in, which is also the name of its Rollout.'),
    hash: described(TEXT, 'Of labels and spec as published: sha256 of the canonical JSON.'),
    ...COUNTS,
  },
};

/** Of a pool: its budget too, and who uses it up. */
export const POOL_STATUS: Schema = {
  type: 'object',
  properties: {
    ...(FRAGMENT_STATUS['properties'] as object),
    members: COUNT,
    budget: described(COUNT, 'How many may be unavailable at once.'),
    unavailable: COUNT,
    usedBy: described(TEXT, 'The first of the nodes that are unavailable, and why each is.'),
    waiting: described(COUNT, 'Nodes that wait for a unit.'),
  },
};

/** What the gateway says of a rollout. */
export const ROLLOUT_STATUS: Schema = {
  type: 'object',
  properties: {
    ...COMMON,
    ...COUNTS,
    paused: { type: 'boolean' },
    source: TEXT,
    progress: described(TEXT, 'Settled nodes of all.'),
    blocked: described(
      COUNT,
      'Nodes whose drain is held up: by a PodDisruptionBudget, by pods that must not be evicted, or by the API server.',
    ),
    stalledBy: { type: 'array', items: TEXT },
    supersededBy: TEXT,
    startedAt: TEXT,
    endedAt: TEXT,
    pools: {
      type: 'object',
      additionalProperties: { type: 'object', properties: { nodes: COUNT, done: COUNT, active: COUNT } },
    },
  },
};
