import type { Reason, Targets } from '#libs/contracts';
import type { Need } from '#libs/engine';

/** What the validator receives besides the ledger. */
export type Input = { readonly type: 'request'; readonly request: Request };

/** Requests of people under `ops.known-bad`. */
export type Request =
  | { readonly op: 'list'; readonly cursor: string; readonly limit: number }
  | { readonly op: 'clear'; readonly hash: string; readonly by: string; readonly reason: string };

/** Reading the configs and checking them. */
export type ReviewNeed =
  | (Need & { readonly do: 'review-change'; readonly change: string; readonly targets: Targets })
  | (Need & {
      readonly do: 'review-nodes';
      readonly nodes: readonly { readonly node: string; readonly hash: string }[];
    });

/** What the checks found. */
export type ReviewResult =
  | {
      readonly did: 'review-change';
      readonly reasons: readonly Reason[];
      readonly warnings: readonly Reason[];
      readonly incompatible: readonly string[];
    }
  | { readonly did: 'review-nodes'; readonly reasons: ReadonlyMap<string, readonly Reason[]> };
