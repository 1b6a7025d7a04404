import { isLeaseEnd, type Fact } from '#libs/contracts';
import { Violation, type Oracle } from '../world/world.js';

type Phase = 'draining' | 'applying' | 'settled' | 'uncordoning' | 'released';
/** The phases from which each phase may be reached. */
const BEFORE: Readonly<Record<Exclude<Phase, 'draining'>, readonly Phase[]>> = {
  applying: ['draining'],
  settled: ['draining', 'applying'],
  uncordoning: ['settled'],
  released: ['settled', 'uncordoning'],
};

interface Lease {
  phase: Phase;
  readonly drains: boolean;
  drained: boolean;
  uncordoned: boolean;
  because: string;
}

/**
 * I2, I5: a lease goes through its phases once and in order: drained before it is applying, and uncordoned before it is
 * released.
 */
export function leasePhases(): Oracle {
  const leases = new Map<string, Lease>();
  return {
    name: 'I2 I5 lease phases',
    onFact(_world, fact) {
      const known = leases.get(leaseOf(fact));
      if (fact.type === 'node.lease.granted') {
        if (known !== undefined) throw new Violation(`${fact.lease} is granted twice`);
        const phase = fact.phase === 'draining' ? 'draining' : 'applying';
        leases.set(fact.lease, { phase, drains: phase === 'draining', drained: false, uncordoned: false, because: '' });
      } else if (known !== undefined) follow(known, fact);
    },
  };
}

function follow(lease: Lease, fact: Fact): void {
  if (fact.type === 'node.drained') lease.drained = true;
  if (fact.type === 'node.uncordoned') {
    if (lease.phase !== 'uncordoning') throw new Violation(`${fact.lease} is uncordoned while it is ${lease.phase}`);
    lease.uncordoned = true;
  }
  const to = phaseOf(fact);
  if (to === undefined) return;
  if (!endsAgain(lease, fact) && !BEFORE[to].includes(lease.phase))
    throw new Violation(`${leaseOf(fact)} goes from ${lease.phase} to ${to}`);
  if (to === 'applying' && !lease.drained)
    throw new Violation(`${leaseOf(fact)} is applying, but its node was not drained`);
  if (isLeaseEnd(fact) && lease.drains && !lease.uncordoned)
    throw new Violation(`${leaseOf(fact)} is released, and its node is not uncordoned`);
  lease.phase = isLeaseEnd(fact) ? 'released' : to;
  if (fact.type === 'node.lease.settled') lease.because = fact.because;
}

/** A node that never answered is skipped or removed. Its lease then ends a second time. */
const endsAgain = (lease: Lease, fact: Fact): boolean =>
  fact.type === 'node.lease.settled' &&
  lease.phase === 'settled' &&
  lease.because === 'unknown' &&
  fact.because !== 'unknown';

const leaseOf = (fact: Fact): string => (fact.type.startsWith('node.') && 'lease' in fact ? fact.lease : '');
const phaseOf = ({ type }: Fact): keyof typeof BEFORE | undefined => {
  const phase = type.startsWith('node.lease.') ? type.slice('node.lease.'.length) : '';
  return phase in BEFORE ? (phase as keyof typeof BEFORE) : undefined;
};
