import { createHash } from 'node:crypto';
import type { Fragment, FragmentRef, NewFact, Targets } from '#libs/contracts';
import { API_VERSION } from '#libs/manifests';
import { factOf, joined, LedgerCopy, MemoryLedger, targetsOf } from '#libs/testing';
import { mergerCore, type GatherResult, type Input, type RenderNeed, type State } from './index.js';

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The merger on a ledger in memory, and words for what specs say again and again. */
export class Merger extends LedgerCopy<State, Input, RenderNeed, GatherResult> {
  constructor(ledger = new MemoryLedger(), core = mergerCore(sha256)) {
    super(core, ledger);
  }

  /** Nodes that have joined and got what the committed state gives them. */
  fleet(names: readonly string[], role = ''): this {
    this.given(...names.map((node) => joined(node, role === '' ? {} : { role })));
    this.when();
    return this;
  }

  /** A change as it is published: the message that has this sequence in CHANGES. */
  publishes(sequence: number, ...says: readonly (Fragment | { readonly gone: FragmentRef })[]): readonly NewFact[] {
    return this.publishesText(sequence, JSON.stringify(changeBody(says)));
  }
  publishesText(sequence: number, text: string, source = 'me'): readonly NewFact[] {
    return this.when({ type: 'published', sequence, source, text });
  }

  /** The way of a change that nobody hinders, as the other services tell it. */
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
  commits(sequence: number, ...says: Parameters<Merger['publishes']>[1][]): readonly NewFact[] {
    this.publishes(sequence, ...says);
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

export const changeBody = (says: readonly (Fragment | { readonly gone: FragmentRef })[]) => ({
  apply: says.flatMap((one) =>
    'gone' in one ? [] : [{ apiVersion: API_VERSION, kind: one.kind, metadata: { name: one.name }, spec: one.spec }],
  ),
  delete: says.flatMap((one) => ('gone' in one ? [one.gone] : [])),
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
