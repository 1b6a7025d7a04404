import type { Reason, Targets } from '#libs/contracts';
import type { Need } from '#libs/engine';
import type { RequestOf } from '#libs/manifests';

/** What the validator receives besides the ledger. */
export type Input = { readonly type: 'request'; readonly request: Request };

/** What people and tools may request from the validator. */
export const REQUESTS = { list: 'ops.known-bad.list', add: 'ops.known-bad.add', clear: 'ops.known-bad.clear' } as const;
export type Request = RequestOf<typeof REQUESTS>;

/** Reading the configs and checking them. */
export type ReviewNeed =
  | (Need & { readonly do: 'review-change'; readonly change: string; readonly targets: Targets })
  | (Need & {
      readonly do: 'review-nodes';
      readonly nodes: readonly { readonly node: string; readonly hash: string }[];
    });

/** The results of the checks. */
export type ReviewResult =
  | {
      readonly did: 'review-change';
      readonly reasons: readonly Reason[];
      readonly warnings: readonly Reason[];
      readonly incompatible: readonly string[];
    }
  | { readonly did: 'review-nodes'; readonly reasons: ReadonlyMap<string, readonly Reason[]> };
