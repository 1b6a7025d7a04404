import { nodeOfToken, type Action, type Fact, type NodeReport } from '#libs/contracts';
import type { Answer, ViewKey } from '#libs/kernel';
import { hear } from '../../services/inventory/src/core/index.js';
import type { Journal } from '../../services/applier/src/core/index.js';
import { SimBus } from './bus.js';
import { Chance } from './chance.js';
import { Clock } from './clock.js';
import { Outside } from './outside.js';
import type { Plan } from './plan.js';
import { ServiceCopy } from './service-copy.js';
import { Cluster, type NodeObject } from './kubernetes/cluster.js';
import type { SimPod } from './kubernetes/workloads.js';
import { serviceKinds, type AnyKind } from './services.js';
import { SimNode } from './sim-node.js';

/** How badly the world behaves; each fault turns some of these up. Zero everywhere is a good day. */
export interface Weather {
  /** Share of reports that are lost, doubled or late on their way to the server. */
  reportLost: number;
  reportDoubled: number;
  reportLate: number;
  /** Share of appends whose answer is lost, though they happened or not. */
  answerLost: number;
  appendLost: number;
  appendParted: number;
  pushLost: number;
  /** How late a push may come; it shows what was written then, not what is. */
  pushLateMs: number;
  /** How many facts a plain read may lag behind. */
  lag: number;
  /** How long views take to be written. */
  viewLateMs: number;
  delayMs: number;
}
export const FAIR: Weather = {
  reportLost: 0,
  reportDoubled: 0,
  reportLate: 0,
  answerLost: 0,
  appendLost: 0,
  appendParted: 0,
  pushLost: 0,
  pushLateMs: 0,
  lag: 0,
  viewLateMs: 0,
  delayMs: 3,
};

/** An observer of the world; it throws when a promise is broken. */
export interface Oracle {
  readonly name: string;
  onFact?(world: World, fact: Fact, sequence: number): void;
  onJournal?(world: World, node: SimNode, journal: Journal): void;
  onWrite?(world: World, node: SimNode): void;
  onAnswer?(world: World, input: object, answer: Answer): void;
  /** A Node object was written, by whom. */
  onNodeWrite?(world: World, before: NodeObject, after: NodeObject, by: 'sluice' | 'person' | 'kubelet'): void;
  /** Sluice asked for the end of a pod, and it was granted. */
  onPodEnd?(world: World, pod: SimPod, how: 'evict' | 'delete'): void;
  /** A machine is to take an action. */
  onAct?(world: World, node: SimNode, action: Action): void;
  atEnd?(world: World): void;
}

/** A fault planted on purpose, to show that an oracle sees it. */
export interface Mutant {
  readonly name: string;
  /** How the violation begins that it must lead to. */
  readonly caughtBy: string;
  /** In which worlds it shows, where not in all. */
  readonly on?: Pick<Plan, 'kubernetes' | 'actors'>;
  readonly service?: (kind: AnyKind) => AnyKind;
  /** Nodes do not put back what they replaced. */
  readonly keepsReplaced?: boolean;
  /** Nodes say that they have acted, and have not. */
  readonly onlySaysActed?: boolean;
  /** Nodes restart their machines in the place of what fails, whatever their lease says. */
  readonly restartsUnasked?: boolean;
  /** What nodes are to get counts as named by nothing. */
  readonly forgetsNames?: boolean;
  /** What is written to Nodes does not rest on what was read. */
  readonly writesBlindly?: boolean;
  /** Cordons that were found are marked as if they were not, and who set them is not asked. */
  readonly forgetsFound?: boolean;
  /** Pods whose eviction is refused are deleted. */
  readonly deletesRefused?: boolean;
  /** No pods are seen on nodes that are drained. */
  readonly overlooksPods?: boolean;
  /** The inventory hears of no change of a Node. */
  readonly overlooksNodes?: boolean;
}

export class Violation extends Error {
  override readonly name = 'Violation';
}

/** Everything together: server, services, nodes, clock and chance, from one seed. */
export class World {
  readonly chance: Chance;
  readonly clock = new Clock();
  readonly bus = new SimBus();
  readonly weather: Weather = { ...FAIR };
  readonly nodes = new Map<string, SimNode>();
  readonly copies: ServiceCopy[] = [];
  /** Nodes that a person removed or skipped: they no longer count. */
  readonly excused = new Set<string>();
  /** Undefined where nodes are not Kubernetes'. */
  readonly cluster: Cluster | undefined;
  readonly outside = new Outside(this);
  /** How often each fault bit. */
  readonly fired = new Map<string, number>();
  /** What happened of each fault and each of the people, by number. */
  readonly occurrences = new Map<string, number[]>();
  /** Told of each fact, after the oracles. */
  readonly listeners: ((fact: Fact) => void)[] = [];
  lines: string[] = [];
  /** When the last fact was appended. */
  appendedMs = 0;

  constructor(
    readonly seed: number,
    readonly oracles: readonly Oracle[],
    copiesEach: number,
    private readonly keepTrace: boolean,
    readonly mutant?: Mutant,
    kubernetes = false,
  ) {
    this.chance = new Chance(seed, 'world');
    this.cluster = kubernetes ? new Cluster(this) : undefined;
    for (const kind of serviceKinds(kubernetes).map((one) => mutant?.service?.(one) ?? one)) {
      for (let i = 0; i < copiesEach; i++)
        this.copies.push(new ServiceCopy(this, kind, i, this.chance.whole(0, 1_000_000)));
    }
    this.bus.onAppend = (fact, sequence) => this.appended(fact, sequence);
    this.bus.onView = (key) => this.shown(key);
    this.bus.onInput = (stream) => this.tell(stream);
  }

  /** Asked for only if somebody reads it. */
  trace(line: () => string): void {
    if (this.keepTrace) this.lines.push(`${this.clock.nowMs.toFixed(3).padStart(14)} ${line()}`);
  }

  /** A fault bit. */
  fire(name: string): void {
    this.fired.set(name, (this.fired.get(name) ?? 0) + 1);
  }

  occurred(actor: string, number: number): void {
    const numbers = this.occurrences.get(actor) ?? [];
    this.occurrences.set(actor, numbers);
    numbers.push(number);
    this.trace(() => `${actor}:${number}`);
  }

  delayMs(): number {
    return this.chance.next() * this.weather.delayMs;
  }

  lag(): number {
    return this.weather.lag === 0 ? 0 : this.chance.whole(0, this.weather.lag);
  }

  appendFate(): 'done' | 'lost' | 'answer-lost' {
    const { weather } = this;
    const fate = this.strikes(weather.appendLost) ? 'lost' : this.strikes(weather.answerLost) ? 'answer-lost' : 'done';
    if (fate !== 'done') this.fire('lost-answers');
    return fate;
  }

  /** How many of so many separate facts are appended before something comes between. */
  appendedOf(count: number): number {
    return this.strikes(this.weather.appendParted, 'parted-appends') ? this.chance.whole(1, count - 1) : count;
  }

  addNode(name: string, labels: Readonly<Record<string, string>>, fresh = false): SimNode {
    const node = new SimNode(this, name, labels, fresh, this.chance.whole(0, 10_000_000));
    this.nodes.set(name, node);
    this.cluster?.register(name);
    node.start();
    return node;
  }

  /** A report on its way; false when the node hears no acknowledgement. */
  deliverReport(report: NodeReport): boolean {
    const { weather } = this;
    if (this.strikes(weather.reportLost, 'lost-reports')) {
      if (this.chance.happens(0.5)) this.bus.publishReport(report);
      return false;
    }
    if (this.strikes(weather.reportLate, 'late-reports'))
      this.clock.after(this.chance.next() * 90_000, () => this.bus.publishReport(report));
    else this.bus.publishReport(report);
    if (this.strikes(weather.reportDoubled, 'doubled-reports'))
      this.clock.after(this.chance.next() * 60_000, () => this.bus.publishReport(report));
    return true;
  }

  alive(node: string): void {
    for (const copy of this.serving('inventory'))
      if (copy.connected && hear(copy.copy.state as never, node, copy.monotonicMs)) copy.wake();
  }

  serving(name: string): readonly ServiceCopy[] {
    return this.copies.filter((copy) => copy.kind.core.name === name && copy.alive);
  }

  leader(name: string): ServiceCopy | undefined {
    return this.copies.find((copy) => copy.kind.core.name === name && copy.alive && copy.leading);
  }

  /** Asks a service, as `nats req` does. */
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

  /** What the scheduler would say now to who asks why a node is where it is. */
  why(
    node: string,
  ): { readonly because: string; readonly text: string; readonly holders: readonly string[] } | undefined {
    const copy = this.leader('scheduler');
    if (copy === undefined) return undefined;
    const input = { type: 'request', request: { op: 'node.why', node } };
    const now = { monotonicMs: copy.monotonicMs, leadingSinceMs: copy.leadingSinceMs };
    const answer = copy.kind.core.decide(copy.copy.state, [input], new Map(), now).answers.get(input);
    return answer?.ok === true
      ? (answer.body as { because: string; text: string; holders: readonly string[] })
      : undefined;
  }

  onJournal(node: SimNode, journal: Journal): void {
    this.observe((oracle) => oracle.onJournal?.(this, node, journal));
  }

  onAct(node: SimNode, action: Action): void {
    this.observe((oracle) => oracle.onAct?.(this, node, action));
  }

  onWrite(node: SimNode): void {
    this.observe((oracle) => oracle.onWrite?.(this, node));
  }

  run(untilMs: number): void {
    while (this.clock.step(untilMs));
    this.clock.nowMs = Math.max(this.clock.nowMs, untilMs);
  }

  /** Lets every oracle look; a violation names the oracle that saw it. */
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

  /** Whether something of this share happens now. Draws nothing while the share is zero. */
  private strikes(share: number, fault?: string): boolean {
    if (share === 0 || !this.chance.happens(share)) return false;
    if (fault !== undefined) this.fire(fault);
    return true;
  }

  private appended(fact: Fact, sequence: number): void {
    this.appendedMs = this.clock.nowMs;
    this.trace(() => `#${sequence} ${JSON.stringify(fact)}`);
    this.observe((oracle) => oracle.onFact?.(this, fact, sequence));
    this.outside.hear(fact);
    this.tell(fact.type);
    if (fact.type === 'node.lease.settled' && fact.because === 'escalated') this.fire('escalations');
    for (const listener of this.listeners) listener(fact);
  }

  private shown(key: ViewKey): void {
    const { bucket } = key;
    if (bucket !== 'leases' && bucket !== 'status') return;
    if (this.strikes(this.weather.pushLost, 'lost-pushes')) return;
    const node = this.nodes.get(nodeOfToken(key.key));
    if (node === undefined) return;
    const [lease, status] = [
      bucket === 'leases' ? this.bus.view(bucket, key.key) : undefined,
      bucket === 'status' ? this.bus.view(bucket, key.key) : undefined,
    ];
    if (this.weather.pushLateMs > 0) this.fire('late-pushes');
    this.clock.after(this.delayMs() + this.chance.next() * this.weather.pushLateMs, () => node.pushed(lease, status));
  }

  private tell(what: Fact['type'] | 'changes' | 'reports'): void {
    for (const copy of this.copies) copy.hear(what);
  }
}
