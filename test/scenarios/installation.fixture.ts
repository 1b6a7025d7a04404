import { createHash } from 'node:crypto';
import {
  configKey,
  EMPTY_CONFIG,
  type Action,
  type Fragment,
  type LeaseView,
  type NewFact,
  type NodeReport,
  type RolloutView,
  type StatusView,
  type Verdict,
} from '#libs/contracts';
import type { Decision } from '#libs/engine';
import { API_VERSION } from '#libs/manifests';
import { emptyHash } from '#libs/rules';
import { LedgerCopy, MemoryLedger, report } from '#libs/testing';
import { drainCore, type Strategy } from '../../services/drain/src/core/index.js';
import { inventoryCore } from '../../services/inventory/src/core/index.js';
import * as merger from '../../services/merger/src/core/index.js';
import * as scheduler from '../../services/scheduler/src/core/index.js';
import * as validator from '../../services/validator/src/core/index.js';

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
export const EMPTY = emptyHash(sha256);
export const MINUTE = 60_000;
export const PAST_DEADLINE = 2 * MINUTE + 1;
export const NONE: readonly Action[] = [{ kind: 'none' }];
export const DRAIN: readonly Action[] = [{ kind: 'drain' }, { kind: 'reboot' }];

/** The state of an applier that its reports show. */
interface Node {
  hash: string;
  incarnation: number;
  nonce: number;
  seq: number;
  lease: string;
  verdict: Verdict;
  restored: boolean;
}

type ReportFields = Partial<NodeReport> & { readonly hash?: string };

/**
 * The five services on one ledger in memory. A scenario decides how many copies run, and what the nodes answer. Time
 * only advances when the scenario asks for it.
 */
export class Installation {
  readonly ledger = new MemoryLedger();
  private readonly nodes = new Map<string, Node>();
  private changes = 0;
  private reports = 0;
  /** The actions that every lease needs. */
  actions: readonly Action[] = NONE;
  readonly merger = this.newMerger();
  readonly validator = this.newValidator();
  readonly scheduler = this.newScheduler();
  readonly drain: ReturnType<Installation['newDrain']>;
  readonly inventory = new LedgerCopy(inventoryCore({ silentAfterMs: 35_000 }), this.ledger);

  constructor(strategy: Strategy = 'external') {
    this.drain = this.newDrain(strategy);
    this.inventory.leadingSinceMs = undefined; // the scenario itself says which nodes are silent
  }

  newScheduler() {
    const gathered = (need: scheduler.SchedulerNeed): scheduler.Gathered =>
      'atMs' in need ? { last: 0, atMs: need.atMs } : { ok: true, actions: this.actions };
    return new LedgerCopy(
      scheduler.schedulerCore,
      this.ledger,
      (needs) => new Map(needs.map((need) => [need.key, gathered(need)])),
    ).read();
  }
  newValidator() {
    return new LedgerCopy(validator.validatorCore, this.ledger).read();
  }
  newMerger() {
    return new LedgerCopy(merger.mergerCore(sha256), this.ledger).read();
  }
  newDrain(strategy: Strategy = 'external') {
    return new LedgerCopy(drainCore(strategy), this.ledger).read();
  }

  /** Runs every service until nothing is left to do. Returns the facts that they appended. */
  quiet(): readonly NewFact[] {
    const facts: NewFact[] = [];
    for (;;) {
      const round = [this.inventory, this.merger, this.validator, this.scheduler, this.drain].flatMap((copy) => [
        ...copy.when(),
      ]);
      facts.push(...round);
      if (round.length === 0) return facts;
    }
  }

  after(ms: number): readonly NewFact[] {
    for (const copy of [this.inventory, this.merger, this.validator, this.scheduler, this.drain]) copy.nowMs += ms;
    return this.quiet();
  }

  /** Starts nodes: they announce themselves and join. Returns when nothing is left to do. */
  starts(names: readonly string[], labels: Readonly<Record<string, string>> = {}): this {
    for (const node of names) {
      this.nodes.set(node, { hash: EMPTY, incarnation: 1, nonce: 7, seq: 0, lease: '', verdict: '', restored: true });
      this.announces(node, { labels });
    }
    this.quiet();
    return this;
  }

  announces(node: string, fields: ReportFields = {}): readonly NewFact[] {
    const capabilities = ['kind:File', 'action:reboot'];
    const message = this.message(node, { kind: 'announced', capabilities, ...fields });
    return [...this.inventory.when({ type: 'announced', report: message.report }), ...this.scheduler.when(message)];
  }

  /** A report that the node sends now. The scenario decides when it arrives. */
  message(node: string, fields: ReportFields = {}): scheduler.Input & { readonly type: 'report' } {
    const now = this.node(node);
    now.seq += 1;
    this.reports += 1;
    const { hash, lease, verdict, restored, incarnation, nonce, seq } = now;
    return {
      type: 'report',
      sequence: this.reports,
      report: report(node, hash, { incarnation, nonce, seq, lease, verdict, restored, ...fields }),
    };
  }

  /** The applier carries out the lease of the node. Returns its report. */
  answer(
    node: string,
    verdict: Exclude<Verdict, ''>,
    fields: ReportFields = {},
  ): scheduler.Input & { readonly type: 'report' } {
    const lease = this.lease(node);
    const now = this.node(node);
    if (verdict === 'applied') now.hash = lease.hash;
    Object.assign(now, { lease: lease.lease, verdict, restored: fields.restored ?? true });
    return this.message(node, {
      kind: verdict === 'refused' ? 'announced' : verdict,
      reason: `it is ${verdict}`,
      ...fields,
    });
  }
  answers(node: string, verdict: Exclude<Verdict, ''>, fields: ReportFields = {}): readonly NewFact[] {
    return [...this.scheduler.when(this.answer(node, verdict, fields)), ...this.quiet()];
  }
  /** The node has lost its disk, and starts with another incarnation. */
  losesItsDisk(node: string): void {
    const status = this.status(node);
    this.nodes.set(node, {
      hash: EMPTY,
      incarnation: status.incarnation + 1,
      nonce: 8,
      seq: 0,
      lease: '',
      verdict: '',
      restored: true,
    });
  }

  /** Publishes a change that only the merger reads. */
  publishes(
    apply: readonly Fragment[],
    {
      remove = [] as readonly { kind: string; name: string }[],
      maxFailures = 0,
      strategy = {} as Readonly<Record<string, unknown>>,
      source = 'me',
      takeOver = false,
    } = {},
  ): string {
    this.changes += 1;
    const manifests = apply.map(({ kind, name, spec }) => ({
      apiVersion: API_VERSION,
      kind,
      metadata: { name },
      spec,
    }));
    const text = JSON.stringify({
      apply: manifests,
      delete: remove,
      strategy: { maxFailures, ...strategy },
      takeOver,
    });
    this.merger.when({ type: 'published', sequence: this.changes, source, text, storedMs: 0 });
    return `c${this.changes}`;
  }
  /** Publishes a change and starts it. */
  rolls(apply: readonly Fragment[], more: Parameters<Installation['publishes']>[1] = {}): string {
    const change = this.publishes(apply, more);
    this.quiet();
    return change;
  }
  /** Publishes a change. Every node applies it, until nothing is left to do. */
  commits(apply: readonly Fragment[]): string {
    const change = this.rolls(apply);
    this.allApply();
    return change;
  }
  allApply(): void {
    for (let work = this.atWork(); work.length > 0; work = this.atWork())
      for (const node of work) this.answers(node, 'applied');
  }

  asks(request: Extract<scheduler.Input, { type: 'request' }>['request'], copy = this.scheduler): readonly NewFact[] {
    return copy.when({ type: 'request', request });
  }

  /** Announces the config of the node, that it is healthy, and its last lease. */
  announcesHealthy(node: string): void {
    this.node(node).restored = true;
    this.announces(node, { labels: this.scheduler.state.nodes.get(node)?.labels ?? {} });
    this.quiet();
  }

  /** The canonical text of a config. */
  text(node: string, hash: string): string {
    return JSON.stringify(this.ledger.blobs.configs.get(configKey(node, hash)) ?? EMPTY_CONFIG);
  }

  get copies(): readonly Pick<LedgerCopy<unknown, never>, 'core' | 'ledger' | 'read' | 'state' | 'nowMs'>[] {
    return [this.merger, this.validator, this.scheduler, this.drain, this.inventory] as never;
  }

  node(name: string): Node {
    const node = this.nodes.get(name);
    if (node === undefined) throw new Error(`no node ${name}`);
    return node;
  }
  lease(node: string): Omit<LeaseView, 'ledger'> {
    return this.scheduler.read().view('leases', node);
  }
  status(node: string): Omit<StatusView, 'ledger'> {
    return this.scheduler.read().view('status', node);
  }
  rollout(change: string): Omit<RolloutView, 'ledger'> {
    return this.scheduler.read().view('rollouts', change);
  }
  phase(change: string): string {
    return this.merger.read().view('changes', change).phase;
  }
  /** Nodes with a lease that their appliers may act on. */
  atWork(): readonly string[] {
    return [...this.nodes.keys()].filter((node) => {
      const value = this.scheduler.read().core.view(this.scheduler.state, { bucket: 'leases', key: node });
      return value !== undefined && 'phase' in value && value.phase === 'applying';
    });
  }
}

/** A decision that is based on an outdated ledger must be refused. */
export function expectRefused(
  ledger: MemoryLedger,
  decision: Pick<Decision<never, never>, 'facts'>,
  expected: number,
): void {
  expect(decision.facts.length).toBeGreaterThan(0);
  expect(ledger.append(decision.facts, expected)).toBe(false);
}

export const grants = (facts: readonly NewFact[]): readonly string[] =>
  facts.flatMap((fact) => (fact.type === 'node.lease.granted' ? [`${fact.node} ${fact.kind}`] : []));
export const types = (facts: readonly NewFact[]): readonly string[] => facts.map(({ type }) => type);
