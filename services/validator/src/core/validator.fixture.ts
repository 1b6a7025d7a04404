import type { NewFact, Reason, Targets } from '#libs/contracts';
import { accepted, factOf, LedgerCopy, MemoryLedger, renderedChange } from '#libs/testing';
import { validatorCore, type Input, type ReviewResult, type ReviewNeed, type State } from './index.js';
import type { Request } from './inputs.js';

/** The validator on a ledger in memory. The spec provides the results of reading the configs. */
export class Validator extends LedgerCopy<State, Input, ReviewNeed, ReviewResult> {
  reasons: readonly Reason[] = [];
  warnings: readonly Reason[] = [];
  incompatible: readonly string[] = [];
  readonly nodeReasons = new Map<string, readonly Reason[]>();
  reviews = 0;

  constructor(ledger = new MemoryLedger()) {
    super(validatorCore, ledger, (needs) => new Map(needs.map((need) => [need.key, this.review(need)])));
  }

  private review(need: ReviewNeed): ReviewResult {
    this.reviews += 1;
    if (need.do === 'review-change')
      return { did: 'review-change', reasons: this.reasons, warnings: this.warnings, incompatible: this.incompatible };
    return { did: 'review-nodes', reasons: this.nodeReasons };
  }

  /** A rendered change, and its review. */
  rendered(change: string, targets: Targets, attempt = 1): readonly NewFact[] {
    return this.given(accepted(change), renderedChange(change, targets, { attempt })).when();
  }
  /** The same, and it has started. */
  started(change: string, targets: Targets): this {
    this.rendered(change, targets);
    return this.given(factOf('rollout.started', { change }));
  }
  /** A node reports its forward lease as `invalid`. */
  invalid(
    node: string,
    {
      change = 'c1',
      hash = 'bad',
      recipe = 'r-bad',
      kind = 'forward' as const,
      lease = `${node}-l1`,
    }: InvalidLease = {},
  ): readonly NewFact[] {
    return this.given(
      factOf('node.lease.settled', {
        node,
        pool: 'default',
        lease,
        change,
        kind,
        hash,
        recipe,
        because: 'invalid',
        reason: 'the unit does not parse',
      }),
    ).when();
  }
  asks(request: Request): readonly NewFact[] {
    return this.when({ type: 'request', request });
  }
  clears(hash: string): readonly NewFact[] {
    return this.asks({ op: 'clear', hash, by: 'me', reason: 'fixed' });
  }
}

type InvalidLease = {
  readonly change?: string;
  readonly hash?: string;
  readonly recipe?: string;
  readonly kind?: 'forward' | 'corrective' | 'rollback';
  readonly lease?: string;
};

export const to = (hash: string, from = 'old', recipe = `r-${hash}`) => ({ from, to: hash, recipe });
