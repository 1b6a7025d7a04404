import { nodeToken, takenReport, type Fact, type FragmentView } from '#libs/contracts';
import { Violation, type Oracle, type World } from '../world/world.js';

/** What the ledger says about a node: from which fact on it may have which config. */
interface Known {
  /** Where it joined; undefined if it has left. */
  joined?: number;
  reported?: { readonly hash: string; readonly at: number };
  leased: readonly Leased[];
}
interface Leased {
  readonly lease: string;
  readonly hash: string;
  readonly at: number;
  readonly isOver: boolean;
}

/**
 * At any time: a view of a deleted fragment counts each machine that has it, if the ledger up to that view could tell.
 * Nobody can know yet of a machine whose disk was replaced, or that a lease of after the view has reached.
 */
export function deletedFragments(): Oracle {
  const nodes = new Map<string, Known>();
  return {
    name: 'deleted fragments',
    onFact(_world, fact, sequence) {
      if (!('node' in fact) || typeof fact.node !== 'string') return;
      const known = nodes.get(fact.node) ?? { leased: [] };
      nodes.set(fact.node, known);
      if (fact.type === 'node.joined') known.joined ??= sequence;
      else if (fact.type === 'node.left') delete known.joined;
      else learn(known, fact, sequence);
    },
    onView(world, { bucket, key }) {
      const view = bucket === 'fragments' ? world.bus.view(bucket, key) : undefined;
      if (view?.gone === true) check(world, view, nodes);
    },
  };
}

function learn(known: Known, fact: Fact, at: number): void {
  if (fact.type === 'node.lease.applying' || (fact.type === 'node.lease.granted' && fact.phase === 'applying'))
    known.leased = [...known.leased, { lease: fact.lease, hash: fact.hash, at, isOver: false }];
  const report = takenReport(fact);
  if (report !== undefined) {
    const { lease, hash } = report;
    const named = known.leased.findLastIndex((one) => one.lease === lease);
    known.reported = { hash, at };
    known.leased = known.leased.slice(named + 1).filter(({ isOver }) => !isOver);
  }
  if (fact.type === 'node.lease.released' || (fact.type === 'node.lease.settled' && fact.released))
    known.leased = known.leased.map((one) => (one.lease === fact.lease ? { ...one, isOver: true } : one));
}

function check(world: World, { fragment, counts, stillOn, ledger }: FragmentView, nodes: Map<string, Known>): void {
  if (fragment === undefined || counts === undefined) return;
  const holders = [...nodes].filter(([node, { joined = Infinity, reported, leased }]) => {
    const hash = world.nodes.get(node)?.journal.inForce ?? '';
    const isKnown = [...leased, ...(reported === undefined ? [] : [reported])].some(
      (one) => one.hash === hash && one.at <= ledger,
    );
    if (!isKnown || joined > ledger || world.bus.view('nodes', nodeToken(node))?.state === 'gone') return false;
    const entries = world.bus.everConfig({ node, hash })?.fragments ?? [];
    return entries.some(({ kind, name }) => kind === fragment.kind && name === fragment.name);
  });
  const left = counts.nodes - counts.upToDate;
  const missed = holders.map(([node]) => node).filter((node) => left <= stillOn.length && !stillOn.includes(node));
  if (missed.length > 0 || left < holders.length)
    throw new Violation(
      `${fragment.kind}/${fragment.name} is on ${missed.join()}, and counts ${left}: ${stillOn.join()}`,
    );
}
