import type { NewFact } from '#libs/contracts';
import { factOf, report } from '#libs/testing';
import { Merger } from './merger.fixture.js';

/** A lease of this target of the change, or of the committed config. */
export function leased(
  m: Merger,
  node: string,
  change: string,
  kind: 'forward' | 'corrective' | 'rollback' = 'forward',
): NewFact {
  const hash = kind === 'rollback' ? m.state.targets.get(change)?.[node]?.from : targetOf(m, node, change);
  const lease = `l-${node}`;
  return factOf('node.lease.granted', { node, pool: 'default', lease, change, kind, phase: 'applying', hash });
}

/** The node reports that it has the config of this target of the change, or the committed one. */
export function ends(
  m: Merger,
  node: string,
  change: string,
  because: 'applied' | 'failed' | 'unknown',
  more: { readonly hash?: string; readonly leftovers?: readonly string[] } = {},
): NewFact {
  const { hash = targetOf(m, node, change), leftovers = [] } = more;
  const { incarnation, nonce, seq } = report(node, hash);
  const had = m.state.inForce.get(node) ?? '';
  return factOf('node.lease.settled', {
    node,
    pool: 'default',
    lease: `l-${node}`,
    change,
    kind: 'forward',
    hash,
    because,
    restored: true,
    released: because !== 'unknown',
    ...(because === 'unknown'
      ? {}
      : {
          report: {
            incarnation,
            nonce,
            seq,
            hash: because === 'applied' ? hash : had,
            verdict: '',
            bootId: '',
            reportSequence: 1,
            notUndone: [],
            leftovers,
          },
        }),
  });
}
export const targetOf = (m: Merger, node: string, change: string): string =>
  m.state.targets.get(change)?.[node]?.to ?? m.state.desired.get(node)?.hash ?? '';
export const reports = (node: string, hash: string, lease = ''): NewFact =>
  factOf('node.reported', { ...report(node, hash, { lease }), report: 'announced', reportSequence: 1 });
/** After a lease that its node had not answered. */
export const answers = (m: Merger, node: string): NewFact =>
  reports(node, m.state.inForce.get(node) ?? '', `l-${node}`);

/** Nodes that have the config of the committed state. */
export function fleet(...names: readonly string[]): Merger {
  const m = new Merger().fleet(names, 'web');
  return m.given(...names.map((node) => reports(node, m.state.desired.get(node)?.hash ?? '')));
}

/** A rollout of the change over all nodes, which is committed. */
export function rollOut(m: Merger, sequence: number, ...fragments: Parameters<Merger['publishes']>[1][]): void {
  m.publishes(sequence, ...fragments);
  const change = `c${sequence}`;
  m.starts(change);
  for (const node of Object.keys(m.state.targets.get(change) ?? {}))
    m.given(leased(m, node, change), ends(m, node, change, 'applied'));
  m.completes(change);
}
