import { setTimeout as sleep } from 'node:timers/promises';
import { growingMs, Signal, UnavailableError } from '#libs/nats';
import {
  FIELD_MANAGER,
  isMissingRight,
  KubeError,
  type Kube,
  type KubeNode,
  type KubePod,
  type WriteOutcome,
} from '#libs/kube';
import { pausedName, type PausedObject } from '#libs/manifests';
import { monotonicMs, wallTime, type Logger } from '#libs/process';
import {
  BURST_MS,
  nameOf,
  RunningDrain,
  type Drain,
  type Eviction,
  type EvictionResult,
  type DrainEffect,
  type NodeCordon,
  type NodeWrite,
  type PausableState,
  type Pauser,
  type PauseWrite,
  type Progress,
  type Sight,
} from '../../core/index.js';

/** What the drain of one node needs. */
export interface DrainerParts {
  readonly kube: Pick<
    Kube,
    'node' | 'writeNode' | 'pausable' | 'writePausable' | 'podsOn' | 'evict' | 'delete' | 'onChange'
  >;
  readonly logger: Logger;
  /** The pod that this process runs in, as namespace/name; undefined outside Kubernetes. */
  readonly self: string | undefined;
  /** The drain of a node according to the ledger, read up to its end. */
  readonly drainOf: (node: string) => Promise<Drain | undefined>;
  /** The drains that need objects paused, according to the ledger, read up to its end. */
  readonly pausers: () => Promise<readonly Pauser[]>;
  /** Resolves when the observation is in the ledger, or turned out to be nothing new. */
  readonly say: (sight: Sight) => Promise<void>;
  readonly show: (node: string, progress: Progress) => void;
}

/** A Node as the core sees it, with the version that a write is based on. */
interface NodeSnapshot extends NodeCordon {
  readonly read: KubeNode;
}

/** The drain of one node through the Kubernetes API. */
export class NodeDrain extends RunningDrain<NodeSnapshot, KubePod> {
  private readonly again = new Signal();
  private unwatch: (() => void) | undefined;

  constructor(
    private readonly parts: DrainerParts,
    drain: Pick<Drain, 'node' | 'lease' | 'phase'>,
  ) {
    super(drain, parts.self);
  }

  start(): this {
    void this.run();
    return this;
  }

  nudge(): void {
    this.again.give();
  }

  override stop(): void {
    super.stop();
    this.unwatch?.();
    this.nudge();
  }

  private async run(): Promise<void> {
    const steps = this.program();
    let next = steps.next();
    while (next.done !== true) {
      try {
        const answer = await this.perform(next.value);
        if (this.stopped) return;
        next = steps.next(answer);
      } catch (error) {
        // Another copy leads. This one stops, and the other one reads the Node.
        if (this.stopped || error instanceof UnavailableError) return;
        next = steps.throw(error);
      }
    }
  }

  /**
   * Watch only after the first round, which need not wait for the watch to start. A watch begins with a list, so
   * nothing is missed.
   */
  private watch(): void {
    if (this.unwatch === undefined && !this.stopped)
      this.unwatch = this.parts.kube.onChange(this.node, () => this.nudge(), this.parts.logger);
  }

  private async wait(forMs: number): Promise<void> {
    this.watch();
    await this.again.wait(forMs);
    await sleep(BURST_MS);
  }

  private noteFailure(error: Error, failures: number): boolean {
    // A missing permission is logged once.
    this.parts.logger[isMissingRight(error) ? 'debug' : 'warn'](
      { error, node: this.node, lease: this.lease, failures },
      'the node could not be reconciled; trying again',
    );
    return error instanceof KubeError;
  }

  private async perform(effect: DrainEffect<NodeSnapshot, KubePod>): Promise<unknown> {
    const { kube, drainOf, pausers, say, show } = this.parts;
    switch (effect.do) {
      case 'read-node':
        return seenNode(await kube.node(this.node));
      case 'read-pods':
        return kube.podsOn(this.node);
      case 'read-drain':
        return drainOf(this.node);
      case 'read-pausable':
        return this.readPausable(effect.object);
      case 'read-pausers':
        return pausers();
      case 'now':
        return { monotonicMs: monotonicMs(), wall: wallTime() };
      case 'write-node':
        return this.write(effect.node.read, effect.write);
      case 'write-pausable':
        return this.writePausable(effect.object, effect.seen, effect.write);
      case 'evict':
        return Promise.all(effect.evictions.map((eviction) => this.evict(eviction)));
      case 'say':
        return say(effect.sight);
      case 'show':
        return show(this.node, effect.progress);
      case 'wait':
        return this.wait(effect.forMs);
      case 'back-off':
        return this.wait(growingMs(effect.tries, effect.leastMs, effect.mostMs));
      case 'note-failure':
        return this.noteFailure(effect.error, effect.failures);
    }
  }

  private async evict({ pod, how, graceSeconds }: Eviction<KubePod>): Promise<EvictionResult> {
    const { kube, logger } = this.parts;
    const about = { node: this.node, lease: this.lease, pod: nameOf(pod) };
    try {
      if (how === 'delete') {
        const outcome = await kube.delete(pod, graceSeconds);
        logger.warn(
          { ...about, graceSeconds },
          'pod deleted after the drain timeout, because its pool has drain.onTimeout: force',
        );
        return { outcome };
      }
      const result = await kube.evict(pod, graceSeconds);
      if (result.outcome !== 'refused') logger.debug(about, 'pod evicted');
      return result;
    } catch (error) {
      return error as Error;
    }
  }

  private async readPausable(object: PausedObject): Promise<PausableState | 'absent' | Error> {
    try {
      const seen = await this.parts.kube.pausable(object);
      return seen === 'absent' ? seen : { ...seen, setBySluice: isSetBySluice(seen.pausedBy) };
    } catch (error) {
      return error as Error;
    }
  }

  private async writePausable(object: PausedObject, seen: PausableState, write: PauseWrite): Promise<WriteOutcome> {
    const outcome = await this.parts.kube.writePausable(object, seen, write);
    const about = { node: this.node, lease: this.lease, object: pausedName(object), ...write, outcome };
    this.parts.logger.info(about, 'object to pause updated');
    return outcome;
  }

  private async write(read: KubeNode, write: NodeWrite): Promise<WriteOutcome> {
    const outcome = await this.parts.kube.writeNode(read, write);
    this.parts.logger.info({ node: this.node, lease: this.lease, ...write, outcome }, 'Node updated');
    return outcome;
  }
}

function seenNode(read: KubeNode | undefined): NodeSnapshot | undefined {
  if (read === undefined) return undefined;
  const { unschedulable, unschedulableBy, annotations } = read;
  return {
    read,
    unschedulable,
    annotations,
    setBySluice: isSetBySluice(unschedulableBy),
  };
}

/** Without field managers, the mark alone decides. */
const isSetBySluice = (managers: readonly string[]): boolean =>
  managers.length === 0 || managers.includes(FIELD_MANAGER);
