import { setTimeout as sleep } from 'node:timers/promises';
import { growingMs, Signal, UnavailableError } from '#libs/bus';
import { FIELD_MANAGER, isMissingRight, KubeError, type Kube, type KubeNode, type KubePod } from '#libs/kube';
import { parseDrain } from '#libs/manifests';
import { monotonicMs, wallTime, type Logger } from '#libs/runtime';
import {
  cordonWrite, NAMED, nameOf, namesOf, planEvictions, refusedAgain, uncordonWrite, wasTakenOff, type Block, type Drain, type Eviction, type EvictionPlan, type NodeSeen, type NodeWrite, type Progress, type Sight, type Try,
} from '../../core/index.js';

/** What the drain of one node is given to work with. */
export interface DrainerParts {
  readonly kube: Pick<Kube, 'node' | 'writeNode' | 'podsOn' | 'evict' | 'delete' | 'onChange'>;
  readonly logger: Logger;
  /** The pod that this process runs in, as namespace/name; empty outside Kubernetes. */
  readonly self: string;
  /** The drain of a node as the ledger has it, up to its end. */
  readonly drainOf: (node: string) => Promise<Drain | undefined>;
  /** Resolves when what was seen stands in the ledger, or turned out to be no news. */
  readonly say: (sight: Sight) => Promise<void>;
  readonly show: (node: string, progress: Progress) => void;
}

/** What is missed by watching is found by looking. */
const BURST_MS = 30;
const GUARD_MS = 15_000;
/** One refusal may be a hiccup. */
const SAY_AFTER = 2;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 15_000;

/**
 * Drains one node for one lease, and gives it back: looks, decides, acts, and looks again. Each look reads the Node, then its pods, then the
 * lease up to the ledger's end, and only then writes: whoever looked earlier and writes later is refused by the API server.
 */
export class NodeDrain {
  private readonly again = new Signal();
  private readonly tries = new Map<string, Try>();
  /** Every pod that ever had to go. */
  private readonly known = new Set<string>();
  private blockedSince = '';
  private blockedBy = '';
  private stopped = false;
  private failures = 0;
  private unwatch: () => void = () => undefined;

  /** `phase` spares a look at pods that nobody asks for. */
  constructor(private readonly parts: DrainerParts, readonly node: string, readonly lease: string, private phase: Drain['phase']) {}

  start(): this {
    this.unwatch = this.parts.kube.onChange(this.node, () => this.again.give(), this.parts.logger);
    void this.run();
    return this;
  }

  /** The fold says that it has come to another phase. */
  move(phase: Drain['phase']): void {
    if (phase === this.phase) return;
    this.phase = phase;
    this.again.give();
  }

  /** A budget allows something, or is gone: what it refused is tried again at once. */
  freed(budget: string): void {
    const held = [...this.tries].filter(([, tried]) => tried.budget === budget);
    for (const [uid, tried] of held) this.tries.set(uid, { ...tried, nextMs: 0 });
    if (held.length > 0) this.again.give();
  }

  stop(): void {
    this.stopped = true;
    this.unwatch();
    this.again.give();
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      let pauseMs: number;
      try {
        pauseMs = await this.look();
        this.failures = 0;
      } catch (error) {
        // Another copy leads: this one is stopped, and the other looks.
        if (this.stopped || error instanceof UnavailableError) return;
        pauseMs = this.failed(error as Error);
      }
      if (this.stopped || pauseMs === 0) continue;
      await this.again.wait(pauseMs);
      // Pods come and go in bursts: one look for a burst.
      await sleep(BURST_MS);
    }
  }

  private failed(error: Error): number {
    const { logger, show } = this.parts;
    // A missing right was named, once.
    logger[isMissingRight(error) ? 'debug' : 'warn']({ error, node: this.node, lease: this.lease, failures: this.failures }, 'a node could not be looked at; trying again');
    const blocked = this.blocked({ reason: error.message, budget: '', allowed: 0, pods: [] });
    show(this.node, { ...this.progress(0), ...blocked });
    // What the API server refuses, a right that is missing say, stays refused until somebody acts: they have to know.
    if (error instanceof KubeError && this.failures === SAY_AFTER) void this.say({ ...this.name, what: 'blocked', reason: error.message, budget: '', allowed: 0, pods: [], since: blocked.blockedSince }).catch(() => undefined);
    return growingMs(this.failures++, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  }

  /** Looks once, and acts; says how long to wait for the next look. */
  private async look(): Promise<number> {
    const seen = await this.parts.kube.node(this.node);
    const asked = this.phase;
    const pods = seen === undefined || asked !== 'draining' ? [] : await this.parts.kube.podsOn(this.node);
    const drain = await this.parts.drainOf(this.node);
    if (this.stopped || drain?.lease !== this.lease) return GUARD_MS;
    this.phase = drain.phase;
    if (drain.phase === 'draining' && asked !== 'draining') return 0;
    switch (drain.phase) {
      case 'draining':
        return seen === undefined ? this.withoutNode(drain) : this.drain(drain, seen, pods);
      case 'drained':
        return seen === undefined ? GUARD_MS : this.guard(drain, seen);
      case 'uncordoning':
        return this.giveBack(seen);
      case 'stopped':
      case 'uncordoned':
        return GUARD_MS;
    }
  }

  private async drain(drain: Drain, seen: KubeNode, pods: readonly KubePod[]): Promise<number> {
    const policy = parseDrain(drain.how);
    const node = nodeSeen(seen);
    if (drain.cordoned && wasTakenOff(node, this.lease) && policy.onUncordon === 'give-up') {
      await this.say({ ...this.name, what: 'stopped', outcome: 'deferred', reason: 'somebody took the cordon off, and the pool says to give the node up then' });
      return GUARD_MS;
    }
    const write = cordonWrite(node, this.lease);
    // What was seen before the cordon may not be all: the pods are looked at again, at once.
    if (write !== undefined) return this.write(seen, write);
    if (!drain.cordoned) await this.say({ ...this.name, what: 'cordoned' });
    const nowMs = monotonicMs();
    const plan = planEvictions({ policy, reboots: drain.reboots, pods, tries: this.tries, nowMs, startedMs: drain.sinceMs, drainMs: drain.drainMs, self: this.parts.self });
    for (const { uid } of plan.left) this.known.add(uid);
    if (plan.left.length === 0) {
      await this.say({ ...this.name, what: 'drained', evicted: this.known.size });
      return GUARD_MS;
    }
    return this.goOn(drain, plan, nowMs);
  }

  private async goOn(drain: Drain, plan: EvictionPlan<KubePod>, nowMs: number): Promise<number> {
    const { block } = plan;
    const blocked = this.blocked(block);
    this.parts.show(this.node, { ...this.progress(plan.left.length), waitingFor: plan.left.map(nameOf).sort().slice(0, NAMED), ...blocked });
    if (block?.lasting === true) await this.say({ ...this.name, what: 'blocked', reason: block.reason, budget: block.budget, allowed: block.allowed, pods: block.pods, since: blocked.blockedSince });
    if (plan.timedOut) {
      await this.giveUp(drain, `waiting for ${namesOf(plan.left)}${block === undefined ? '' : `: ${block.reason}`}`);
      return GUARD_MS;
    }
    for (const { uid, ending } of plan.left) if (ending) this.noteEnding(uid, nowMs);
    const outcomes = await Promise.all(plan.now.map((eviction) => this.evict(eviction)));
    const troubled = outcomes.find((outcome) => outcome instanceof Error);
    if (troubled !== undefined) throw troubled;
    const refused = plan.left.map(({ uid }) => this.tries.get(uid)?.nextMs ?? 0).filter((atMs) => atMs > nowMs);
    return Math.max(1, Math.min(plan.lookAtMs, ...refused) - monotonicMs());
  }

  /** Errors are handed back, so that one pod's does not hide what became of the others. */
  private async evict({ pod, how, graceSeconds }: Eviction<KubePod>): Promise<Error | undefined> {
    const { kube, logger } = this.parts;
    const about = { node: this.node, lease: this.lease, pod: nameOf(pod) };
    try {
      if (how === 'delete') {
        await kube.delete(pod, graceSeconds);
        logger.warn({ ...about, graceSeconds }, 'a pod was deleted, as the pool says after the time-out');
        return undefined;
      }
      const result = await kube.evict(pod, graceSeconds);
      if (result.outcome !== 'refused') {
        this.tries.delete(pod.uid);
        logger.debug(about, 'a pod was evicted');
        return undefined;
      }
      const [first] = result.budgets;
      const budget = first?.name ?? '';
      const reason = first === undefined ? result.reason : `the budget ${budget} allows ${first.allowed}: ${result.reason}`;
      this.tries.set(pod.uid, refusedAgain(this.tries.get(pod.uid), { reason, budget, allowed: first?.allowed ?? 0 }, monotonicMs(), result.retryAfterMs));
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  private noteEnding(uid: string, nowMs: number): void {
    const before = this.tries.get(uid);
    if (before?.forcedMs === undefined) this.tries.set(uid, { refusals: 0, nextMs: 0, sinceMs: nowMs, reason: '', budget: '', allowed: 0, ...before, forcedMs: nowMs });
  }

  /** The node is drained and being worked on: who uncordons it now puts pods where a reboot may come. */
  private async guard(drain: Drain, seen: KubeNode): Promise<number> {
    const node = nodeSeen(seen);
    if (!wasTakenOff(node, this.lease) || parseDrain(drain.how).onUncordon === 'give-up') return GUARD_MS;
    const write = cordonWrite(node, this.lease);
    return write === undefined ? GUARD_MS : this.write(seen, write);
  }

  /** Without a Node there is nothing to give back. */
  private async giveBack(seen: KubeNode | undefined): Promise<number> {
    const write = seen === undefined ? undefined : uncordonWrite(nodeSeen(seen), this.lease);
    if (seen !== undefined && write !== undefined) return this.write(seen, write);
    await this.say({ ...this.name, what: 'uncordoned' });
    return GUARD_MS;
  }

  /** Says nothing of the outcome: the next look, at once, sees it. */
  private async write(seen: KubeNode, write: NodeWrite): Promise<0> {
    const outcome = await this.parts.kube.writeNode(seen, write);
    this.parts.logger.info({ node: this.node, lease: this.lease, ...write, outcome }, 'the Node was written');
    return 0;
  }

  /** Nobody can tell whether its pods have ended: a person, or the time-out, decides. */
  private async withoutNode(drain: Drain): Promise<number> {
    const block = { reason: `Kubernetes has no Node named ${this.node}, so nobody knows what runs on it`, budget: '', allowed: 0, pods: [] };
    const blocked = this.blocked(block);
    this.parts.show(this.node, { ...this.progress(0), ...blocked });
    await this.say({ ...this.name, what: 'blocked', ...block, since: blocked.blockedSince });
    const { timedOut, lookAtMs } = planEvictions({ policy: parseDrain(drain.how), reboots: false, pods: [], tries: this.tries, nowMs: monotonicMs(), startedMs: drain.sinceMs, drainMs: drain.drainMs, self: '' });
    if (timedOut) await this.giveUp(drain, block.reason);
    return Math.max(1, lookAtMs - monotonicMs());
  }

  private async giveUp(drain: Drain, why: string): Promise<void> {
    const { onTimeout } = parseDrain(drain.how);
    const within = `not drained within ${Math.round(drain.drainMs / 1_000)} s`;
    await this.say({ ...this.name, what: 'stopped', outcome: onTimeout === 'defer' ? 'deferred' : 'failed', reason: `${within}, ${why}` });
  }

  /** What holds it up, and since when. */
  private blocked(block: Omit<Block, 'lasting'> | undefined) {
    const by = block === undefined ? '' : block.budget || block.reason;
    if (by !== this.blockedBy) this.blockedSince = by === '' ? '' : wallTime();
    this.blockedBy = by;
    return { reason: block?.reason ?? '', budget: block?.budget ?? '', allowed: block?.allowed ?? 0, blocked: block?.pods ?? [], blockedSince: this.blockedSince };
  }

  private progress(left: number) {
    return { lease: this.lease, total: this.known.size, evicted: Math.max(0, this.known.size - left), waitingFor: [] as readonly string[] };
  }

  private get name() {
    return { node: this.node, lease: this.lease };
  }

  private say(sight: Sight): Promise<void> {
    return this.parts.say(sight);
  }
}

const nodeSeen = ({ unschedulable, unschedulableBy, annotations }: KubeNode): NodeSeen =>
  ({ unschedulable, annotations, setBySluice: unschedulableBy.length === 0 || unschedulableBy.includes(FIELD_MANAGER) });
