import type { Chance } from '../../simulation/world/chance.js';
import { junk, unreadable, type Example } from '../junk.js';
import type { DeliveredJunk } from './door.js';
import { oddHeaders } from './headers.js';

const KINDS = ['announced', 'applied', 'invalid', 'failed', 'drifted', 'progress'] as const;
const STRANGERS = [
  'stranger',
  'w-1.far',
  '__proto__',
  'constructor',
  'UPPER',
  'a_b',
  'ü',
  'x'.repeat(300),
  '-',
  '$SYS',
];

const reportOf = (node: string): Example => ({
  v: 1,
  at: '2026-01-01T00:00:00.000Z',
  node,
  incarnation: 1,
  nonce: 7,
  seq: 1,
  bootId: 'b',
  hash: '0'.repeat(64),
  lease: '',
  verdict: '',
  reason: '',
  restored: true,
  change: '',
  labels: { zone: 'far' },
  capabilities: ['kind:File'],
  fresh: false,
  version: '1',
  durationMs: 1,
  changed: ['/etc/x'],
  probe: '',
  differences: ['/etc/x'],
  step: 's',
});

/**
 * What says to be a node's report. Under a real node's name nothing that can be read: who may report as whom is a
 * matter of rights.
 */
export function badReport(chance: Chance, nodes: readonly string[]): DeliveredJunk {
  const known = chance.happens(0.3);
  const node = known ? chance.pick(nodes) : chance.pick(STRANGERS);
  const subject = `node.${chance.pick(KINDS)}.${node.replaceAll('.', '_')}`;
  return { ...(known ? unreadable : junk)(chance, reportOf(node)), subject, headers: oddHeaders(chance) };
}

/**
 * What says to be a node's heartbeat; it may name one node in the subject and another in the body. A node that there is
 * may be named by what nobody can read.
 */
export function badHeartbeat(chance: Chance, nodes: readonly string[]): DeliveredJunk {
  const known = chance.happens(0.3);
  const node = chance.pick(known ? nodes : STRANGERS);
  const body = { node, incarnation: 1, nonce: 7, everyMs: 10_000, pacedMs: 10_000 };
  return {
    ...(known ? unreadable : junk)(chance, body),
    subject: `alive.${chance.pick(known ? nodes : STRANGERS).replaceAll('.', '_')}`,
  };
}

/**
 * What says to be pushed from the buckets `leases` and `status`, or to say how often to beat: a hint to an applier, at
 * most. Or it is a request about the leader, or about a drain.
 */
export function badPush(chance: Chance, nodes: readonly string[]): DeliveredJunk {
  const node = chance.pick(nodes).replaceAll('.', '_');
  const subject = chance.pick([
    `push.leases.${node}`,
    `push.status.${node}`,
    `push.pace.${node}`,
    `push.nothing.${node}`,
    `lead.merger.${node}`,
    `node.drain.progress.${node}`,
  ]);
  return { ...unreadable(chance, { ledger: 1, node: 'x', lease: 'l1', everyMs: 10_000 }), subject };
}
