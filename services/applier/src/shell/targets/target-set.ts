import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Turns } from '#libs/process';
import type { Log } from '../../core/index.js';
import type { RunningTarget, Target } from './run-target.js';

export interface TargetSetOptions {
  readonly shards: number;
  /** Claims a target and runs it. Rejects if that is not possible now. */
  readonly run: (target: Target, onLost: () => void, ending: AbortSignal) => Promise<RunningTarget>;
  /** Another process takes the target over again and again, although this copy should have it; or does so no more. */
  readonly onContest?: (node: string, isContested: boolean) => void;
  readonly log: Log;
}

const AGAIN_FIRST_MS = 1_000;
const AGAIN_LAST_MS = 60_000;
/**
 * How many targets start together, and how long one may keep the next from starting. A copy that leads a thousand
 * targets from one moment to the next would otherwise be so busy with them that it loses its leadership again.
 */
const STARTED_AT_ONCE = 32;
const START_MS = 500;
/** Two copies that both believe that they lead must not take a target from each other at full speed. */
const AFTER_LOSS_MS = 6_000;
/** So many losses in this time are no change of the leader. */
const CONTEST_LOSSES = 3;
const CONTEST_MS = 60_000;

/** Which of many targets run here: those that exist and whose shard this copy leads. */
export class TargetSet {
  private readonly led = new Set<number>();
  private wanted: ReadonlyMap<string, Target> = new Map();
  private readonly slots = new Map<string, Slot>();
  private readonly stopping = new AbortController();
  private readonly turns = new Turns(STARTED_AT_ONCE);

  constructor(private readonly options: TargetSetOptions) {}

  /** These targets exist now. */
  replace(targets: readonly Target[]): void {
    this.wanted = new Map(targets.map((target) => [target.node, target]));
    this.update();
  }

  lead(shard: number, leads: boolean): void {
    if (leads) this.led.add(shard);
    else this.led.delete(shard);
    this.update();
  }

  /** Whether this copy is the one that serves a target with this name, if it exists. */
  leads(node: string): boolean {
    return this.led.has(shardOf(node, this.options.shards));
  }

  /** Resolves once what was wanted last for this node is so. */
  async settled(node: string): Promise<void> {
    await this.slots.get(node)?.settled;
  }

  /** The node announces itself again, if it runs here. */
  announce(node: string): void {
    this.slots.get(node)?.announce();
  }

  /** Stops all targets at once, and hands them over. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.led.clear();
    this.update();
    await Promise.all([...this.slots.values()].map((slot) => slot.settled));
  }

  private update(): void {
    const { shards } = this.options;
    for (const node of new Set([...this.wanted.keys(), ...this.slots.keys()])) {
      const target = this.wanted.get(node);
      const isOwn = target !== undefined && this.led.has(shardOf(node, shards));
      let slot = this.slots.get(node);
      if (slot === undefined && !isOwn) continue;
      if (slot === undefined) this.slots.set(node, (slot = new Slot(this.options, this.turns, this.stopping.signal)));
      slot.want(isOwn ? target : undefined, target !== undefined);
      if (target === undefined) this.forgetWhenIdle(node, slot);
    }
  }

  /** Names of targets that left may never return, such as those of pods. */
  private forgetWhenIdle(node: string, slot: Slot): void {
    void slot.settled.then(() => {
      if (this.slots.get(node) === slot && slot.isIdle) this.slots.delete(node);
    });
  }
}

/** The shard of a target. It is the same in every copy. */
export const shardOf = (node: string, shards: number): number =>
  createHash('sha256').update(node).digest().readUInt32BE() % shards;

/** Each change of the inventory comes here for each target. One that is told its labels announces itself. */
function update(running: RunningTarget, before: Target, { labels, unavailable }: Target): void {
  if (!isDeepStrictEqual(labels, before.labels)) running.relabel(labels);
  if (unavailable !== before.unavailable) running.setUnavailable(unavailable);
}

/** Runs one target, or none: one start or stop after another. */
class Slot {
  /** Resolves once what was wanted last is so. */
  settled: Promise<void> = Promise.resolve();
  private wanted: Target | undefined;
  private current: { readonly target: Target; readonly running: RunningTarget } | undefined;
  private isListed = false;
  private isBusy = false;
  private failures = 0;
  private ending = new AbortController();
  private wake: () => void = () => undefined;
  /** When the target was lost lately. */
  private losses: readonly number[] = [];
  private contest: NodeJS.Timeout | undefined;

  constructor(
    private readonly options: TargetSetOptions,
    private readonly turns: Turns,
    /** Ends targets in the middle of their leases. */
    private readonly stopping: AbortSignal,
  ) {}

  /** `isListed`: it is a target, of this copy or of another one. */
  want(target: Target | undefined, isListed: boolean): void {
    const before = this.wanted;
    this.wanted = target;
    this.isListed = isListed;
    if (target !== undefined && before !== undefined && target.settings === before.settings) {
      if (this.current !== undefined) update(this.current.running, before, target);
      return;
    }
    this.ending.abort();
    this.wake();
    if (!this.isBusy) this.settled = this.settle();
  }

  /** Nothing runs, and nothing should. */
  get isIdle(): boolean {
    return !this.isBusy && this.wanted === undefined && this.current === undefined;
  }

  announce(): void {
    if (this.wanted !== undefined) this.current?.running.relabel(this.wanted.labels);
  }

  private async settle(): Promise<void> {
    this.isBusy = true;
    while (this.current?.target.settings !== this.wanted?.settings) {
      if (this.current !== undefined) await this.end(this.current.running);
      else if (this.wanted !== undefined) await this.begin(this.wanted);
    }
    this.isBusy = false;
  }

  private async begin(target: Target): Promise<void> {
    this.ending = new AbortController();
    const { signal } = this.ending;
    try {
      const running = await this.start(target, signal);
      this.current = { target, running };
      this.failures = 0;
      // A claim may take as long as the lease of another copy.
      if (this.wanted?.settings === target.settings) update(running, target, this.wanted);
    } catch (error) {
      if (signal.aborted) return;
      const { node } = target;
      this.options.log.warn({ node, error: (error as Error).message }, 'the target cannot be served; trying again');
      await this.pause(Math.min(AGAIN_LAST_MS, AGAIN_FIRST_MS * 2 ** this.failures++));
    }
  }

  /** Rejects if the target is not wanted any more when its turn comes. */
  private start(target: Target, signal: AbortSignal): Promise<RunningTarget> {
    return new Promise((resolve, reject) => {
      const run = async (): Promise<void> => {
        if (signal.aborted) throw new Error('the applier was stopped');
        const running = await this.options.run(target, () => void this.lost(), signal);
        resolve(running);
        await running.looked;
      };
      // One that waits for another copy, or does not answer, does not keep the others waiting.
      this.turns.start(run, START_MS).catch(reject);
    });
  }

  private async end(running: RunningTarget): Promise<void> {
    this.current = undefined;
    // With other settings, this copy continues the lease. A target that left has none.
    const isAtOnce = this.wanted !== undefined || !this.isListed;
    await running.stop(isAtOnce ? AbortSignal.abort() : this.stopping);
  }

  /** Another copy has it. If this one should still have it after a while, it claims the target again. */
  private async lost(): Promise<void> {
    const { current } = this;
    this.current = undefined;
    if (this.wanted !== undefined) this.noteLoss(this.wanted.node);
    await current?.running.stop(this.stopping);
    if (this.isBusy) return;
    this.isBusy = true;
    this.settled = this.pause(AFTER_LOSS_MS).then(() => this.settle());
    await this.settled;
  }

  private noteLoss(node: string): void {
    const nowMs = performance.now();
    this.losses = [...this.losses.filter((atMs) => atMs > nowMs - CONTEST_MS), nowMs];
    const wasContested = this.contest !== undefined;
    if (!wasContested && this.losses.length < CONTEST_LOSSES) return;
    clearTimeout(this.contest);
    this.contest = setTimeout(() => {
      this.contest = undefined;
      this.options.onContest?.(node, false);
    }, CONTEST_MS).unref();
    if (!wasContested) this.options.onContest?.(node, true);
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
