import type { Fact } from '#libs/contracts';
import { Violation, type Oracle } from '../world/world.js';

interface RollingChange {
  readonly maxFailures: number;
  failures: number;
}

/**
 * I4: once a node has reported the config as invalid, or more nodes have failed than `maxFailures` allows, the rollout
 * grants no further forward lease.
 */
export function turnedRound(): Oracle {
  const rolling = new Map<string, RollingChange>();
  const failed = new Map<string, string>();
  return {
    name: 'I4 no forward after failure',
    onFact(_world, fact) {
      if (fact.type === 'rollout.started') rolling.set(fact.change, { maxFailures: fact.maxFailures, failures: 0 });
      else if (isTurn(fact)) for (const known of [rolling, failed]) known.delete(fact.change);
      else if (
        fact.type === 'node.lease.settled' &&
        fact.kind === 'forward' &&
        isTooMuch(rolling.get(fact.change), fact.because)
      )
        failed.set(fact.change, `${fact.node} is ${fact.because}`);
      else if (fact.type === 'node.lease.granted' && fact.kind === 'forward' && failed.has(fact.change)) {
        throw new Violation(`${fact.lease} leads forward in ${fact.change}, where ${failed.get(fact.change)}`);
      }
    },
  };
}

const isTurn = (fact: Fact): fact is Extract<Fact, { type: `rollout.${string}` }> =>
  fact.type === 'rollout.failed' ||
  fact.type === 'rollout.reverting' ||
  fact.type === 'rollout.complete' ||
  fact.type === 'rollout.superseded';

function isTooMuch(rollout: RollingChange | undefined, because: string): boolean {
  if (rollout === undefined || !['invalid', 'failed', 'unknown'].includes(because)) return false;
  rollout.failures += 1;
  return because === 'invalid' || rollout.failures > rollout.maxFailures;
}
