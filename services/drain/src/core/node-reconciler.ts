import type { DrainOutcome } from '#libs/contracts';
import { asker, type Effects, type Program } from '#libs/engine';
import { parseDrain, pausedName, type PausedObject } from '#libs/manifests';
import { cordonWrite, uncordonWrite, wasTakenOff, type NodeCordon, type NodeWrite } from './cordon.js';
import type { DrainObservation } from './drain.js';
import {
  NAMED,
  nameOf,
  namesOf,
  planEvictions,
  refusedAgain,
  type Eviction,
  type EvictionPlan,
  type DrainPod,
  type Try,
} from './eviction-plan.js';
import { pauseStep, unpauseWrite, type PausableState, type Pauser, type PauseWrite } from './pauses.js';
import { blockerOf, type Block, type BlockRecord, type Drain, type Progress } from './state.js';

/**
 * The effects of a reconcile, one after another. Production or the simulation carries them out. The process may die
 * between any two of them.
 */
interface ReconcilePort<N extends NodeCordon, P extends DrainPod> {
  /** The Node as the API server has it now; undefined if there is none. */
  'read-node'(): N | undefined;
  'read-pods'(): readonly P[];
  /** The drain according to the ledger, read up to its end. */
  'read-drain'(): Drain | undefined;
  /**
   * The object as the API server has it now; `absent` if there is none, or no such kind. An error is an answer, because
   * it must not keep a node cordoned.
   */
  'read-pausable'(args: { readonly object: PausedObject }): PausableRead;
  /** The drains that need objects paused, according to the ledger, read up to its end. */
  'read-pausers'(): readonly Pauser[];
  now(): ReconcileTime;
  /** Writes only if the Node has not changed since it was read. `written`: the write succeeded. */
  'write-node'(args: { readonly node: N; readonly write: NodeWrite }): 'written' | 'overtaken' | 'gone';
  /** The same for an object to pause. */
  'write-pausable'(args: {
    readonly object: PausedObject;
    readonly seen: PausableState;
    readonly write: PauseWrite;
  }): 'written' | 'overtaken' | 'gone';
  /** One result per eviction, in order. An error of one does not hide the results of the others. */
  evict(args: { readonly evictions: readonly Eviction<P>[] }): readonly EvictionResult[];
  /** Continues once it is in the ledger, or is known to be nothing new. */
  say(args: { readonly sight: DrainObservation }): void;
  show(args: { readonly progress: Progress }): void;
}
export type ReconcileEffect<N extends NodeCordon, P extends DrainPod> = Effects<ReconcilePort<N, P>>;
type PausableRead = PausableState | 'absent' | Error;
export interface ReconcileTime {
  readonly monotonicMs: number;
  /** For logs. */
  readonly wall: string;
}
export type EvictionResult =
  | { readonly outcome: 'accepted' | 'gone' }
  | {
      readonly outcome: 'refused';
      readonly reason: string;
      readonly budgets: readonly { readonly name: string; readonly allowed: number }[];
      readonly retryAfterMs: number | undefined;
    }
  | Error;

type ReconcileProgram<N extends NodeCordon, P extends DrainPod, T> = Program<ReconcileEffect<N, P>, T>;

/** Reconcile at least this often, in case a watch misses an event. */
const GUARD_MS = 15_000;
/** How soon to look again at an object that cannot be paused yet. */
const PAUSE_AGAIN_MS = 5_000;
/** A single failure may be a hiccup. */
const SAY_AFTER = 2;

/** The objects to pause for a lease, each as it was read; and the drains that need objects paused. */
interface Pauses {
  readonly objects: readonly (readonly [PausedObject, PausableRead])[];
  readonly pausers: readonly Pauser[];
}

/**
 * Drains one node for one lease, and gives it back: it reads, decides, acts, and repeats. Each round reads the Node and
 * the objects to pause, then its pods, then the lease up to the end of the ledger, and only then writes. So the API
 * server refuses a write of a copy that read earlier.
 */
export class NodeReconciler<N extends NodeCordon, P extends DrainPod> {
  private readonly ask = asker<ReconcilePort<N, P>>();
  private readonly tries = new Map<string, Try>();
  /** Every pod that had to go, as far as this copy saw; and how many an earlier copy counted. */
  private readonly knownPods = new Set<string>();
  private seenBefore = 0;
  private blocked: BlockRecord | undefined;
  /** This copy has seen the drain blocked. */
  private sawBlock = false;
  private amended = 0;
  private pauses: readonly PausedObject[] = [];

  /**
   * `phase` avoids reading pods when that is not needed. `self`: the pod that this process runs in, as namespace/name;
   * undefined outside Kubernetes.
   */
  constructor(
    readonly node: string,
    readonly lease: string,
    private phase: Drain['phase'],
    private readonly self: string | undefined,
  ) {}

  /** Call this when the fold shows another phase or other drain settings. Returns false if nothing has changed. */
  move({ phase, amended }: Pick<Drain, 'phase' | 'amended'>): boolean {
    const isNews = phase !== this.phase || amended !== this.amended;
    [this.phase, this.amended] = [phase, amended];
    return isNews;
  }

  /** A budget allows more, or is gone: retry what it refused at once. Returns false if it blocked nothing. */
  freed(budget: string): boolean {
    const attempts = [...this.tries].filter(([, attempt]) => attempt.refusal?.budget?.name === budget);
    for (const [uid, attempt] of attempts) this.tries.set(uid, { ...attempt, nextMs: 0 });
    return attempts.length > 0;
  }

  /** Reads and acts once. Returns how long to wait before the next round. */
  *reconcile(): ReconcileProgram<N, P, number> {
    const node = yield* this.ask({ do: 'read-node' });
    const phase = this.phase;
    const objects: Pauses['objects'][number][] = [];
    for (const object of this.pauses) objects.push([object, yield* this.ask({ do: 'read-pausable', object })]);
    // Before the node is cordoned, its pods prove nothing: more pods may be scheduled on it.
    const isCordoned = node !== undefined && cordonWrite(node, this.lease) === undefined;
    const pods = isCordoned && phase === 'draining' ? yield* this.ask({ do: 'read-pods' }) : [];
    const drain = yield* this.ask({ do: 'read-drain' });
    if (drain?.lease !== this.lease) return GUARD_MS;
    this.phase = drain.phase;
    this.seenBefore = drain.pods;
    const { pauses: known } = this;
    this.pauses = drain.pauses;
    if (JSON.stringify(known) !== JSON.stringify(drain.pauses)) return 0;
    if (drain.phase === 'draining' && phase !== 'draining') return 0;
    // Read before the lease was over, an object does not show what another copy may still pause for it.
    if (drain.phase === 'uncordoning' && phase !== 'uncordoning' && objects.length > 0) return 0;
    const pausers = objects.length === 0 ? [] : yield* this.ask({ do: 'read-pausers' });
    switch (drain.phase) {
      case 'draining':
        return node === undefined
          ? yield* this.withoutNode(drain)
          : yield* this.drain(drain, node, pods, { objects, pausers });
      case 'drained':
        return yield* this.guard(drain, node, { objects, pausers });
      case 'uncordoning':
        return yield* this.giveBack(node, { objects, pausers });
      case 'stopped':
      case 'uncordoned':
        return GUARD_MS;
    }
  }

  /**
   * A round failed. `failures`: how many failed in a row. `refused`: the API server refused and will do so until a
   * person acts, so report it.
   */
  *failed(failures: number, message: string, refused: boolean): ReconcileProgram<N, P, void> {
    const now = yield* this.ask({ do: 'now' });
    const block = this.blockSince({ reason: message, budget: undefined, pods: [] }, now);
    yield* this.ask({ do: 'show', progress: { ...this.progress(0), block } });
    if (refused && failures === SAY_AFTER) yield* this.sayBlocked(block);
  }

  private *drain(drain: Drain, node: N, pods: readonly P[], pauses: Pauses): ReconcileProgram<N, P, number> {
    const policy = parseDrain(drain.how);
    if (drain.cordoned && wasTakenOff(node, this.lease) && policy.onUncordon === 'give-up') {
      const reason = 'somebody uncordoned the node, and its pool has drain.onUncordon: give-up';
      yield* this.sayStopped(drain, 'deferred', reason);
      return GUARD_MS;
    }
    const paused = yield* this.pause(drain, pauses);
    if (paused === 'again') return 0;
    if (paused !== 'held') return yield* this.waitFor(drain, paused.reason, PAUSE_AGAIN_MS);
    const write = cordonWrite(node, this.lease);
    if (write !== undefined) {
      yield* this.ask({ do: 'write-node', node, write });
      return 0;
    }
    const now = yield* this.ask({ do: 'now' });
    const plan = this.plan(drain, pods, now);
    for (const { uid } of plan.left) this.knownPods.add(uid);
    if (plan.left.length === 0) {
      if (!drain.cordoned) yield* this.say({ ...this.name, what: 'cordoned', pods: this.total });
      yield* this.say({ ...this.name, what: 'drained', evicted: this.total, amended: drain.amended });
      return GUARD_MS;
    }
    return yield* this.goOn(drain, plan, now);
  }

  private *goOn(drain: Drain, plan: EvictionPlan<P>, now: ReconcileTime): ReconcileProgram<N, P, number> {
    if (plan.block === undefined) this.blocked = undefined;
    const block = plan.block && this.blockSince(plan.block, now, drain.blocked);
    const waitingFor = plan.left.map(nameOf).sort().slice(0, NAMED);
    yield* this.ask({ do: 'show', progress: { ...this.progress(plan.left.length), waitingFor, block } });
    if (block !== undefined && plan.block?.lasting === true) {
      yield* this.sayBlocked(block);
      // Reading may have taken long. Deleting pods ignores budgets, so check again that the drain still asks for it.
      if (plan.now.some(({ how }) => how === 'delete') && !(yield* this.isStill(drain))) return 0;
    }
    if (plan.timedOut) {
      yield* this.giveUp(drain, `waiting for ${namesOf(plan.left)}${block === undefined ? '' : `: ${block.reason}`}`);
      return GUARD_MS;
    }
    for (const { uid, ending } of plan.left) if (ending) this.noteEnding(uid, now.monotonicMs);
    const results = plan.now.length === 0 ? [] : yield* this.ask({ do: 'evict', evictions: plan.now });
    const { monotonicMs } = yield* this.ask({ do: 'now' });
    // Append this only now: pods take a while to end, so evict them without waiting for the ledger first.
    if (!drain.cordoned) yield* this.say({ ...this.name, what: 'cordoned', pods: this.total });
    for (const [i, { pod, how }] of plan.now.entries())
      if (how === 'evict') this.noteResult(pod.uid, results[i], monotonicMs);
    const troubled = results.find((result) => result instanceof Error);
    if (troubled !== undefined) throw troubled;
    const refused = plan.left
      .map(({ uid }) => this.tries.get(uid)?.nextMs ?? 0)
      .filter((atMs) => atMs > now.monotonicMs);
    return Math.max(1, Math.min(plan.reconcileAtMs, ...refused) - monotonicMs);
  }

  private *isStill({ amended }: Drain): ReconcileProgram<N, P, boolean> {
    const now = yield* this.ask({ do: 'read-drain' });
    return now?.lease === this.lease && now.phase === 'draining' && now.amended === amended;
  }

  private noteResult(uid: string, result: EvictionResult | undefined, nowMs: number): void {
    if (result === undefined || result instanceof Error) return;
    if (result.outcome !== 'refused') return void this.tries.delete(uid);
    const [budget] = result.budgets;
    const reason =
      budget === undefined
        ? result.reason
        : `the budget ${budget.name} allows ${budget.allowed} evictions: ${result.reason}`;
    this.tries.set(uid, refusedAgain(this.tries.get(uid), { reason, budget }, nowMs, result.retryAfterMs));
  }

  private noteEnding(uid: string, nowMs: number): void {
    const before = this.tries.get(uid);
    if (before?.forcedMs === undefined)
      this.tries.set(uid, { refusals: 0, nextMs: 0, sinceMs: nowMs, refusal: undefined, ...before, forcedMs: nowMs });
  }

  /**
   * The node is drained and changing: if somebody uncordons it now, pods may land on a node that is about to reboot.
   */
  private *guard(drain: Drain, node: N | undefined, pauses: Pauses): ReconcileProgram<N, P, number> {
    const isTakenOff = node !== undefined && wasTakenOff(node, this.lease);
    const write =
      isTakenOff && parseDrain(drain.how).onUncordon === 'restore' ? cordonWrite(node, this.lease) : undefined;
    if (node !== undefined && write !== undefined) {
      yield* this.ask({ do: 'write-node', node, write });
      return 0;
    }
    return (yield* this.pause(drain, pauses)) === 'again' ? 0 : GUARD_MS;
  }

  /**
   * Makes sure that everything that the pool names is paused. `again`: something was written, so read again. Otherwise
   * the reason why something is not paused yet.
   */
  private *pause(
    drain: Drain,
    { objects, pausers }: Pauses,
  ): ReconcileProgram<N, P, 'held' | 'again' | { readonly reason: string }> {
    const wanted = new Set(parseDrain(drain.how).pause.map(pausedName));
    for (const [object, seen] of objects) {
      const name = pausedName(object);
      if (!wanted.has(name)) continue;
      if (seen instanceof Error) throw seen;
      const about = (why: string) => ({ reason: `${name} cannot be paused yet: ${why}` });
      if (seen === 'absent')
        return about(`Kubernetes has no such object; create it, or remove it from spec.pause of Pool/${drain.pool}`);
      const step = pauseStep(object, seen, { lease: this.lease, pool: drain.pool }, pausers);
      if (step.type === 'held') continue;
      if (step.type === 'wait') return about(step.reason);
      yield* this.ask({ do: 'write-pausable', object, seen, write: step.write });
      return step.type === 'restore' ? about(step.reason) : 'again';
    }
    return 'held';
  }

  /**
   * Uncordons the Node, and unpauses what no other drain needs paused. Without a Node, there is nothing to uncordon.
   */
  private *giveBack(node: N | undefined, { objects, pausers }: Pauses): ReconcileProgram<N, P, number> {
    const write = node === undefined ? undefined : uncordonWrite(node, this.lease);
    if (node !== undefined && write !== undefined && (yield* this.ask({ do: 'write-node', node, write })) !== 'written')
      return 0;
    for (const [object, seen] of objects) {
      if (seen === 'absent') continue;
      if (seen instanceof Error) throw seen;
      const change = unpauseWrite(object, seen, this.lease, pausers);
      if (change === undefined) continue;
      const outcome = yield* this.ask({ do: 'write-pausable', object, seen, write: change });
      if (outcome === 'overtaken') return 0;
    }
    yield* this.say({ ...this.name, what: 'uncordoned' });
    return GUARD_MS;
  }

  /** Without a Node, nobody can tell whether its pods have ended: a person or the timeout decides. */
  private *withoutNode(drain: Drain): ReconcileProgram<N, P, number> {
    const reason = `Kubernetes has no Node named ${this.node}, so it is unknown which pods run on it`;
    return yield* this.waitFor(drain, reason);
  }

  /** Nothing can be evicted now. Looks again soon, until the time of the drain is over. */
  private *waitFor(drain: Drain, reason: string, mostMs = Infinity): ReconcileProgram<N, P, number> {
    const now = yield* this.ask({ do: 'now' });
    const block = this.blockSince({ reason, budget: undefined, pods: [] }, now, drain.blocked);
    yield* this.ask({ do: 'show', progress: { ...this.progress(0), block } });
    yield* this.sayBlocked(block);
    const { timedOut, reconcileAtMs } = this.plan(drain, [], now);
    if (timedOut) yield* this.giveUp(drain, block.reason);
    return Math.max(1, Math.min(mostMs, reconcileAtMs - now.monotonicMs));
  }

  private *giveUp(drain: Drain, why: string): ReconcileProgram<N, P, void> {
    const { onTimeout } = parseDrain(drain.how);
    const within = `not drained within ${Math.round(drain.drainMs / 1_000)} s`;
    yield* this.sayStopped(drain, onTimeout === 'defer' ? 'deferred' : 'failed', `${within}, ${why}`);
  }

  private plan(drain: Drain, pods: readonly P[], { monotonicMs: nowMs }: ReconcileTime): EvictionPlan<P> {
    const { how, reboots, termsMs: startedMs, drainMs, pool } = drain;
    const { tries, self } = this;
    return planEvictions({ policy: parseDrain(how), reboots, pods, tries, nowMs, startedMs, drainMs, pool, self });
  }

  /** What blocks the drain, and since when. `recorded`: the last block in the ledger. */
  private blockSince(block: Omit<Block, 'since'>, { wall }: ReconcileTime, recorded?: BlockRecord): Block {
    const { reason, budget, pods } = block;
    const by = blockerOf(reason, budget?.name ?? '');
    // If an earlier copy recorded the same block, it has lasted since then.
    const isKnown = !this.sawBlock && recorded?.by === by;
    if (by !== this.blocked?.by) this.blocked = { by, since: isKnown ? recorded.since : wall };
    this.sawBlock = true;
    return { reason, budget, pods, since: this.blocked.since };
  }

  private get total(): number {
    return Math.max(this.knownPods.size, this.seenBefore);
  }

  private progress(left: number) {
    return {
      lease: this.lease,
      total: this.total,
      evicted: Math.max(0, this.total - left),
      waitingFor: [] as readonly string[],
    };
  }

  private get name() {
    return { node: this.node, lease: this.lease };
  }

  private *sayBlocked(block: Block): ReconcileProgram<N, P, void> {
    yield* this.say({ ...this.name, what: 'blocked', block });
  }

  private *sayStopped({ amended }: Drain, outcome: DrainOutcome, reason: string): ReconcileProgram<N, P, void> {
    yield* this.say({ ...this.name, what: 'stopped', outcome, reason, amended });
  }

  private *say(sight: DrainObservation): ReconcileProgram<N, P, void> {
    yield* this.ask({ do: 'say', sight });
  }
}
