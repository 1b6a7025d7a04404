import { nodeOfToken, type Action, type ConfigEntry, type Fact } from '#libs/contracts';
import type { Answer, ViewKey } from '#libs/engine';
import type { Journal } from '../../../services/applier/src/core/index.js';
import { hear, hearReport } from '../../../services/inventory/src/core/index.js';
import { Cluster, type NodeObject, type Writer } from '../kubernetes/cluster.js';
import type { PausableObject } from '../kubernetes/pausables.js';
import type { SimPod } from '../kubernetes/workloads.js';
import { SimNode } from './sim-node.js';
import { SimTarget } from './sim-target.js';
import { Outside } from './outside.js';
import type { ServiceCopy } from './service-copy.js';
import { copiesOf, type AnyKind } from './services.js';
import { Surroundings, type JournalWrite, type Participant, type PlantedFaults } from './surroundings.js';

/** An observer of the world. It throws if an invariant is violated. */
export interface Oracle {
  readonly name: string;
  onFact?(world: World, fact: Fact, sequence: number): void;
  onJournal?(world: World, node: SimNode, journal: Journal): void;
  onWrite?(world: World, node: SimNode): void;
  /** A command of an Exec is about to run, or to be undone. */
  onCommand?(world: World, node: SimNode, entry: ConfigEntry, what: 'apply' | 'undo'): void;
  /** The journal of a target elsewhere was written. */
  onOwned?(world: World, target: SimTarget, write: JournalWrite): void;
  /** A write of this copy of its applier has arrived at a target. */
  onTargetWrite?(world: World, target: SimTarget, owner: string): void;
  /** Some seconds have passed for a target. */
  onTarget?(world: World, target: SimTarget): void;
  /** The applier of a node hangs or is killed in the middle of a change. */
  onGone?(world: World, node: SimNode): void;
  onAnswer?(world: World, input: object, answer: Answer): void;
  /** A view was written. */
  onView?(world: World, key: ViewKey): void;
  /** A Node object was written by this writer. */
  onNodeWrite?(world: World, before: NodeObject, after: NodeObject, by: Writer): void;
  /** An object that drains pause was written by this writer. */
  onPauseWrite?(world: World, before: PausableObject, after: PausableObject, by: Writer | 'controller'): void;
  /** A pod was ended at the request of Sluice. */
  onPodEnd?(world: World, pod: SimPod, how: 'evict' | 'delete'): void;
  /** A machine is about to take an action. */
  onAct?(world: World, node: SimNode, action: Action): void;
  /** A copy stops deciding until a person fixes something. */
  onHalt?(world: World, copy: Participant, reason: string): void;
  atEnd?(world: World): void;
}

export class Violation extends Error {
  override readonly name = 'Violation';
}

/** Everything together: server, services, nodes, clock and random numbers, from one seed. */
export class World extends Surroundings {
  readonly nodes = new Map<string, SimNode>();
  readonly copies: readonly ServiceCopy[];
  /** Nodes that a person removed or skipped. They no longer count. */
  readonly excused = new Set<string>();
  /** Undefined if the nodes are not Kubernetes nodes. */
  readonly cluster: Cluster | undefined;
  readonly outside = new Outside(this);
  /** The occurrences of each fault and each person, by number. */
  readonly occurrences = new Map<string, number[]>();
  /** Called with each fact, after the oracles. */
  readonly listeners: ((fact: Fact) => void)[] = [];
  /** Called when Sluice has paused an object. */
  readonly pauseListeners: (() => void)[] = [];
  /** When the last report of each node was stored. */
  readonly reportedMs = new Map<string, number>();
  /** When the last fact was appended. */
  appendedMs = 0;

  constructor(
    seed: number,
    readonly oracles: readonly Oracle[],
    copiesEach: number,
    keepTrace: boolean,
    mutant?: PlantedFaults & { readonly service?: (kind: AnyKind) => AnyKind },
    kubernetes = false,
  ) {
    super(seed, keepTrace, mutant);
    this.cluster = kubernetes ? new Cluster(this) : undefined;
    if (this.cluster !== undefined) {
      this.cluster.onWrite = (...write) => this.observe((oracle) => oracle.onNodeWrite?.(this, ...write));
      this.cluster.pausables.onWrite = (before, after, by) => {
        this.observe((oracle) => oracle.onPauseWrite?.(this, before, after, by));
        if (by === 'sluice' && !before.paused && after.paused) for (const listener of this.pauseListeners) listener();
      };
      this.cluster.onPodEnd = (pod, how) => this.observe((oracle) => oracle.onPodEnd?.(this, pod, how));
    }
    this.copies = copiesOf(this, copiesEach, this.cluster, mutant?.service);
    this.bus.onAppend = (fact, sequence) => this.appended(fact, sequence);
    this.bus.onView = (key) => this.onView(key);
    this.bus.onInput = (stream) => this.notifyCopies(stream);
    this.bus.onReport = (node) => this.reported(node);
  }

  occurred(actor: string, number: number): void {
    const numbers = this.occurrences.get(actor) ?? [];
    this.occurrences.set(actor, numbers);
    numbers.push(number);
    this.trace(() => `${actor}:${number}`);
  }

  addNode(name: string, labels: Readonly<Record<string, string>>, fresh = false): SimNode {
    const node = new SimNode(this, name, labels, fresh, this.chance.integer(0, 10_000_000));
    this.nodes.set(name, node);
    this.cluster?.register(name);
    node.start();
    return node;
  }

  /** A target elsewhere, and so many copies of its applier. */
  addTarget(name: string, labels: Readonly<Record<string, string>>, copies: number): SimTarget {
    const target = new SimTarget(this, name, labels, copies);
    this.nodes.set(name, target);
    this.cluster?.register(name);
    target.start();
    return target;
  }

  alive(node: string): void {
    if (this.strikes(this.conditions.heartbeatLost, 'lost-heartbeats')) return;
    for (const copy of this.serving('inventory'))
      if (copy.connected && hear(copy.copy.state as never, node, copy.monotonicMs)) copy.wake();
  }

  private reported(node: string): void {
    this.reportedMs.set(node, this.clock.nowMs);
    for (const copy of this.mutant?.overlooksReports === true ? [] : this.serving('inventory'))
      if (copy.connected && hearReport(copy.copy.state as never, node, copy.monotonicMs)) copy.wake();
  }

  bootIdOf(node: string): string | undefined {
    return this.nodes.get(node)?.bootId;
  }

  serving(name: string): readonly ServiceCopy[] {
    return this.copies.filter((copy) => copy.kind.core.name === name && copy.alive);
  }

  leader(name: string): ServiceCopy | undefined {
    return this.copies.find((copy) => copy.kind.core.name === name && copy.alive && copy.leading);
  }

  ask(service: string, request: object, then: (answer: Answer | undefined) => void = () => undefined): void {
    const input = { type: 'request', request };
    const copy = this.leader(service);
    if (copy === undefined) return then(undefined);
    copy.request(input, (answer) => {
      if (answer !== undefined) this.observe((oracle) => oracle.onAnswer?.(this, request, answer));
      this.trace(() => `${service} answers ${JSON.stringify(request)} ${JSON.stringify(answer)}`);
      then(answer);
    });
  }

  /** The scheduler's current answer to the question why a node has its config. */
  why(
    node: string,
  ): { readonly because: string; readonly text: string; readonly holders: readonly string[] } | undefined {
    const copy = this.leader('scheduler');
    if (copy === undefined) return undefined;
    const input = { type: 'request', request: { op: 'node.why', node } };
    const now = { monotonicMs: copy.monotonicMs, leadingSinceMs: copy.leadingSinceMs, wallMs: copy.wallMs };
    const answer = copy.kind.core.decide(copy.copy.state, [input], new Map(), now).answers.get(input);
    return answer?.ok === true
      ? (answer.body as { because: string; text: string; holders: readonly string[] })
      : undefined;
  }

  onJournal({ name }: Participant, journal: Journal): void {
    this.observe((oracle) => oracle.onJournal?.(this, this.nodes.get(name) as SimNode, journal));
  }

  onAct({ name }: Participant, action: Action): void {
    this.observe((oracle) => oracle.onAct?.(this, this.nodes.get(name) as SimNode, action));
  }

  onWrite({ name }: Participant): void {
    this.observe((oracle) => oracle.onWrite?.(this, this.nodes.get(name) as SimNode));
  }

  onCommand({ name }: Participant, entry: ConfigEntry, what: 'apply' | 'undo'): void {
    this.observe((oracle) => oracle.onCommand?.(this, this.nodes.get(name) as SimNode, entry, what));
    this.trace(() => `${name}: ${what} ${entry.name}`);
  }

  onOwned({ name }: Participant, write: JournalWrite): void {
    this.observe((oracle) => oracle.onOwned?.(this, this.nodes.get(name) as SimTarget, write));
  }

  onTargetWrite({ name }: Participant, owner: string): void {
    this.observe((oracle) => oracle.onTargetWrite?.(this, this.nodes.get(name) as SimTarget, owner));
  }

  onTarget({ name }: Participant): void {
    this.observe((oracle) => oracle.onTarget?.(this, this.nodes.get(name) as SimTarget));
  }

  onGone({ name }: Participant): void {
    this.observe((oracle) => oracle.onGone?.(this, this.nodes.get(name) as SimNode));
  }

  onHalt(copy: Participant, reason: string): void {
    this.observe((oracle) => oracle.onHalt?.(this, copy, reason));
  }

  run(untilMs: number): void {
    while (this.clock.step(untilMs));
    this.clock.nowMs = Math.max(this.clock.nowMs, untilMs);
  }

  /** Calls every oracle. A violation names the oracle that detected it. */
  observe(look: (oracle: Oracle) => void): void {
    for (const oracle of this.oracles) {
      try {
        look(oracle);
      } catch (error) {
        throw error instanceof Violation && !error.message.startsWith('I')
          ? new Violation(`${oracle.name}: ${error.message}`)
          : error;
      }
    }
  }

  private appended(fact: Fact, sequence: number): void {
    this.appendedMs = this.clock.nowMs;
    this.trace(() => `#${sequence} ${JSON.stringify(fact)}`);
    this.observe((oracle) => oracle.onFact?.(this, fact, sequence));
    if (this.cluster === undefined) this.outside.onFact(fact);
    this.notifyCopies(fact.type);
    if (fact.type === 'node.lease.settled' && fact.because === 'escalated') this.fire('escalations');
    for (const listener of this.listeners) listener(fact);
  }

  private onView(key: ViewKey): void {
    const { bucket } = key;
    this.observe((oracle) => oracle.onView?.(this, key));
    if (bucket !== 'leases' && bucket !== 'status') return;
    if (this.strikes(this.conditions.pushLost, 'lost-pushes')) return;
    const node = this.nodes.get(nodeOfToken(key.key));
    if (node === undefined) return;
    const [lease, status] = [
      bucket === 'leases' ? this.bus.view(bucket, key.key) : undefined,
      bucket === 'status' ? this.bus.view(bucket, key.key) : undefined,
    ];
    if (this.conditions.pushLateMs > 0) this.fire('late-pushes');
    this.clock.after(this.delayMs() + this.chance.next() * this.conditions.pushLateMs, () =>
      node.pushed(lease, status),
    );
  }

  private notifyCopies(what: Fact['type'] | 'changes' | 'reports'): void {
    for (const copy of this.copies) copy.notify(what);
  }
}
