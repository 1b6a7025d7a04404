import type { Action, ConfigEntry, NodeReport } from '#libs/contracts';
import type { Answer } from '#libs/engine';
import type { Journal } from '../../../services/applier/src/core/index.js';
import { SimBus } from './bus.js';
import { Chance } from './chance.js';
import { Clock } from './clock.js';

/** The conditions on a good day. Faults make some of them worse. */
export const NORMAL_CONDITIONS = {
  /** Share of reports that are lost, duplicated or late on their way to the server. */
  reportLost: 0,
  reportDoubled: 0,
  reportLate: 0,
  /** Share of heartbeats that are lost. */
  heartbeatLost: 0,
  /** Share of appends whose answer is lost, whether or not they happened. */
  answerLost: 0,
  appendLost: 0,
  appendParted: 0,
  pushLost: 0,
  /** The delay of pushes. A push shows what was written then, not the current value. */
  pushLateMs: 0,
  /** How many facts a plain read may lag behind. */
  lag: 0,
  /** The delay of writes to views. */
  viewLateMs: 0,
  delayMs: 3,
  /** How long a step takes for a copy that does not lead yet. */
  takeOverMs: 0,
  /** A snapshot is stored after this many facts. 0: no snapshots. */
  snapshotFacts: 0,
  /** How long a request about the journal of a target is on its way, and its answer. */
  journalLateMs: 0,
  /** Share of writes of such journals that are lost, or whose answer is. */
  journalLost: 0,
  /** Share of calls to targets that take as long as they may, or longer. */
  callLate: 0,
};
export type Conditions = Record<keyof typeof NORMAL_CONDITIONS, number>;

/** Bugs that a mutant adds outside the cores. */
export interface PlantedFaults {
  /** Nodes do not restore what they replaced. */
  readonly keepsReplaced?: boolean;
  /** Nodes say that they have undone commands, and have not. */
  readonly keepsCommands?: boolean;
  /** Nodes run every command, without its check. */
  readonly runsUnneeded?: boolean;
  /** Nodes report actions that they have not taken. */
  readonly onlySaysActed?: boolean;
  /** Nodes compute no sha256 of the objects that they download. */
  readonly takesChangedObjects?: boolean;
  /** After a change, nodes count every probe as passed. */
  readonly passesProbes?: boolean;
  /** Appliers take a target that does not answer for one that has failed. */
  readonly blamesUnreachable?: boolean;
  /** The guard does not watch an applier that hangs. */
  readonly guardSleeps?: boolean;
  /** Nodes restart their machine instead of a failing action, no matter what their lease allows. */
  readonly restartsUnasked?: boolean;
  /** Configs that nodes are to get do not count as used. */
  readonly forgetsNames?: boolean;
  /** A copy that takes over does not check the existing views. */
  readonly trustsViews?: boolean;
  /** The ledger is trimmed to its end, regardless of the snapshots. */
  readonly trimsAll?: boolean;
  /** Writes to Nodes ignore the version that was read. */
  readonly writesBlindly?: boolean;
  /** Existing cordons are marked as if Sluice had set them, without checking who did. */
  readonly forgetsFound?: boolean;
  /** Pods whose eviction is refused are deleted. */
  readonly deletesRefused?: boolean;
  /** No pods are found on nodes that are drained. */
  readonly overlooksPods?: boolean;
  /** The drain service does not see that other drains need an object paused. */
  readonly overlooksPausers?: boolean;
  /** Objects count as paused by Sluice, without checking who did it. */
  readonly forgetsPauser?: boolean;
  /**
   * The inventory receives no changes of Nodes, and does not notice that its watch broke, after which it would list
   * them again.
   */
  readonly overlooksNodes?: boolean;
  /** Copies of the applier of a target write to it without asking whether they still own it. */
  readonly fencesNothing?: boolean;
  /** Copies take a target over without waiting for the deadline of the lease that another one works on. */
  readonly takesOverAtOnce?: boolean;
  /** Copies do not wait for late calls of the previous owner. */
  readonly expectsNoLateCalls?: boolean;
  /** Copies wait for much longer than the deadline. */
  readonly waitsTooLong?: boolean;
  /** Writes of the journals of targets ignore the revision that was read. */
  readonly overwritesJournals?: boolean;
  /** Nodes start whatever lease their server shows, no matter how old that is. */
  readonly trustsAnyServer?: boolean;
  /** The inventory receives heartbeats but no reports. */
  readonly overlooksReports?: boolean;
}

/** The world as nodes, copies of services and the cluster see it. */
export abstract class Surroundings {
  /** All random numbers except those of a fault, a node or the cluster. */
  readonly chance: Chance;
  readonly clock = new Clock();
  readonly bus = new SimBus();
  readonly conditions: Conditions = { ...NORMAL_CONDITIONS };
  /** How often each fault took effect. */
  readonly fired = new Map<string, number>();
  readonly lines: string[] = [];

  constructor(
    readonly seed: number,
    private readonly keepTrace: boolean,
    readonly mutant: PlantedFaults | undefined,
  ) {
    this.chance = new Chance(seed, 'world');
  }

  /** Sends a heartbeat. */
  abstract alive(node: string): void;
  /** The boot id of the machine with that name. Undefined if there is none. */
  abstract bootIdOf(node: string): string | undefined;
  /** Sends a request to a service, like `nats req`. */
  abstract ask(service: string, request: object, then?: (answer: Answer | undefined) => void): void;
  abstract onJournal(node: Participant, journal: Journal): void;
  abstract onAct(node: Participant, action: Action): void;
  abstract onWrite(node: Participant): void;
  abstract onCommand(node: Participant, entry: ConfigEntry, what: 'apply' | 'undo'): void;
  /** The journal of a target was written. */
  abstract onOwned(node: Participant, write: JournalWrite): void;
  /** A write of this owner has arrived at a target. */
  abstract onTargetWrite(node: Participant, owner: string): void;
  /** Some seconds have passed for a target. */
  abstract onTarget(node: Participant): void;
  /** Its applier hangs in the middle of a change. */
  abstract onGone(node: Participant): void;
  /** A copy stops deciding until a person fixes something. */
  abstract onHalt(copy: Participant, reason: string): void;

  /** The line is only computed if somebody reads it. */
  trace(line: () => string): void {
    if (this.keepTrace) this.lines.push(`${this.clock.nowMs.toFixed(3).padStart(14)} ${line()}`);
  }

  /** Records that a fault took effect. */
  fire(name: string): void {
    this.fired.set(name, (this.fired.get(name) ?? 0) + 1);
  }

  delayMs(): number {
    return this.chance.next() * this.conditions.delayMs;
  }

  lag(): number {
    return this.conditions.lag === 0 ? 0 : this.chance.integer(0, this.conditions.lag);
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

  /** How many of this many separate facts are appended before something else is. */
  appendedOf(count: number): number {
    return this.strikes(this.conditions.appendParted, 'parted-appends') ? this.chance.integer(1, count - 1) : count;
  }

  /** Sends a report. Returns false if the node gets no acknowledgement. */
  deliverReport(report: NodeReport): boolean {
    const { conditions } = this;
    if (this.strikes(conditions.reportLost, 'lost-reports')) {
      if (this.chance.flip(0.5)) this.bus.publishReport(report, this.clock.nowMs);
      return false;
    }
    if (this.strikes(conditions.reportLate, 'late-reports'))
      this.clock.after(this.chance.next() * 90_000, () => this.bus.publishReport(report, this.clock.nowMs));
    else this.bus.publishReport(report, this.clock.nowMs);
    if (this.strikes(conditions.reportDoubled, 'doubled-reports'))
      this.clock.after(this.chance.next() * 60_000, () => this.bus.publishReport(report, this.clock.nowMs));
    return true;
  }

  /** Whether something with this probability happens now. Uses no random number if the probability is zero. */
  protected strikes(share: number, fault?: string): boolean {
    if (share === 0 || !this.chance.flip(share)) return false;
    if (fault !== undefined) this.fire(fault);
    return true;
  }
}

export interface Participant {
  readonly name: string;
}

/** How a copy of the applier of a target wrote its journal. */
export interface JournalWrite {
  /** The copy that wrote. */
  readonly by: string;
  /** It has just taken the target over. */
  readonly isClaim: boolean;
  /** It gives the target up. */
  readonly isGivenUp: boolean;
  readonly journal: Journal;
}
