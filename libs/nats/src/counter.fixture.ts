import type { NewFact, NewFactOf, StatusView } from '#libs/contracts';
import type { Answer, Core, Entry } from '#libs/engine';

/** A tiny service for tests: it counts the reports of each node, and skips nodes on request. */
export interface Counts {
  readonly byNode: Map<string, { count: number; skipped: string }>;
  cursor: number;
  readonly touched: Set<string>;
}
export type CounterInput =
  | { readonly kind: 'report'; readonly node: string; readonly sequence: number }
  | { readonly kind: 'skip'; readonly node: string; readonly by: string };

export const counterCore: Core<Counts, CounterInput> = {
  name: 'scheduler',
  version: 1,
  reads: ['node.reported', 'node.skipped'],
  wantsTargets: false,
  initial: () => ({ byNode: new Map(), cursor: 0, touched: new Set() }),
  evolve(state, { fact }: Entry) {
    if (fact.type !== 'node.reported' && fact.type !== 'node.skipped') return;
    if (fact.node === 'breaks-the-fold') throw new Error('cannot take this');
    const row = state.byNode.get(fact.node) ?? { count: 0, skipped: '' };
    state.byNode.set(
      fact.node,
      fact.type === 'node.reported' ? { ...row, count: row.count + 1 } : { ...row, skipped: fact.by },
    );
    if (fact.type === 'node.reported') state.cursor = Math.max(state.cursor, fact.reportSequence);
    state.touched.add(`status/${fact.node}`);
  },
  decide(state, inputs) {
    const facts: NewFact[] = [];
    const answers = new Map<CounterInput, Answer>();
    for (const input of inputs) {
      if (input.kind === 'report') {
        if (input.node === 'breaks-the-core') throw new Error('a bug');
        if (input.sequence > state.cursor) facts.push(reported(input.node, input.sequence));
      } else if (state.byNode.has(input.node)) {
        facts.push({
          type: 'node.skipped',
          node: input.node,
          pool: '',
          lease: '',
          change: '',
          by: input.by,
          reason: '',
        });
        answers.set(input, { ok: true, body: { node: input.node, skipped: true } });
      } else {
        answers.set(input, { ok: false, code: 'not-found', message: `there is no node ${input.node}` });
      }
    }
    return { facts, answers, waiting: new Set(), needs: [], more: false, wakeAtMs: undefined };
  },
  takeTouched(state) {
    const touched = new Set(state.touched);
    state.touched.clear();
    return touched;
  },
  viewKeys: (state) => [...state.byNode.keys()].map((node) => `status/${node}`),
  view(state, { key }) {
    const row = state.byNode.get(key);
    return row === undefined ? undefined : statusOf(key, row.count, row.skipped);
  },
  cursor: (state) => state.cursor,
  dump: (state) => ({ byNode: [...state.byNode], cursor: state.cursor }),
  load(dumped) {
    const { byNode, cursor } = dumped as { byNode: [string, { count: number; skipped: string }][]; cursor: number };
    return { byNode: new Map(byNode), cursor, touched: new Set() };
  },
};

export const reported = (node: string, reportSequence: number): NewFactOf<'node.reported'> => ({
  type: 'node.reported',
  node,
  report: 'announced',
  incarnation: 1,
  nonce: 1,
  seq: reportSequence,
  hash: '',
  lease: '',
  verdict: '',
  reason: '',
  restored: false,
  bootId: '',
  fresh: false,
  differences: [],
  notUndone: [],
  leftovers: [],
  reportSequence,
});

const statusOf = (node: string, seq: number, skipped: string): Omit<StatusView, 'ledger'> => ({
  node,
  incarnation: 1,
  nonce: 1,
  seq,
  hash: '',
  lease: '',
  verdict: '',
  reason: '',
  restored: false,
  desired: '',
  pool: '',
  deferred: '',
  incompatible: false,
  incompatibleReasons: [],
  drifted: [],
  driftedSince: '',
  failingProbes: [],
  notUndone: [],
  leftovers: [],
  skipped,
  change: '',
  leaseLedger: 0,
});
