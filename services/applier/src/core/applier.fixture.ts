import type { Config } from '#libs/contracts';
import { EMPTY, lease, MEMORY_KINDS, MemoryNode, newBus, takeReports, type MemoryBus } from '../testing/memory-node.js';
import {
  advance,
  hear,
  nextStep,
  start,
  type Hang,
  type Notice,
  type Self,
  type Settings,
  type State,
  type Step,
} from './index.js';

export const SETTINGS = {
  kinds: MEMORY_KINDS,
  emptyHash: EMPTY,
  readEveryMs: 60_000,
  driftCheckMs: 60_000,
  isGuard: false,
};
export const ABLE = ['kind:File', 'action:restart', 'action:reload', 'action:daemon-reload', 'action:reboot'];
export const SELF: Self = { labels: { role: 'edge' }, capabilities: ['kind:File'], version: '1', fresh: false };

export const file = (path: string, content: string) => ({
  kind: 'File',
  name: path.replaceAll('/', '-').slice(1),
  spec: { path, content },
});
export const probe = (name: string) => ({ kind: 'Probe', name, spec: {} });
export const hash = (letter: string): string => letter.repeat(64);

/** An applier on a machine in memory, step by step, with a clock that the test advances. */
export class Bench {
  nowMs = 1_000_000;
  boot = 'boot-1';
  boots = 1;
  /** The machine ignores requests to reboot. */
  hangs = false;
  random = 7;
  slowDriftChecks = false;
  self: Self = SELF;
  /** What a guard left for the next process. */
  hang: Hang | undefined;
  readonly steps: Step[] = [];
  readonly bus: MemoryBus = newBus();
  readonly machine = new MemoryNode('n', this.bus);
  state: State;

  constructor(private readonly settings: Settings = SETTINGS) {
    this.state = this.started();
  }

  config(letter: string, fragments: Config['fragments']): void {
    this.bus.configs.set(hash(letter), { fragments });
  }

  /** kill -9, and a new process on the same disk. */
  restart(): void {
    this.state = this.started();
  }

  /** Reboots the machine: another boot id, another clock, and services run with the current content. */
  reboot(nowMs = 500): void {
    this.boots += 1;
    this.boot = `boot-${this.boots}`;
    this.nowMs = nowMs;
    this.machine.boot();
    this.restart();
  }

  /** One step. A machine that was asked to reboot does so once its applier waits for it, unless it hangs. */
  step(): Step {
    const step = nextStep(this.state, this.nowMs);
    if (step.do === 'wait' && this.machine.rebootAsked && !this.hangs) {
      this.reboot();
      return { do: 'write-journal', journal: this.state.journal };
    }
    this.steps.push(step);
    this.state = advance(this.state, step, this.machine.perform(step), this.nowMs);
    if (step.do === 'start-probes')
      this.state = hear(
        this.state,
        { kind: 'probed', round: step.round, results: this.machine.resultsOf(step.probes) },
        this.nowMs,
      );
    // A spec that sets `slowDriftChecks` says itself when the check ends.
    if (step.do === 'start-drift-check' && !this.slowDriftChecks)
      this.hear({
        kind: 'compared',
        round: step.round,
        differences: this.machine.drift(step),
        ...(step.leaving.length === 0 || this.machine.isGone
          ? {}
          : { left: this.machine.leftToOthers(step.leaving).left }),
      });
    return step;
  }

  /** Steps until there is nothing to do now, and processes reports like a scheduler. */
  settle(limit = 500): void {
    for (let i = 0; i < limit; i++) {
      if (this.step().do === 'wait') return;
      this.takeReports();
    }
    throw new Error(
      `still busy after ${limit} steps: ${this.steps
        .slice(-12)
        .map((step) => step.do)
        .join(' ')}`,
    );
  }

  hear(notice: Notice): void {
    this.state = hear(this.state, notice, this.nowMs);
  }

  /** Advances the time, step by step. */
  pass(ms: number): void {
    const endMs = this.nowMs + ms;
    for (let i = 0; i < 10_000 && this.nowMs < endMs; i++) {
      const step = this.step();
      this.takeReports();
      if (step.do === 'wait') this.nowMs = Math.max(this.nowMs + 1, Math.min(endMs, step.untilMs));
    }
  }

  /** Processes the reports like a scheduler, and pushes the new status. */
  takeReports(): void {
    const { status: before, up } = this.bus;
    takeReports(this.bus);
    const { status } = this.bus;
    if (up && status !== undefined && status !== before)
      this.state = hear(this.state, { kind: 'status', status }, this.nowMs);
  }

  grant(part: Parameters<typeof lease>[0]): void {
    const { lease: before, status } = this.bus;
    this.bus.lease = lease({ ledger: Math.max(before?.ledger ?? 0, status?.ledger ?? 0) + 1, ...part });
    this.state = { ...this.state, memory: { ...this.state.memory, leaseDueMs: this.nowMs } };
  }

  get last() {
    return this.bus.reports.at(-1);
  }

  private started(): State {
    this.random = (this.random * 48_271) % 4_294_967_291;
    return start(this.settings, this.self, this.machine.readJournal(), {
      bootId: this.boot,
      nowMs: this.nowMs,
      random: this.random,
      hang: this.hang,
    });
  }
}
