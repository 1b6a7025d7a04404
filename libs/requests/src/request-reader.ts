import type { Reason } from '#libs/contracts';
import { readShape, reasonsOf, definitionsOf, type Class, type Schema } from '#libs/manifests';
import { DiffRequest, PlanRequest, RetryRequest } from './config-requests.js';
import { ForgiveRequest, ListKnownBadRequest } from './known-bad-requests.js';
import { DrainedRequest, ListNodesRequest, NodeRequest, SettleNodeRequest } from './node-requests.js';
import { GiveRequest, ListPoolsRequest, PoolRequest, TakeRequest } from './pool-requests.js';
import { GetRolloutRequest, ListRolloutsRequest, SteerRequest } from './rollout-requests.js';

/** The class of every request under `ops.`, by subject. */
export const REQUESTS = {
  'ops.config.plan': PlanRequest,
  'ops.config.diff': DiffRequest,
  'ops.config.retry': RetryRequest,
  'ops.rollout.list': ListRolloutsRequest,
  'ops.rollout.get': GetRolloutRequest,
  'ops.rollout.pause': SteerRequest,
  'ops.rollout.resume': SteerRequest,
  'ops.rollout.abort': SteerRequest,
  'ops.node.list': ListNodesRequest,
  'ops.node.get': NodeRequest,
  'ops.node.why': NodeRequest,
  'ops.node.skip': SettleNodeRequest,
  'ops.node.remove': SettleNodeRequest,
  'ops.node.drained': DrainedRequest,
  'ops.known-bad.list': ListKnownBadRequest,
  'ops.known-bad.forgive': ForgiveRequest,
  'ops.pool.list': ListPoolsRequest,
  'ops.pool.get': PoolRequest,
  'ops.pool.take': TakeRequest,
  'ops.pool.give': GiveRequest,
} as const satisfies Readonly<Record<string, Class>>;

export type RequestSubject = keyof typeof REQUESTS;

/** A request, or every reason why it is none. */
export type RequestResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reasons: readonly Reason[] };

/** Reads the body of a request; an absent body (an empty payload) is `{}`. */
export function readRequest<T extends object>(type: Class<T>, body: unknown): RequestResult<T> {
  const { value, problems } = readShape(type, body === undefined || body === '' ? {} : body);
  return problems.length > 0 ? { ok: false, reasons: reasonsOf('', problems) } : { ok: true, value };
}

/** A JSON Schema (draft-07) of every request, by subject. */
export function requestSchemas(): Readonly<Record<RequestSubject, Schema>> {
  const schemas = Object.entries(REQUESTS).map(([subject, type]) => [
    subject,
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      $id: `https://sluice.dev/schemas/ops/${subject}.json`,
      title: subject,
      $ref: `#/definitions/${type.name}`,
      definitions: definitionsOf(type),
    },
  ]);
  return Object.fromEntries(schemas) as Record<RequestSubject, Schema>;
}
