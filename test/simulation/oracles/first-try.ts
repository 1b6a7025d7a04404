import { isLeaseEnd, takenReport, type Fact } from '#libs/contracts';
import { Violation, type Oracle } from '../world/world.js';

interface Try {
  readonly node: string;
  readonly lease: string;
  /** Undefined while the lease has no outcome. */
  failed: boolean | undefined;
}

/**
 * If no node has ever had a config with these fragments (recipe), one node tries the committed config first. No other
 * node gets a lease to it until then, unless the first one left, was set aside, was not reached, or got another config.
 */
export function firstTry(): Oracle {
  /** Hash → recipes, as leases and changes name them. A rollback names none. */
  const recipes = new Map<string, Set<string>>();
  const noteRecipe = (hash: string, recipe: string): void => {
    if (recipe !== '') recipes.set(hash, (recipes.get(hash) ?? new Set()).add(recipe));
  };
  const had = new Set<string>();
  const tries = new Map<string, Try[]>();
  const forget = (node: string): void => {
    for (const [recipe, some] of tries)
      tries.set(
        recipe,
        some.filter((one) => one.node !== node),
      );
  };
  return {
    name: 'first try',
    onFact({ bus }, fact, sequence) {
      const report = takenReport(fact);
      if (report !== undefined) had.add(report.hash);
      for (const { to, recipe } of Object.values(bus.ledger[sequence - 1]?.targets ?? {})) noteRecipe(to, recipe);
      if (fact.type === 'node.lease.granted') {
        noteRecipe(fact.hash, fact.recipe);
        forget(fact.node);
        if (fact.kind !== 'corrective') return;
        const other = tries.get(fact.recipe)?.find(({ failed }) => failed !== false);
        const isTried = [...recipes].some(([hash, some]) => some.has(fact.recipe) && had.has(hash));
        if (other !== undefined && !isTried)
          throw new Violation(
            `${fact.node} gets a config that no node has had, and ${other.node} ${other.failed === true ? 'failed to apply it' : 'still tries it'}`,
          );
        tries.set(fact.recipe, [
          ...(tries.get(fact.recipe) ?? []),
          { node: fact.node, lease: fact.lease, failed: undefined },
        ]);
      }
      if (SETS_ASIDE.has(fact.type) && 'node' in fact) forget(fact.node);
      if (fact.type === 'node.lease.settled' || isLeaseEnd(fact))
        for (const some of tries.values())
          for (const one of some)
            if (one.lease === fact.lease) one.failed ??= isFailure(fact, report?.untouched === true);
      // A node that was unknown may say later that it has never begun.
      if (fact.type === 'node.reported' && fact.untouched === true)
        for (const some of tries.values()) for (const one of some) if (one.lease === fact.lease) one.failed = false;
    },
  };
}

const SETS_ASIDE: ReadonlySet<Fact['type']> = new Set<Fact['type']>([
  'node.left',
  'node.taken',
  'node.skipped',
  'node.changed',
  'node.rendered',
]);

const isFailure = (fact: Fact, untouched: boolean): boolean =>
  'because' in fact && ['invalid', 'failed', 'unknown'].includes(String(fact.because)) && !untouched;
