import { createHash } from 'node:crypto';
import {
  CONFIGS,
  encodeFact,
  encodeView,
  factSubject,
  LEDGER,
  nodeToken,
  REPORTS,
  type LeaseView,
  type NewFact,
  type NodeReport,
  type StatusView,
} from '#libs/contracts';
import { kvSubject, type Bus } from '#libs/nats';
import { emptyHash } from '#libs/rules';
import { nodeName } from '../fleet/protocol.js';
import { contentOf } from '../harness/manifests.js';
import type { FloorOptions } from './protocol.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

interface Work {
  readonly node: string;
  readonly token: string;
  readonly lease: string;
  readonly from: string;
  readonly to: string;
}

/** The report that ends the work of a node. */
interface LeaseEnd {
  readonly report: NodeReport;
  readonly work: Work;
}

const NODES_A_TURN = 256;
const WIDTH = 256;

/**
 * The floor: only the messages of the protocol, sent with the bare client. For each node it appends granted and
 * settled, each with the expected sequence of the one before, writes the lease view twice and the status view once by
 * compare-and-set, and reads the report. It validates nothing, folds nothing, and has no state except a queue.
 */
export class BareScheduler {
  private round = 0;
  private next = 0;
  private done = 0;
  private last = 0;
  private hash: string;
  /** The last write of each key: a report may overtake the answer to the write that caused it. */
  private readonly revisions = new Map<string, Promise<number>>();
  private readonly works = new Map<string, Work>();
  private readonly reports: LeaseEnd[] = [];
  private readonly writes = new Set<Promise<void>>();
  private failure: unknown;
  private wake: () => void = () => undefined;

  constructor(
    private readonly bus: Bus,
    private readonly options: FloorOptions,
  ) {
    this.hash = emptyHash(sha256);
  }

  /** Writes the configs of the next round, which is not measured, and subscribes to reports. */
  async prepare(): Promise<void> {
    this.round += 1;
    if (this.round === 1) await this.listen();
    const { nodes } = this.options;
    let n = 0;
    const text = this.configText();
    const lane = async (): Promise<void> => {
      while (n < nodes)
        await this.bus.js.publish(kvSubject(CONFIGS, `${nodeToken(nodeName(n++))}.${sha256(text)}`), text);
    };
    await Promise.all(Array.from({ length: WIDTH }, lane));
    this.last = (await this.bus.streamInfo(LEDGER)).state.last_seq;
  }

  /** Runs one rollout. Returns the milliseconds from before the first grant until everything is stored. */
  async run(): Promise<number> {
    const { nodes, budget } = this.options;
    const to = sha256(this.configText());
    [this.next, this.done] = [0, 0];
    const startMs = performance.now();
    await this.turn([], Math.min(budget, nodes), to);
    while (this.done < nodes) {
      if (this.reports.length === 0) await new Promise<void>((resolve) => (this.wake = resolve));
      if (this.failure !== undefined) throw this.failure as Error;
      const taken = this.reports.splice(0, NODES_A_TURN);
      if (taken.length > 0) await this.turn(taken, Math.min(taken.length, nodes - this.next), to);
    }
    while (this.writes.size > 0) await Promise.all(this.writes);
    if (this.failure !== undefined) throw this.failure as Error;
    this.hash = to;
    return performance.now() - startMs;
  }

  private async listen(): Promise<void> {
    const consumer = await this.bus.js.consumers.get(REPORTS, {});
    await consumer.consume({
      max_messages: 1_000,
      callback: (message) => {
        const report = message.json<NodeReport>();
        const work = this.works.get(report.node);
        // A node that sees no status for 15 s sends its report again.
        if (work?.lease !== report.lease) return;
        this.works.delete(report.node);
        this.reports.push({ report, work });
        this.wake();
      },
    });
  }

  /**
   * Settles reported leases and grants as many new ones. Then writes the views. The next turn does not wait for them.
   */
  private async turn(ended: readonly LeaseEnd[], grants: number, to: string): Promise<void> {
    const facts: NewFact[] = [];
    for (const { report, work } of ended) facts.push(...endFacts(report, work));
    const granted = Array.from({ length: grants }, () => this.workOf(this.next++, to));
    for (const work of granted) facts.push(grantFact(work));
    await this.append(facts);
    for (const work of granted)
      this.write('leases', work, encodeView('leases', leaseView(work, 'applying', this.last)));
    for (const { report, work } of ended) {
      this.write('leases', work, encodeView('leases', leaseView(work, 'released', this.last)));
      this.write('status', work, encodeView('status', statusView(report, work, this.last)));
    }
    this.done += ended.length;
  }

  private workOf(n: number, to: string): Work {
    const node = nodeName(n);
    const work = { node, token: nodeToken(node), lease: `${nodeToken(node)}-l${this.round}`, from: this.hash, to };
    this.works.set(node, work);
    return work;
  }

  private async append(facts: readonly NewFact[]): Promise<void> {
    const at = new Date().toISOString();
    const id = `t${this.round}.${this.last}`;
    await Promise.all(
      facts.map((fact, i) => {
        const expect = { lastSequence: this.last + i, ...(i === 0 ? {} : { lastMsgID: `${id}.${i - 1}` }) };
        return this.bus.js.publish(factSubject(fact), encodeFact(fact, at), {
          expect,
          ...(i === facts.length - 1 ? {} : { msgID: `${id}.${i}` }),
        });
      }),
    );
    this.last += facts.length;
  }

  private write(bucket: 'leases' | 'status', { token }: Work, text: string): void {
    const subject = kvSubject(bucket, token);
    const before = this.revisions.get(subject) ?? Promise.resolve(0);
    const now = before
      .then((lastSubjectSequence) => this.bus.js.publish(subject, text, { expect: { lastSubjectSequence } }))
      .then(({ seq }) => seq);
    this.revisions.set(subject, now);
    const writing: Promise<void> = now
      .then(
        () => undefined,
        (error: unknown) => {
          this.failure ??= error;
          this.wake();
        },
      )
      .finally(() => this.writes.delete(writing));
    this.writes.add(writing);
  }

  private configText(): string {
    return JSON.stringify({
      fragments: [
        {
          kind: 'File',
          name: 'bench',
          spec: { content: contentOf(this.round), mode: '0644', path: '/etc/bench/bench' },
        },
      ],
    });
  }
}

const CHANGE = 'c1';

function grantFact({ node, lease, from, to }: Work): NewFact {
  return {
    type: 'node.lease.granted',
    node,
    pool: 'all',
    lease,
    change: CHANGE,
    kind: 'forward',
    hash: to,
    from,
    recipe: to,
    actions: [{ kind: 'none' }],
    phase: 'applying',
    applyMs: 120_000,
    drainMs: 600_000,
    free: false,
  };
}

function endFacts(report: NodeReport, { node, lease, to }: Work): readonly NewFact[] {
  const { incarnation, nonce, seq } = report;
  const about = { node, pool: 'all', lease, change: CHANGE };
  return [
    {
      type: 'node.lease.settled',
      ...about,
      kind: 'forward',
      hash: to,
      recipe: '',
      because: 'applied',
      reason: '',
      restored: true,
      report: {
        incarnation,
        nonce,
        seq,
        hash: '',
        verdict: '',
        bootId: '',
        reportSequence: 1,
        notUndone: [],
        leftovers: [],
      },
      released: true,
    },
  ];
}

function leaseView({ node, lease, from, to }: Work, phase: 'applying' | 'released', ledger: number): LeaseView {
  const because = phase === 'released' ? 'applied' : '';
  const at = new Date().toISOString();
  return {
    ledger,
    node,
    pool: 'all',
    lease,
    change: CHANGE,
    kind: 'forward',
    phase,
    hash: to,
    from,
    actions: [{ kind: 'none' }],
    applyMs: 120_000,
    drainMs: 600_000,
    because,
    reason: '',
    grantedAt: at,
    settledAt: phase === 'released' ? at : '',
  };
}

function statusView(
  { node, incarnation, nonce, seq, hash, lease, verdict, reason, restored }: NodeReport,
  { from }: Work,
  ledger: number,
): StatusView {
  return {
    ledger,
    node,
    incarnation,
    nonce,
    seq,
    hash,
    lease,
    verdict,
    reason,
    restored,
    desired: from,
    pool: 'all',
    deferred: '',
    incompatible: false,
    incompatibleReasons: [],
    drifted: [],
    driftedSince: '',
    failingProbes: [],
    notUndone: [],
    leftovers: [],
    skipped: '',
    change: CHANGE,
    leaseLedger: 0,
  };
}
