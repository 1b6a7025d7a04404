import type { Chance } from '../../simulation/world/chance.js';
import { junk, unreadable, type Example } from '../junk.js';
import type { DeliveredJunk } from './door.js';
import { oddHeaders } from './headers.js';

const KINDS = ['announced', 'applied', 'invalid', 'failed', 'drifted', 'probed', 'progress'] as const;
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
  failingProbes: [{ probe: 'p', reason: 'no' }],
  step: 's',
});

/**
 * A message that claims to be a report of a node. Under the name of an existing node it is always unreadable, because
 * only access rights can restrict who reports for which node.
 */
export function badReport(chance: Chance, nodes: readonly string[]): DeliveredJunk {
  const known = chance.flip(0.3);
  const node = known ? chance.pick(nodes) : chance.pick(STRANGERS);
  const subject = `node.${chance.pick(KINDS)}.${node.replaceAll('.', '_')}`;
  return { ...(known ? unreadable : junk)(chance, reportOf(node)), subject, headers: oddHeaders(chance) };
}

/**
 * A message that claims to be a heartbeat of a node. It may name one node in the subject and another in the body. It
 * names an existing node only if it is unreadable.
 */
export function badHeartbeat(chance: Chance, nodes: readonly string[]): DeliveredJunk {
  const known = chance.flip(0.3);
  const node = chance.pick(known ? nodes : STRANGERS);
  const body = { node, incarnation: 1, nonce: 7, everyMs: 10_000, pacedMs: 10_000 };
  return {
    ...(known ? unreadable : junk)(chance, body),
    subject: `alive.${chance.pick(known ? nodes : STRANGERS).replaceAll('.', '_')}`,
  };
}

/**
 * A message that claims to be a push from the buckets `leases` and `status`, a request for another heartbeat interval,
 * or a question about paths: at most a hint to an applier. Or it is a request about the leader, or about a drain.
 */
export function badPush(chance: Chance, nodes: readonly string[]): DeliveredJunk {
  const node = chance.pick(nodes).replaceAll('.', '_');
  const subject = chance.pick([
    `push.leases.${node}`,
    `push.status.${node}`,
    `push.pace.${node}`,
    `push.paths.${node}`,
    `push.nothing.${node}`,
    `lead.merger.${node}`,
    `node.drain.progress.${node}`,
  ]);
  return { ...unreadable(chance, { ledger: 1, node: 'x', lease: 'l1', everyMs: 10_000 }), subject };
}
