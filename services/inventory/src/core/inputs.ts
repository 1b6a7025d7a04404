import type { NodeReport } from '#libs/contracts';
import type { Draft } from '#libs/engine';
import type { RequestOf } from '#libs/manifests';
import type { State } from './state.js';

/** What people and tools may request from the inventory. */
export const REQUESTS = {
  list: 'ops.node.list',
  get: 'ops.node.get',
  remove: 'ops.node.remove',
  label: 'ops.node.label',
} as const;
export type Request = RequestOf<typeof REQUESTS>;

export type Input =
  | { readonly type: 'announced'; readonly report: NodeReport }
  | { readonly type: 'request'; readonly request: Request };
export type InventoryDraft = Draft<State, Input, never>;
