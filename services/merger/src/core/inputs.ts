import { ID_HEADER, sourceOf, type PlanAnswer, type Reason, type Targets } from '#libs/contracts';
import type { Need } from '#libs/engine';
import type { ChangeRendering, NodeRendering } from './rendering.js';

/** What the merger receives besides the ledger. */
export type Input =
  | {
      readonly type: 'published';
      readonly sequence: number;
      readonly source: string;
      readonly text: string;
      /** The header Sluice-Id; undefined if the message has none. */
      readonly id?: string | undefined;
      /** When the server stored the message, in milliseconds since 1970. */
      readonly storedMs: number;
    }
  | { readonly type: 'request'; readonly request: Request };

/** A message of the stream CHANGES as an input. */
export const publishedInput = ({
  sequence,
  subject,
  text,
  headers,
  storedMs,
}: {
  readonly sequence: number;
  readonly subject: string;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly storedMs: number;
}): Input => ({
  type: 'published',
  sequence,
  source: sourceOf(subject),
  text,
  id: idIn(headers),
  storedMs,
});

/** NATS compares the names of headers as they are written, and people do not. */
const idIn = (headers: Readonly<Record<string, string>>): string | undefined =>
  Object.entries(headers).find(([name]) => name.toLowerCase() === ID_HEADER.toLowerCase())?.[1];

/** Requests of people under `ops.config`. */
export type Request = {
  readonly op: 'plan';
  readonly id: string;
  readonly body: unknown;
  /** Who would publish it; undefined if the request does not say. */
  readonly source: string | undefined;
  readonly cursor: string;
  readonly limit: number;
};

/** Work that takes long, or whose result must be stored as a blob before the fact that names it. */
export type RenderNeed =
  | (Need & { readonly do: 'render-change'; readonly change: string; readonly replaces: readonly string[] })
  | (Need & { readonly do: 'render-nodes'; readonly nodes: readonly string[] })
  | (Need & { readonly do: 'hash-fragments' })
  | (Need & {
      readonly do: 'plan';
      readonly body: unknown;
      readonly source: string | undefined;
      /** A further page of a plan that was already computed. */ readonly again: boolean;
    });

/** The result of that work. Configs and targets are already stored in their buckets. */
export type GatherResult =
  | {
      readonly did: 'render-change';
      readonly rendering: Omit<ChangeRendering, 'texts'>;
      readonly blobs: readonly string[];
      readonly targets: Targets;
    }
  | { readonly did: 'hash-fragments' }
  | { readonly did: 'render-nodes'; readonly nodes: readonly Omit<NodeRendering, 'text'>[] }
  | { readonly did: 'plan'; readonly plan: PlanAnswer | { readonly rejected: readonly Reason[] } };
