import { REQUESTS, type RequestSubject } from '#libs/manifests';
import type { Chance } from '../../simulation/world/chance.js';
import { junk, type Example } from '../junk.js';
import type { DeliveredJunk } from './door.js';
import { oddHeaders } from './headers.js';

const NODE: Example = { node: 'nobody.far', by: 'me', reason: 'r' };
const STEER: Example = { change: 'c999999', by: 'me', reason: 'r' };
const PAGE: Example = { cursor: '', limit: 5 };
const HASH = 'ab'.repeat(32);

/** A valid request about something that does not exist, so that it never steers anything by accident. */
export const EXAMPLES: Readonly<Record<RequestSubject, Example>> = {
  'ops.config.plan': { apply: [], delete: [], strategy: { maxFailures: 1 }, message: 'm', author: 'a', ...PAGE },
  'ops.config.diff': { node: 'nobody.far', from: HASH, to: HASH },
  'ops.config.retry': { change: 'c999999', by: 'me' },
  'ops.config.rollback': { change: 'c999999', by: 'me' },
  'ops.rollout.list': PAGE,
  'ops.rollout.get': { change: 'c999999', ...PAGE },
  'ops.rollout.pause': STEER,
  'ops.rollout.resume': STEER,
  'ops.rollout.abort': STEER,
  'ops.node.list': PAGE,
  'ops.node.get': { node: 'nobody.far' },
  'ops.node.why': { node: 'nobody.far' },
  'ops.node.skip': NODE,
  'ops.node.remove': NODE,
  'ops.node.label': { node: 'nobody.far', set: { role: 'edge' }, remove: ['zone'], by: 'me' },
  'ops.node.drained': { node: 'nobody.far', lease: 'l1', evicted: 1, by: 'me' },
  'ops.known-bad.list': PAGE,
  'ops.known-bad.add': {
    hash: HASH,
    fleet: 'nobody',
    node: 'nobody.far',
    change: 'c1',
    reason: 'r',
    finding: 'f-l1',
    by: 'me',
  },
  'ops.known-bad.clear': { hash: HASH, by: 'me', reason: 'r', findings: ['nobody f-l1'] },
  'ops.pool.list': PAGE,
  'ops.pool.get': { pool: 'nobody' },
  'ops.pool.take': { ...NODE, pool: 'nobody', owner: 'o' },
  'ops.pool.give': { node: 'nobody.far', owner: 'o', by: 'me' },
};

export const REQUEST_SUBJECTS = Object.keys(REQUESTS) as readonly RequestSubject[];

/** A message that is not a valid request, or barely is. */
export function badRequest(chance: Chance, subject: RequestSubject = chance.pick(REQUEST_SUBJECTS)): DeliveredJunk {
  return { ...junk(chance, EXAMPLES[subject]), subject, headers: oddHeaders(chance) };
}
