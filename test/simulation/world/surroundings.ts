import type { Action, NodeReport } from '#libs/contracts';
import type { Answer } from '#libs/engine';
import type { Journal } from '../../../services/applier/src/core/index.js';
import { SimBus } from './bus.js';
import { Chance } from './chance.js';
import { Clock } from './clock.js';

/** How badly the world behaves on a good day; each fault turns some of these up. */
export const NORMAL_CONDITIONS = {
  /** Share of reports that are lost, doubled or late on their way to the server. */
  reportLost: 0,
  reportDoubled: 0,
  reportLate: 0,
  /** Share of heartbeats that are lost. */
  heartbeatLost: 0,
  /** Share of appends whose answer is lost, though they happened or not. */
  answerLost: 0,
  appendLost: 0,
  appendParted: 0,
  pushLost: 0,
  /** How late a push may come; it shows what was written then, not what is. */
  pushLateMs: 0,
  /** How many facts a plain read may lag behind. */
  lag: 0,
  /** How long views take to be written. */
  viewLateMs: 0,
  delayMs: 3,
  /** How long a step takes of a copy that does not lead yet. */
  takeOverMs: 0,
  /** A snapshot after so many facts; 0 where none are kept. */
  snapshotFacts: 0,
};
export type Conditions = Record<keyof typeof NORMAL_CONDITIONS, number>;

/** Faults that a mutant plants outside the cores. */
export interface PlantedFaults {
  /** Nodes do not put back what they replaced. */
  readonly keepsReplaced?: boolean;
  /** Nodes say that they have acted, and have not. */
  readonly onlySaysActed?: boolean;
  /** The guard of an applier that hangs does not look. */
  readonly guardSleeps?: boolean;
  /** Nodes restart their machines in the place of what fails, whatever their lease says. */
  readonly restartsUnasked?: boolean;
  /** What nodes are to get counts as named by nothing. */
  readonly forgetsNames?: boolean;
  /** A copy that takes over leaves views as it finds them. */
  readonly trustsViews?: boolean;
  /** The ledger is trimmed to its end, whatever the snapshots are. */
  readonly trimsAll?: boolean;
  /** What is written to Nodes does not rest on what was read. */
  readonly writesBlindly?: boolean;
  /** Cordons that were found are marked as if they were not, and who set them is not asked. */
  readonly forgetsFound?: boolean;
  /** Pods whose eviction is refused are deleted. */
  readonly deletesRefused?: boolean;
  /** No pods are seen on nodes that are drained. */
  readonly overlooksPods?: boolean;
  /** The inventory hears of no change of a Node, nor that its watch broke, after which it would list them again. */
  readonly overlooksNodes?: boolean;
  /** The inventory hears heartbeats, and no reports. */
  readonly overlooksReports?: boolean;
}

/** The world as those see it who live in it: nodes, copies of services, the cluster. */
export abstract class Surroundings {
  /** All chance but what a fault, a node or the cluster has of its own. */
  readonly chance: Chance;
  readonly clock = new Clock();
  readonly bus = new SimBus();
  readonly conditions: Conditions = { ...NORMAL_CONDITIONS };
  /** How often each fault bit. */
  readonly fired = new Map<string, number>();
  readonly lines: string[] = [];

  constructor(
    readonly seed: number,
    private readonly keepTrace: boolean,
    readonly mutant: PlantedFaults | undefined,
  ) {
    this.chance = new Chance(seed, 'world');
  }

  /** A heartbeat. */
  abstract alive(node: string): void;
  /** Of the machine of that name; undefined if there is none. */
  abstract bootIdOf(node: string): string | undefined;
  /** Asks a service, as `nats req` does. */
  abstract ask(service: string, request: object, then?: (answer: Answer | undefined) => void): void;
  abstract onJournal(node: Participant, journal: Journal): void;
  abstract onAct(node: Participant, action: Action): void;
  abstract onWrite(node: Participant): void;
  /** Its applier hangs in the middle of a change. */
  abstract onHang(node: Participant): void;
  /** A copy decides nothing any more until a person puts something right. */
  abstract onHalt(copy: Participant, reason: string): void;

  /** Asked for only if somebody reads it. */
  trace(line: () => string): void {
    if (this.keepTrace) this.lines.push(`${this.clock.nowMs.toFixed(3).padStart(14)} ${line()}`);
  }

  /** A fault bit. */
  fire(name: string): void {
    this.fired.set(name, (this.fired.get(name) ?? 0) + 1);
  }

  delayMs(): number {
    return this.chance.next() * this.conditions.delayMs;
  }

  lag(): number {
    return this.conditions.lag === 0 ? 0 : this.chance.whole(0, this.conditions.lag);
  }

  appendFate(): 'done' | 'lost' | 'answer-lost' {
    const { conditions } = this;
    const fate = this.strikes(conditions.appendLost)
      ? 'lost'
      : this.strikes(conditions.answerLost)
        ? 'answer-lost'
        : 'done';
    if (fate !== 'done') this.fire('lost-answers');
    return fate;
  }

  /** How many of so many separate facts are appended before something comes between. */
  appendedOf(count: number): number {
    return this.strikes(this.conditions.appendParted, 'parted-appends') ? this.chance.whole(1, count - 1) : count;
  }

  /** A report on its way; false when the node hears no acknowledgement. */
  deliverReport(report: NodeReport): boolean {
    const { conditions } = this;
    if (this.strikes(conditions.reportLost, 'lost-reports')) {
      if (this.chance.happens(0.5)) this.bus.publishReport(report);
      return false;
    }
    if (this.strikes(conditions.reportLate, 'late-reports'))
      this.clock.after(this.chance.next() * 90_000, () => this.bus.publishReport(report));
    else this.bus.publishReport(report);
    if (this.strikes(conditions.reportDoubled, 'doubled-reports'))
      this.clock.after(this.chance.next() * 60_000, () => this.bus.publishReport(report));
    return true;
  }

  /** Whether something of this share happens now. Draws nothing while the share is zero. */
  protected strikes(share: number, fault?: string): boolean {
    if (share === 0 || !this.chance.happens(share)) return false;
    if (fault !== undefined) this.fire(fault);
    return true;
  }
}

export interface Participant {
  readonly name: string;
}
