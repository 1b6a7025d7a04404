import { createHash } from 'node:crypto';
import type { Fragment, FragmentRef, NewFact, Targets } from '#libs/contracts';
import { API_VERSION } from '#libs/manifests';
import { factOf, joined, LedgerCopy, MemoryLedger, targetsOf } from '#libs/testing';
import { mergerCore, type GatherResult, type Input, type RenderNeed, type State } from './index.js';

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The metadata of a message. */
export interface MessageHead {
  readonly id?: string;
  readonly storedMs?: number;
}

/** The merger on a ledger in memory, with helpers for its specs. */
export class Merger extends LedgerCopy<State, Input, RenderNeed, GatherResult> {
  constructor(ledger = new MemoryLedger(), core = mergerCore(sha256)) {
    super(core, ledger);
  }

  /** Nodes that have joined and have the config of the committed state. */
  fleet(names: readonly string[], role = ''): this {
    this.given(...names.map((node) => joined(node, role === '' ? {} : { role })));
    this.when();
    return this;
  }

  /** A change as it is published: the message with this sequence in CHANGES. */
  publishes(
    sequence: number,
    ...fragments: readonly (Fragment | { readonly gone: FragmentRef })[]
  ): readonly NewFact[] {
    return this.publishesText(sequence, JSON.stringify(changeBody(fragments)));
  }
  publishesText(sequence: number, text: string, source = 'me', more: MessageHead = {}): readonly NewFact[] {
    return this.when({ type: 'published', sequence, source, text, storedMs: sequence, ...more });
  }

  /** The facts of a change that succeeds, as the other services append them. */
  starts(change: string, replaces: readonly string[] = []): readonly NewFact[] {
    for (const older of replaces) this.given(factOf('rollout.superseded', { change: older, by: change }));
    return this.given(
      factOf('config.validated', { change, attempt: this.attempt(change) }),
      factOf('rollout.started', { change, replaces }),
    ).when();
  }
  completes(change: string): readonly NewFact[] {
    return this.given(factOf('rollout.complete', { change })).when();
  }
  commits(sequence: number, ...fragments: Parameters<Merger['publishes']>[1][]): readonly NewFact[] {
    this.publishes(sequence, ...fragments);
    this.starts(`c${sequence}`);
    return this.completes(`c${sequence}`);
  }

  attempt(change: string): number {
    return this.view('changes', change).attempt;
  }
  phase(change: string): string {
    return this.view('changes', change).phase;
  }
}

export const changeBody = (fragments: readonly (Fragment | { readonly gone: FragmentRef })[]) => ({
  apply: fragments.flatMap((one) =>
    'gone' in one ? [] : [{ apiVersion: API_VERSION, kind: one.kind, metadata: { name: one.name }, spec: one.spec }],
  ),
  delete: fragments.flatMap((one) => ('gone' in one ? [one.gone] : [])),
});

export const rendered = (
  facts: readonly NewFact[],
): readonly {
  readonly change: string;
  readonly attempt: number;
  readonly replaces: readonly string[];
  readonly targets: Targets;
  readonly nodes: number;
  readonly unchanged: number;
}[] =>
  facts.flatMap((fact) =>
    fact.type === 'config.rendered'
      ? [
          {
            change: fact.change,
            attempt: fact.attempt,
            replaces: fact.replaces,
            nodes: fact.nodes,
            unchanged: fact.unchanged,
            targets: targetsOf(fact) ?? {},
          },
        ]
      : [],
  );
