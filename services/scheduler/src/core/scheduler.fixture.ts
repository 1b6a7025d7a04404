import type { Action, LeaseView, NewFact, NodeReport, StatusView, Targets, Verdict } from '#libs/contracts';
import {
  accepted,
  joined,
  LedgerCopy,
  MemoryLedger,
  renderedChange,
  renderedNode,
  report,
  reviewedNode,
  validated,
  type ChangeContent,
} from '#libs/testing';
import { schedulerCore, type Gathered, type Input, type Plan, type PlanNeed, type SchedulerNeed } from './index.js';
import type { Rollout, State } from './state.js';
import type { Request } from './inputs.js';
import type { Why } from './why.js';

export const NONE: readonly Action[] = [{ kind: 'none' }];
export const DRAIN: readonly Action[] = [{ kind: 'drain' }, { kind: 'reboot' }];
export const MINUTE = 60_000;
/** The lease time of a pool without settings: two minutes, and a little more. */
export const PAST_DEADLINE = 2 * MINUTE + 1;

/** The fields of a report that a spec sets. */
type ReportFields = Partial<NodeReport> & { readonly lease?: string };

/** The scheduler on a ledger in memory, with helpers for its specs. */
export class Scheduler extends LedgerCopy<State, Input, SchedulerNeed, Gathered> {
  /** The actions of the next leases. A plan can be set for each target config. */
  actions: readonly Action[] = NONE;
  readonly lost = new Set<string>();
  private reports = 0;
  /** How many reports in REPORTS this copy has not read. */
  unread = 0;

  constructor(ledger = new MemoryLedger()) {
    super(schedulerCore, ledger, (needs) => new Map(needs.map((need) => [need.key, this.gathered(need)])));
  }

  /** A reader that starts over reads everything after the cursor again. */
  override restart(): this {
    super.restart();
    this.state.reading = { upTo: this.reports, end: undefined };
    return this;
  }

  /** The plans that the next decision requests. */
  plansNeeded(gathered: ReadonlyMap<string, Gathered> = new Map()): readonly PlanNeed[] {
    return this.decide([], gathered).needs.filter((need): need is PlanNeed => !('atMs' in need));
  }

  private gathered(need: SchedulerNeed): Gathered {
    return 'atMs' in need ? { last: this.reports + this.unread, atMs: need.atMs } : this.plan(need);
  }

  private plan({ node, to }: PlanNeed): Plan {
    const isLost = this.lost.has(to) || this.lost.has(`${node} ${to}`);
    return isLost ? { ok: false, only: node, reason: `${to} is lost` } : { ok: true, actions: this.actions };
  }

  /** Nodes that have joined, have `hash` in force, and should have it. */
  fleet(names: readonly string[], { role = '', hash = 'old' } = {}): this {
    for (const node of names) {
      this.given(joined(node, role === '' ? {} : { role }), renderedNode(node, hash), reviewedNode(node, hash));
      this.nodeReports(node, hash);
    }
    return this;
  }

  /** A rendered and reviewed change that leads nodes from `old` to a hash with its own name. */
  reviewed(
    change: string,
    nodes: readonly string[],
    {
      to = `${change}-new`,
      from = 'old',
      replaces = [] as readonly string[],
      incompatible = [] as readonly string[],
      ...content
    }: ReviewedChange = {},
  ): this {
    return this.given(
      accepted(change, content),
      renderedChange(change, leading(nodes, from, to), { replaces }),
      validated(change, 1, incompatible),
    );
  }

  /** The same, followed by a decision of the scheduler. */
  rolls(change: string, nodes: readonly string[], more: ReviewedChange = {}): readonly NewFact[] {
    this.reviewed(change, nodes, more);
    return this.when();
  }

  /** An announcement outside any lease. */
  nodeReports(node: string, hash: string, fields: ReportFields = {}): readonly NewFact[] {
    return this.when(this.message(node, hash, fields));
  }

  /** A report from the stream. Each is later than the one before. */
  message(node: string, hash: string, fields: ReportFields = {}): Input {
    this.reports += 1;
    const untouched = fields.verdict === 'refused' ? { untouched: true } : {};
    const own = report(node, hash, { seq: this.reports, ...untouched, ...fields });
    return { type: 'report', sequence: this.reports, report: own };
  }

  /** The applier of the node has carried out its lease. */
  applies(...nodes: readonly string[]): readonly NewFact[] {
    return nodes.flatMap((node) => this.leaseEnds(node, 'applied', { hash: this.lease(node).hash }));
  }

  /** The applier of the node reports another verdict. It has its previous config, unless set otherwise. */
  leaseEnds(node: string, verdict: Exclude<Verdict, ''>, fields: ReportFields = {}): readonly NewFact[] {
    return this.when(this.answer(node, verdict, fields));
  }

  answer(node: string, verdict: Exclude<Verdict, ''>, fields: ReportFields = {}): Input {
    const lease = this.lease(node);
    const kind = verdict === 'refused' ? 'announced' : verdict;
    return this.message(node, lease.from, { kind, lease: lease.lease, verdict, reason: `it is ${verdict}`, ...fields });
  }

  asks(request: Request): readonly NewFact[] {
    return this.when({ type: 'request', request });
  }
  pauses(change: string): readonly NewFact[] {
    return this.asks({ op: 'rollout.pause', change, by: 'me', reason: '' });
  }
  resumes(change: string): readonly NewFact[] {
    return this.asks({ op: 'rollout.resume', change, by: 'me', reason: '' });
  }
  aborts(change: string): readonly NewFact[] {
    return this.asks({ op: 'rollout.abort', change, by: 'me', reason: 'enough' });
  }
  skips(node: string): readonly NewFact[] {
    return this.asks({ op: 'node.skip', node, by: 'me', reason: '' });
  }

  why(node: string): Why {
    this.asks({ op: 'node.why', node });
    const [answer] = this.answers;
    if (answer?.ok !== true) throw new Error(`no answer for ${node}`);
    return answer.body as Why;
  }

  lease(node: string): Omit<LeaseView, 'ledger'> {
    return this.view('leases', node);
  }
  status(node: string): Omit<StatusView, 'ledger'> {
    return this.view('status', node);
  }
  rollout(change: string): Rollout {
    const rollout = this.state.rollouts.get(change);
    if (rollout === undefined) throw new Error(`no rollout of ${change}`);
    return rollout;
  }
  /** The nodes that count against a pool. */
  unavailable(pool: string): readonly string[] {
    return [...this.state.poolSet(pool).unavailable];
  }
  /** Nodes with a lease whose applier or drainer may be working. */
  atWork(): readonly string[] {
    return [...this.state.leased()].sort().filter((node) => ['draining', 'applying'].includes(this.lease(node).phase));
  }
}

type ReviewedChange = ChangeContent & {
  readonly to?: string;
  readonly from?: string;
  readonly replaces?: readonly string[];
  readonly incompatible?: readonly string[];
};

export const leading = (nodes: readonly string[], from: string, to: string): Targets =>
  Object.fromEntries(nodes.map((node) => [node, { from, to, recipe: `r-${to}` }]));

/** Leases as specs describe them: node, kind, target. */
export const grants = (facts: readonly NewFact[]): readonly string[] =>
  facts.flatMap((fact) => (fact.type === 'node.lease.granted' ? [`${fact.node} ${fact.kind} ${fact.hash}`] : []));
export const types = (facts: readonly NewFact[]): readonly string[] => facts.map(({ type }) => type);
export const deferred = (facts: readonly NewFact[]): readonly string[] =>
  facts.flatMap((fact) => (fact.type === 'node.deferred' ? [`${fact.node}: ${fact.reason}`] : []));
export const settledAs = (facts: readonly NewFact[]): readonly string[] =>
  facts.flatMap((fact) => (fact.type === 'node.lease.settled' ? [`${fact.node} ${fact.because}`] : []));
