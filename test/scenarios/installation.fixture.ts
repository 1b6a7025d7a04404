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

/** What an applier remembers, as far as its reports show it. */
interface Node {
  hash: string;
  incarnation: number;
  nonce: number;
  seq: number;
  lease: string;
  verdict: Verdict;
  restored: boolean;
}

type Says = Partial<NodeReport> & { readonly hash?: string };

/**
 * The five services on one ledger in memory, each as often as a scenario wants, and nodes whose answers the scenario
 * gives. Time stands still unless it is let pass.
 */
export class Installation {
  readonly ledger = new MemoryLedger();
  private readonly nodes = new Map<string, Node>();
  private changes = 0;
  private reports = 0;
  /** What every lease needs on its node. */
  actions: readonly Action[] = NONE;
  readonly merger = this.newMerger();
  readonly validator = this.newValidator();
  readonly scheduler = this.newScheduler();
  readonly drain: ReturnType<Installation['newDrain']>;
  readonly inventory = new LedgerCopy(inventoryCore({ silentAfterMs: 35_000 }), this.ledger);

  constructor(strategy: Strategy = 'external') {
    this.drain = this.newDrain(strategy);
    this.inventory.leadingSinceMs = undefined; // silence is said by the scenario
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

  /** Lets every service do what it has to do, until all is quiet; returns what they said. */
  quiet(): readonly NewFact[] {
    const said: NewFact[] = [];
    for (;;) {
      const round = [this.inventory, this.merger, this.validator, this.scheduler, this.drain].flatMap((copy) => [
        ...copy.when(),
      ]);
      said.push(...round);
      if (round.length === 0) return said;
    }
  }

  after(ms: number): readonly NewFact[] {
    for (const copy of [this.inventory, this.merger, this.validator, this.scheduler, this.drain]) copy.nowMs += ms;
    return this.quiet();
  }

  /** Nodes that start, announce themselves, join and come to rest. */
  starts(names: readonly string[], labels: Readonly<Record<string, string>> = {}): this {
    for (const node of names) {
      this.nodes.set(node, { hash: EMPTY, incarnation: 1, nonce: 7, seq: 0, lease: '', verdict: '', restored: true });
      this.announces(node, { labels });
    }
    this.quiet();
    return this;
  }

  announces(node: string, says: Says = {}): readonly NewFact[] {
    const capabilities = ['kind:File', 'action:reboot'];
    const message = this.message(node, { kind: 'announced', capabilities, ...says });
    return [...this.inventory.when({ type: 'announced', report: message.report }), ...this.scheduler.when(message)];
  }

  /** A report that the node sends now; when it arrives is the scenario's to say. */
  message(node: string, says: Says = {}): scheduler.Input & { readonly type: 'report' } {
    const now = this.node(node);
    now.seq += 1;
    this.reports += 1;
    const { hash, lease, verdict, restored, incarnation, nonce, seq } = now;
    return {
      type: 'report',
      sequence: this.reports,
      report: report(node, hash, { incarnation, nonce, seq, lease, verdict, restored, ...says }),
    };
  }

  /** The applier deals with the node's lease, and says so. */
  answer(node: string, verdict: Exclude<Verdict, ''>, says: Says = {}): scheduler.Input & { readonly type: 'report' } {
    const lease = this.lease(node);
    const now = this.node(node);
    if (verdict === 'applied') now.hash = lease.hash;
    Object.assign(now, { lease: lease.lease, verdict, restored: says.restored ?? true });
    return this.message(node, {
      kind: verdict === 'refused' ? 'announced' : verdict,
      reason: `it is ${verdict}`,
      ...says,
    });
  }
  answers(node: string, verdict: Exclude<Verdict, ''>, says: Says = {}): readonly NewFact[] {
    return [...this.scheduler.when(this.answer(node, verdict, says)), ...this.quiet()];
  }
  /** The node has lost its disk: it starts as another incarnation of itself. */
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

  /** Publishes a change, without letting anybody but the merger see it. */
  publishes(
    apply: readonly Fragment[],
    { remove = [] as readonly { kind: string; name: string }[], maxFailures = 0 } = {},
  ): string {
    this.changes += 1;
    const manifests = apply.map(({ kind, name, spec }) => ({
      apiVersion: API_VERSION,
      kind,
      metadata: { name },
      spec,
    }));
    const text = JSON.stringify({ apply: manifests, delete: remove, strategy: { maxFailures } });
    this.merger.when({ type: 'published', sequence: this.changes, source: 'me', text });
    return `c${this.changes}`;
  }
  /** Publishes a change and lets it begin. */
  rolls(apply: readonly Fragment[], more: Parameters<Installation['publishes']>[1] = {}): string {
    const change = this.publishes(apply, more);
    this.quiet();
    return change;
  }
  /** Publishes a change, and every node does what it is told, until nothing is left. */
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

  /** Says what the node has, that it is well, and what it did last. */
  answersNothing(node: string): void {
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

/** A decision on what another copy has overtaken must be refused. */
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
