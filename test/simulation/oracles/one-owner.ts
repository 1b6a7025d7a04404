import { takenReport } from '#libs/contracts';
import { Violation, type Oracle } from '../world/world.js';

/** What is known of one target, from its journal and from what arrives at it. */
interface Owned {
  /** The copy that owns it; empty if it was given up. */
  owner: string;
  /** The owner has written to the target. */
  hasWritten: boolean;
  /** How each lease ended, according to the journal. */
  readonly ends: Map<string, string>;
}

/**
 * A target elsewhere has one owner. Once a new owner has written to it, no write of an earlier one arrives. Only the
 * owner writes its journal, and a lease counts as applied only if an owner has confirmed it there.
 */
export function oneOwner(): Oracle {
  const targets = new Map<string, Owned>();
  const targetOf = (name: string): Owned => {
    const known = targets.get(name) ?? { owner: '', hasWritten: false, ends: new Map<string, string>() };
    targets.set(name, known);
    return known;
  };
  return {
    name: 'one owner',
    onOwned(_world, { name }, { by, isClaim, isGivenUp, journal: { lastDealt } }) {
      const target = targetOf(name);
      if (!isClaim && target.owner !== by)
        throw new Violation(`${by} writes the journal of ${name}, which belongs to ${target.owner || 'nobody'}`);
      if (isClaim && target.owner !== by) target.hasWritten = false;
      target.owner = isGivenUp ? '' : by;
      if (lastDealt !== undefined) target.ends.set(lastDealt.lease, lastDealt.verdict);
    },
    onTargetWrite(_world, { name }, owner) {
      const target = targetOf(name);
      if (owner === target.owner) target.hasWritten = true;
      else if (target.hasWritten)
        throw new Violation(`${owner} writes to ${name}, after ${target.owner} has taken over and written to it`);
    },
    onFact(_world, fact) {
      if (fact.type !== 'node.lease.settled' || !targets.has(fact.node) || takenReport(fact) === undefined) return;
      const verdict = targetOf(fact.node).ends.get(fact.lease);
      if (fact.because === 'applied' && verdict !== 'applied')
        throw new Violation(`${fact.lease} ended as applied, and no owner of ${fact.node} has confirmed it`);
    },
  };
}
