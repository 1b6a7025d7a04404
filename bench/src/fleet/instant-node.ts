import { randomInt } from 'node:crypto';
import {
  aliveSubject,
  CONFIGS,
  encodeReport,
  nodeToken,
  reportSubject,
  type LeaseView,
  type NodeReport,
  type StatusView,
} from '#libs/contracts';
import { kvStream, kvSubject, type Bus } from '#libs/nats';
import type { FleetFigures } from './protocol.js';

/** What all nodes of the process share: clocks and counters. */
export class Tally {
  applied = 0;
  refused = 0;
  repeated = 0;
  private readonly handoffs: number[] = [];
  private lastReportMs: number | undefined;

  started(): void {
    if (this.lastReportMs !== undefined && this.handoffs.length < 100_000)
      this.handoffs.push(performance.now() - this.lastReportMs);
    this.lastReportMs = undefined;
  }

  reports(): void {
    this.lastReportMs = performance.now();
  }

  reset(): void {
    this.applied = this.refused = this.repeated = 0;
    this.handoffs.length = 0;
    this.lastReportMs = undefined;
  }

  get figures(): FleetFigures {
    return { applied: this.applied, refused: this.refused, repeated: this.repeated, handoffsMs: this.handoffs };
  }
}

const REQUEST_MS = 30_000;
const TEXT = new TextDecoder();

/**
 * An applier whose work takes no time. It speaks the same protocol as the real one: receives a push, reads its lease
 * from the stream's leader and its config by direct get, reports, and repeats the report until its status shows it.
 */
export class InstantNode {
  private seq = 0;
  private hash: string;
  private lease = '';
  private busy = false;
  private pacedMs = 0;
  private beatMs = -Infinity;
  private pending: NodeReport | undefined;
  private readonly nonce = randomInt(2 ** 32);
  private readonly token: string;

  constructor(
    readonly name: string,
    private readonly labels: Readonly<Record<string, string>>,
    emptyHash: string,
    private readonly bus: Bus,
    private readonly tally: Tally,
  ) {
    this.token = nodeToken(name);
    this.hash = emptyHash;
    bus.nc.subscribe(`push.*.${this.token}`, {
      callback: (error, message) => {
        if (error === null) this.receive(message.subject, message.string());
      },
    });
  }

  announce(): Promise<void> {
    return this.report('announced', { verdict: '', restored: true, change: '', pool: '' });
  }

  /** Sends a heartbeat, unless it was asked to send fewer. */
  alive(everyMs: number): void {
    const { pacedMs } = this;
    const nowMs = performance.now();
    if (nowMs - this.beatMs < pacedMs - everyMs / 2) return;
    this.beatMs = nowMs;
    this.bus.nc.publish(
      aliveSubject(this.name),
      JSON.stringify({
        node: this.name,
        incarnation: 1,
        nonce: this.nonce,
        everyMs: Math.max(everyMs, pacedMs),
        pacedMs,
      }),
    );
  }

  /** Repeats the report if no status shows it yet. */
  async repeat(): Promise<void> {
    if (this.pending === undefined || this.busy) return;
    this.tally.repeated += 1;
    await this.send(this.pending);
  }

  private receive(subject: string, text: string): void {
    if (subject.startsWith('push.leases.')) {
      const { phase, lease } = JSON.parse(text) as LeaseView;
      if (phase === 'applying' && lease !== this.lease && !this.busy) void this.work().catch(() => (this.busy = false));
    } else if (subject.startsWith('push.pace.')) {
      this.pacedMs = (JSON.parse(text) as { everyMs: number }).everyMs;
    } else if (this.pending !== undefined) {
      const { incarnation, nonce, seq } = JSON.parse(text) as StatusView;
      if (incarnation === 1 && nonce === this.nonce && seq >= this.pending.seq) this.pending = undefined;
    }
  }

  private async work(): Promise<void> {
    this.busy = true;
    const lease = await this.readLease();
    if (lease.phase !== 'applying' || lease.lease === this.lease) return void (this.busy = false);
    await this.readConfig(lease.hash);
    this.tally.started();
    this.lease = lease.lease;
    const refused = lease.from !== this.hash;
    if (refused) this.tally.refused += 1;
    else this.hash = lease.hash;
    this.tally.applied += 1;
    this.tally.reports();
    this.busy = false;
    await this.report(refused ? 'failed' : 'applied', {
      verdict: refused ? 'refused' : 'applied',
      restored: true,
      change: lease.change,
      pool: lease.pool,
    });
  }

  private async readLease(): Promise<LeaseView> {
    const answer = await this.bus.nc.request(
      `$JS.API.STREAM.MSG.GET.${kvStream('leases')}`,
      JSON.stringify({ last_by_subj: kvSubject('leases', this.token) }),
      { timeout: REQUEST_MS },
    );
    const { message } = answer.json<{ message: { data: string } }>();
    return JSON.parse(Buffer.from(message.data, 'base64').toString()) as LeaseView;
  }

  private async readConfig(hash: string): Promise<string> {
    const answer = await this.bus.nc.request(
      `$JS.API.DIRECT.GET.${kvStream(CONFIGS)}.${kvSubject(CONFIGS, `${this.token}.${hash}`)}`,
      '',
      { timeout: REQUEST_MS },
    );
    if (answer.headers?.hasError === true) throw new Error(`${this.name}: no config ${hash}`);
    return TEXT.decode(answer.data);
  }

  private report(
    kind: NodeReport['kind'],
    about: Pick<NodeReport, 'verdict' | 'restored' | 'change' | 'pool'>,
  ): Promise<void> {
    this.seq += 1;
    const fields =
      kind === 'announced'
        ? { labels: this.labels, capabilities: ['kind:Directory', 'kind:File', 'kind:Probe'], version: 'bench' }
        : { labels: {}, capabilities: [], version: '' };
    this.pending = {
      kind,
      v: 1,
      at: new Date().toISOString(),
      node: this.name,
      incarnation: 1,
      nonce: this.nonce,
      seq: this.seq,
      bootId: 'bench',
      hash: this.hash,
      lease: this.lease,
      reason: '',
      fresh: false,
      durationMs: 0,
      changed: [],
      probe: '',
      differences: [],
      failingProbes: [],
      notUndone: [],
      leftovers: [],
      needsRestart: false,
      step: '',
      ...fields,
      ...about,
    };
    return this.send(this.pending);
  }

  private async send(report: NodeReport): Promise<void> {
    await this.bus.nc.request(reportSubject(report.kind, this.name), encodeReport(report), { timeout: REQUEST_MS });
  }
}
