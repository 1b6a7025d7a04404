import type { NodeReport } from '#libs/contracts';
import type { Draft } from '#libs/engine';
import type { State } from './state.js';

/** Requests of people under `ops.node`. */
export type Request =
  | { readonly op: 'list'; readonly cursor: string; readonly limit: number }
  | { readonly op: 'get'; readonly node: string }
  | {
      readonly op: 'remove';
      readonly node: string;
      readonly force: boolean;
      readonly by: string;
      readonly reason: string;
    };

export type Input =
  | { readonly type: 'announced'; readonly report: NodeReport }
  | { readonly type: 'request'; readonly request: Request };
export type InventoryDraft = Draft<State, Input, never>;
