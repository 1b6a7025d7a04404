import { createHash } from 'node:crypto';
import {
  desiredSubject,
  encodeReport,
  reportSubject,
  type Fragment,
  type NewFact,
  type NodeReport,
  type RolloutState,
  type Target,
} from '#libs/contracts';
import { Blobs, Ledger, type Bus } from '#libs/nats';
import { compileFragments, emptyHash, renderNode, type RenderedConfig } from '#libs/rules';
import { labelsOf, nodeName } from '../fleet/protocol.js';
import { contentOf, file, pool } from './manifests.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const WIDTH = 256;
const BATCH = 1_000;

export interface History {
  readonly nodes: number;
  readonly changes: number;
  /** How many nodes a change touches. */
  readonly touched: number;
  /** The number of facts in the ledger. */
  readonly facts: number;
  readonly lastChange: string;
}

/**
 * Fills an empty store with the inputs, blobs and facts that a fleet and its changes would have left, without running a
 * service.
 */
export async function writeHistory(bus: Bus, nodes: number, changes: number): Promise<History> {
  return new HistoryWriter(bus, nodes, changes).write();
}

class HistoryWriter {
  private readonly ledger: Ledger;
  private readonly blobs: Blobs;
  private readonly waiting: NewFact[] = [];
  private readonly inForce: { hash: string; seq: number; leases: number; versions: Map<string, number> }[];
  private readonly touched: number;
  private readonly racks: number;
  private last = 0;
  private reportSequence = 0;

  constructor(
    private readonly bus: Bus,
    private readonly nodes: number,
    private readonly changes: number,
  ) {
    this.ledger = new Ledger(bus);
    this.blobs = new Blobs(bus);
    const empty = emptyHash(sha256);
    this.inForce = Array.from({ length: nodes }, () => ({ hash: empty, seq: 1, leases: 0, versions: new Map() }));
    // A hundredth of the fleet each: ten of the racks in the labels.
    this.racks = 10;
    this.touched = Math.max(1, Math.round(nodes / 100));
  }

  async write(): Promise<History> {
    await this.join();
    await this.change(1, [pool('10%')], []);
    for (let c = 2; c <= this.changes; c += 1) {
      const first = (c * this.racks) % 1000;
      const racks = Array.from({ length: this.racks }, (_, i) => `r${(first + i) % 1000}`);
      const on = new Set(racks);
      const members = this.inForce.map((_, n) => n).filter((n) => on.has(labelsOf(n)['rack'] as string));
      await this.change(
        c,
        [file(`f${first}`, contentOf(c), { matchExpressions: [{ key: 'rack', operator: 'In', values: racks }] })],
        members,
      );
    }
    await this.flush();
    return {
      nodes: this.nodes,
      changes: this.changes,
      touched: this.touched,
      facts: this.last,
      lastChange: `c${this.changes}`,
    };
  }

  private async join(): Promise<void> {
    const recipe = sha256('[]');
    const capabilities = ['kind:Directory', 'kind:File', 'kind:Probe'];
    await this.report(this.inForce.map((_, n) => this.reportOf(n, 'announced', '', '')));
    for (const [n, { hash }] of this.inForce.entries()) {
      const node = nodeName(n);
      await this.emit(
        {
          type: 'node.joined',
          node,
          labels: labelsOf(n),
          capabilities,
          fresh: false,
          version: 'bench',
          incarnation: 1,
          nonce: 7,
          seq: 1,
          kubernetesLabels: {},
        },
        { type: 'node.rendered', node, hash, recipe, generation: 0, cause: 'join', outdatedIn: [], problems: [] },
        { type: 'node.reviewed', node, hash, compatible: true, reasons: [] },
        this.reported(n, 'announced', '', ''),
      );
    }
  }

  /** One change from its publication to its success. */
  private async change(c: number, apply: readonly object[], members: readonly number[]): Promise<void> {
    const change = `c${c}`;
    await this.bus.publish(desiredSubject('bench'), JSON.stringify({ apply, delete: [] }));
    const fragments = apply.map((one) => fragmentOf(one as Manifest));
    const [fragment] = fragments as [Fragment];
    const index = compileFragments([fragment]);
    const targets: Record<string, Target> = {};
    const configs: { node: string; hash: string; text: string }[] = [];
    for (const n of members) {
      const rendered: RenderedConfig = renderNode(
        index.forNode(labelsOf(n)),
        { name: nodeName(n), labels: labelsOf(n) },
        sha256,
      );
      targets[nodeName(n)] = { from: this.inForce[n]?.hash ?? '', to: rendered.hash, recipe: rendered.recipe };
      configs.push({ node: nodeName(n), hash: rendered.hash, text: rendered.text });
    }
    await this.blobs.putConfigs(configs);
    const keys = members.length === 0 ? [] : await this.blobs.putTargets(change, targets);
    const pools: Record<string, number> = members.length === 0 ? {} : { all: members.length };
    await this.emit(
      {
        type: 'config.accepted',
        change,
        source: 'bench',
        apply: fragments,
        delete: [],
        message: 'history',
        author: 'bench',
        strategy: {},
        retryOf: '',
      },
      {
        type: 'config.rendered',
        change,
        attempt: 1,
        nodes: members.length,
        unchanged: 0,
        pools,
        targets: keys,
        replaces: [],
        problems: [],
        warnings: [],
        strict: false,
      },
      { type: 'config.validated', change, attempt: 1, warnings: [], incompatible: [] },
      rolloutFact('started', change, { pending: members.length }),
    );
    for (const n of members) await this.node(n, change, targets[nodeName(n)] as Target);
    await this.report(
      members.map((n) => this.reportOf(n, 'applied', `${nodeName(n)}-l${this.inForce[n]?.leases}`, change)),
    );
    await this.emit(
      rolloutFact('complete', change, { applied: members.length }),
      { type: 'config.committed', change, generation: c, digest: sha256(change) },
      rolloutFact('succeeded', change, { applied: members.length }),
    );
  }

  private async node(n: number, change: string, { from, to, recipe }: Target): Promise<void> {
    const own = this.inForce[n] as { hash: string; seq: number; leases: number };
    own.leases += 1;
    own.seq += 1;
    own.hash = to;
    const about = { node: nodeName(n), pool: 'all', lease: `${nodeName(n)}-l${own.leases}`, change };
    await this.emit(
      {
        type: 'node.lease.granted',
        ...about,
        kind: 'forward',
        hash: to,
        from,
        recipe,
        actions: [{ kind: 'none' }],
        phase: 'applying',
        applyMs: 120_000,
        drainMs: 600_000,
        free: false,
      },
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
          incarnation: 1,
          nonce: 7,
          seq: own.seq,
          hash: '',
          verdict: '',
          bootId: '',
          reportSequence: ++this.reportSequence,
          notUndone: [],
          leftovers: [],
        },
        released: true,
      },
    );
  }

  private reported(n: number, report: 'announced' | 'applied', lease: string, verdict: '' | 'applied'): NewFact {
    const { hash, seq } = this.inForce[n] as { hash: string; seq: number };
    return {
      type: 'node.reported',
      node: nodeName(n),
      report,
      incarnation: 1,
      nonce: 7,
      seq,
      hash,
      lease,
      verdict,
      reason: '',
      restored: true,
      bootId: 'bench',
      fresh: false,
      differences: [],
      reportSequence: ++this.reportSequence,
      notUndone: [],
      leftovers: [],
    };
  }

  private reportOf(n: number, kind: 'announced' | 'applied', lease: string, change: string): NodeReport {
    const { hash, seq } = this.inForce[n] as { hash: string; seq: number };
    const fields =
      kind === 'announced'
        ? { labels: labelsOf(n), capabilities: ['kind:Directory', 'kind:File', 'kind:Probe'], version: 'bench' }
        : { labels: {}, capabilities: [], version: '' };
    return {
      kind,
      v: 1,
      at: new Date().toISOString(),
      node: nodeName(n),
      incarnation: 1,
      nonce: 7,
      seq,
      bootId: 'bench',
      hash,
      lease,
      verdict: kind === 'applied' ? 'applied' : '',
      reason: '',
      restored: true,
      change,
      pool: lease === '' ? '' : 'all',
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
    };
  }

  private async report(reports: readonly NodeReport[]): Promise<void> {
    let i = 0;
    const lane = async (): Promise<void> => {
      while (i < reports.length) {
        const report = reports[i++] as NodeReport;
        await this.bus.publish(reportSubject(report.kind, report.node), encodeReport(report));
      }
    };
    await Promise.all(Array.from({ length: WIDTH }, lane));
  }

  private async emit(...facts: readonly NewFact[]): Promise<void> {
    this.waiting.push(...facts);
    if (this.waiting.length >= BATCH) await this.flush();
  }

  private async flush(): Promise<void> {
    while (this.waiting.length > 0) {
      const facts = this.waiting.splice(0, BATCH);
      const appended = await this.ledger.append(facts, this.last);
      if (appended.outcome !== 'appended') throw new Error(`the history was ${appended.outcome}: ${appended.reason}`);
      this.last += facts.length;
    }
  }
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: object;
}

const fragmentOf = ({ kind, metadata, spec }: Manifest): Fragment => ({
  kind,
  name: metadata.name,
  labels: {},
  spec: spec as NonNullable<Fragment['spec']>,
});

function rolloutFact(
  state: RolloutState,
  change: string,
  counts: { readonly applied?: number; readonly pending?: number },
): NewFact {
  const none = {
    applied: 0,
    failed: 0,
    unknown: 0,
    deferred: 0,
    pending: 0,
    reason: '',
    attempt: 1,
    replaces: [],
    maxFailures: 0,
    maxUnavailable: 0,
    by: '',
    nodes: [],
  };
  return { type: `rollout.${state}`, change, ...none, ...counts } as NewFact;
}
