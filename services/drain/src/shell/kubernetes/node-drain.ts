import { setTimeout as sleep } from 'node:timers/promises';
import { growingMs, Signal, UnavailableError } from '#libs/bus';
import { FIELD_MANAGER, isMissingRight, KubeError, type Kube, type KubeNode, type KubePod } from '#libs/kube';
import { monotonicMs, wallTime, type Logger } from '#libs/runtime';
import {
  nameOf,
  NodeLook,
  type Drain,
  type Eviction,
  type EvictionResult,
  type LookEffect,
  type NodeSeen,
  type NodeWrite,
  type Progress,
  type Sight,
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

/** A Node as the core sees it, with what a write has to rest on. */
interface SeenNode extends NodeSeen {
  readonly read: KubeNode;
}

/** Pods come and go in bursts: one look for a burst. */
const BURST_MS = 30;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 15_000;

/** Lets the core look at one node again and again, and carries out what it asks for. */
export class NodeDrain {
  private readonly again = new Signal();
  private readonly core: NodeLook<SeenNode, KubePod>;
  private stopped = false;
  private failures = 0;
  private unwatch: (() => void) | undefined;

  constructor(
    private readonly parts: DrainerParts,
    readonly node: string,
    readonly lease: string,
    phase: Drain['phase'],
  ) {
    this.core = new NodeLook(node, lease, phase, parts.self);
  }

  start(): this {
    void this.run();
    return this;
  }

  /** The fold says that it has come to another phase, or is to be drained in another way. */
  move(drain: Pick<Drain, 'phase' | 'amended'>): void {
    if (this.core.move(drain)) this.again.give();
  }

  /** A budget allows something, or is gone: what it refused is tried again at once. */
  freed(budget: string): void {
    if (this.core.freed(budget)) this.again.give();
  }

  stop(): void {
    this.stopped = true;
    this.unwatch?.();
    this.again.give();
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      let pauseMs: number;
      try {
        pauseMs = await this.carryOut(this.core.look());
        this.failures = 0;
      } catch (error) {
        // Another copy leads: this one is stopped, and the other looks.
        if (this.stopped || error instanceof UnavailableError) return;
        pauseMs = await this.failed(error as Error);
      }
      this.watch();
      if (this.stopped || pauseMs === 0) continue;
      await this.again.wait(pauseMs);
      await sleep(BURST_MS);
    }
  }

  /** Only after the first look, which need not wait for what a watch takes to begin: that begins with a list, so nothing is missed. */
  private watch(): void {
    if (this.unwatch === undefined && !this.stopped)
      this.unwatch = this.parts.kube.onChange(this.node, () => this.again.give(), this.parts.logger);
  }

  private async failed(error: Error): Promise<number> {
    // A missing right was named, once.
    this.parts.logger[isMissingRight(error) ? 'debug' : 'warn'](
      { error, node: this.node, lease: this.lease, failures: this.failures },
      'a node could not be looked at; trying again',
    );
    await this.carryOut(this.core.failed(this.failures, error.message, error instanceof KubeError)).catch(
      () => undefined,
    );
    return growingMs(this.failures++, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  }

  private async carryOut<T>(looking: Generator<LookEffect<SeenNode, KubePod>, T, unknown>): Promise<T> {
    let next = looking.next();
    while (next.done !== true) {
      const result = await this.perform(next.value);
      if (this.stopped) throw new UnavailableError('this drain was stopped');
      next = looking.next(result);
    }
    return next.value;
  }

  private async perform(effect: LookEffect<SeenNode, KubePod>): Promise<unknown> {
    const { kube, drainOf, say, show } = this.parts;
    switch (effect.do) {
      case 'read-node':
        return seenNode(await kube.node(this.node));
      case 'read-pods':
        return kube.podsOn(this.node);
      case 'read-drain':
        return drainOf(this.node);
      case 'now':
        return { monotonicMs: monotonicMs(), wall: wallTime() };
      case 'write-node':
        return this.write(effect.seen.read, effect.write);
      case 'evict':
        return Promise.all(effect.evictions.map((eviction) => this.evict(eviction)));
      case 'say':
        return say(effect.sight);
      case 'show':
        return show(this.node, effect.progress);
    }
  }

  private async evict({ pod, how, graceSeconds }: Eviction<KubePod>): Promise<EvictionResult> {
    const { kube, logger } = this.parts;
    const about = { node: this.node, lease: this.lease, pod: nameOf(pod) };
    try {
      if (how === 'delete') {
        const outcome = await kube.delete(pod, graceSeconds);
        logger.warn({ ...about, graceSeconds }, 'a pod was deleted, as the pool says after the time-out');
        return { outcome };
      }
      const result = await kube.evict(pod, graceSeconds);
      if (result.outcome !== 'refused') logger.debug(about, 'a pod was evicted');
      return result;
    } catch (error) {
      return error as Error;
    }
  }

  private async write(read: KubeNode, write: NodeWrite): Promise<'written' | 'overtaken' | 'gone'> {
    const outcome = await this.parts.kube.writeNode(read, write);
    this.parts.logger.info({ node: this.node, lease: this.lease, ...write, outcome }, 'the Node was written');
    return outcome;
  }
}

function seenNode(read: KubeNode | undefined): SeenNode | undefined {
  if (read === undefined) return undefined;
  const { unschedulable, unschedulableBy, annotations } = read;
  return {
    read,
    unschedulable,
    annotations,
    setBySluice: unschedulableBy.length === 0 || unschedulableBy.includes(FIELD_MANAGER),
  };
}
