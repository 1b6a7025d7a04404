import { isMissingStream } from '#libs/nats/lean';
import { assertNever } from '#libs/engine';
import type { Config } from '#libs/contracts';
import {
  UNREACHABLE,
  type ApplierRun,
  type Journal,
  type Log,
  type Notice,
  type Outcome,
  type Outcomes,
  type Step,
  type StepOf,
} from '../core/index.js';
import type { BusPort } from './bus-port.js';
import { DriftCheck } from './drift-check.js';
import type { Clock, Storage } from './ports.js';
import { parseConfig } from './state/config-text.js';
import { refused } from './resource-steps.js';
import type { Site } from './site.js';

/** How long the services of a new installation may take to create what appliers read. */
const NEW_MS = 60_000;

/** The time for a step of a rollback that sets no other: one step may read back thousands of files. */
const LONGEST_STEP_MS = 300_000;

/** Carries out the steps of one applier. */
export class Performer {
  /** Ends the current `wait` or `prefetch`. */
  wake = (): void => undefined;
  /** Passes a notice to the applier. */
  private tell: (notice: Notice) => void = () => undefined;
  private driftCheck: DriftCheck | undefined;
  /** When it first found nothing to read. 0 after it has read something. */
  private newSinceMs: number | undefined;
  /** The last logged error of each problem that may last. */
  private readonly warned = new Map<string, string>();

  constructor(
    private readonly storage: Storage,
    private readonly bus: BusPort,
    private readonly site: Site,
    private readonly clock: Clock,
    private readonly log: Log,
  ) {}

  /** Carries out one step after another until the applier is stopped. */
  async run(applier: ApplierRun): Promise<void> {
    this.tell = (notice) => applier.hear(notice);
    const steps = applier.steps();
    for (let next = steps.next(); next.done !== true;) {
      const step = next.value;
      this.tellGuard(applier, step);
      const { sound, work } = applier.journal;
      this.site.resources.isRollingBack = !sound || work?.phase === 'rolling-back';
      if (applier.lease !== undefined || !sound) await this.endDriftCheck();
      const outcome = step.do === 'wait' ? this.wait(step.untilMs) : this.perform(step);
      next = steps.next(await outcome.catch((error: Error) => error));
    }
    await this.endDriftCheck();
    // Unfinished work stays guarded. If no applier continues in time, the guard rolls it back.
    if (applier.journal.work === undefined) this.site.guard.release();
  }

  /** Until its deadline, the change as a whole has a time limit. In a rollback, only each single step has one. */
  private tellGuard({ lease, journal: { work } }: ApplierRun, step: Step): void {
    const { guard } = this.site;
    const nowMs = this.clock();
    if (lease === undefined) return guard.release();
    const fed = { step: step.do, fault: 'fault' in step ? step.fault : 'node' } as const;
    if (work === undefined || (work.phase !== 'rolling-back' && nowMs < work.rollBackAtMs)) return guard.feed(fed);
    guard.feed(fed, 'untilMs' in step ? step.untilMs : nowMs + LONGEST_STEP_MS);
  }

  private wait(untilMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.wake(), Math.max(1, untilMs - this.clock()));
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Returns the outcome of the step. */
  async perform(step: Exclude<Step, { do: 'wait' }>): Promise<Outcome | typeof UNREACHABLE> {
    switch (step.do) {
      case 'write-journal':
        return refused('', () => this.writeJournal(step.journal));
      case 'guard':
        return refused('guard', () => this.site.guard.set(step.lease, step.atMs, step.applyMs));
      case 'load-config':
        return this.load(step.hash);
      case 'tidy':
        return this.tidy(step);
      case 'fetch-object':
        return this.site.contents.fetch(step.entry, () => this.clock() >= step.untilMs);
      case 'prefetch':
        return this.prefetch(step);
      case 'check':
        return this.check(step);
      case 'read-before':
        return this.site.resources.readBefore(step);
      case 'snapshot':
        return this.site.resources.snapshot(step);
      case 'run-probes':
        return this.site.runProbes(step.probes, step.untilMs);
      case 'start-probes':
        return this.startProbes(step);
      case 'start-drift-check':
        return this.startDriftCheck(step);
      case 'check-command':
        return this.site.resources.checkCommand(step);
      case 'apply':
        return this.site.resources.apply(step);
      case 'undo':
        return this.site.resources.undo(step);
      case 'restore':
        return this.site.resources.restore(step);
      case 'act':
        return refused('', () => this.site.act(step.action, step.items, Math.max(0, step.untilMs - this.clock())));
      case 'read-unit':
        return refused('', () => this.site.readUnit(step.unit, step.untilMs - this.clock()));
      case 'reset-failed':
        return this.resetFailed(step.units);
      case 'settle':
        return this.site.settled(Math.max(0, step.untilMs - this.clock()));
      case 'await-ready':
        return this.site.resources.awaitReady(step);
      case 'await-others':
        return this.site.resources.awaitOthers(step);
      case 'compare':
        return this.site.resources.compare(step);
      case 'fetch-config':
      case 'read-status':
      case 'read-lease':
      case 'report':
        return this.ask(step);
      default:
        return assertNever(step);
    }
  }

  private async writeJournal(journal: Journal): Promise<void> {
    await this.storage.writeJournal(journal);
    if (journal.work === undefined) this.site.guard.release();
  }

  /** An unusable config counts as missing, and is fetched again. */
  private async load(hash: string): Promise<Config | undefined> {
    const config = await this.storage.readConfig(hash);
    if (typeof config !== 'string') return config;
    this.warnOnce('load-config', config, 'a config in the state folder cannot be used; fetching it again');
    return undefined;
  }

  private async tidy({ configs, journal }: StepOf<'tidy'>): Promise<void> {
    const troubles = await this.storage.tidy(configs, journal);
    this.warnOnce('tidy', troubles.join('; '), 'the state folder cannot be cleaned up; nothing depends on that');
  }

  /** Logs a lasting problem only once. */
  private warnOnce(about: string, error: string, message: string): void {
    if (this.warned.get(about) === error) return;
    this.warned.set(about, error);
    if (error !== '') this.log.warn({ error }, message);
  }

  private async ask(
    step: StepOf<'fetch-config' | 'read-status' | 'read-lease' | 'report'>,
  ): Promise<Outcome | typeof UNREACHABLE> {
    try {
      const answer = await this.askBus(step);
      this.newSinceMs = 0;
      return answer;
    } catch (error) {
      if (!this.isNew(error))
        this.log.warn({ step: step.do, error: (error as Error).message }, 'NATS cannot be used; trying again');
      return UNREACHABLE;
    }
  }

  private askBus(step: StepOf<'fetch-config' | 'read-status' | 'read-lease' | 'report'>): Promise<Outcome> {
    switch (step.do) {
      case 'fetch-config':
        return this.fetch(step);
      case 'read-status':
        return this.bus.call('status', (bus) => bus.status());
      case 'read-lease':
        return this.bus.call('lease', (bus) => bus.lease());
      case 'report':
        return this.bus.call('report', (bus) => bus.report({ ...step.report, at: new Date().toISOString() }));
    }
  }

  /**
   * Whether there is nothing to read because nobody has created it yet. That is logged once, and is not an error unless
   * it lasts.
   */
  private isNew(error: unknown): boolean {
    if (!isMissingStream(error) || this.newSinceMs === 0) return false;
    if (this.newSinceMs === undefined)
      this.log.info({}, 'NATS has no streams yet; waiting for the services to create them');
    this.newSinceMs ??= this.clock();
    return this.clock() - this.newSinceMs < NEW_MS;
  }

  private async fetch({ hash, mustKeep }: StepOf<'fetch-config'>): Promise<Outcomes['fetch-config']> {
    // The configs of a node that was removed are deleted after a week.
    const text = (await this.bus.call('config', (bus) => bus.config(hash))) ?? (await this.storage.keptConfig?.(hash));
    if (text === undefined) return { fault: 'node', reason: `the bucket configs has no config ${hash} for this node` };
    const config = parseConfig(text, hash);
    if (typeof config === 'string') return { fault: 'node', reason: config };
    try {
      await this.storage.keepConfig(hash, text);
    } catch (error) {
      const reason = `the config cannot be saved: ${(error as Error).message}`;
      if (mustKeep) return { fault: 'node', reason };
      this.warnOnce('keep-config', reason, 'a config cannot be saved in the state folder; continuing from memory');
    }
    return config;
  }

  private async prefetch({ hash, untilMs }: StepOf<'prefetch'>): Promise<Outcomes['prefetch'] | typeof UNREACHABLE> {
    let isWoken = false;
    this.wake = () => void (isWoken = true);
    const fetching = { do: 'fetch-config', hash, mustKeep: true } as const;
    const config =
      (await this.load(hash)) ?? ((await this.ask(fetching)) as Outcomes['fetch-config'] | typeof UNREACHABLE);
    if (config === UNREACHABLE) return UNREACHABLE;
    if ('fault' in config) return { isOver: false };
    return this.site.contents.fetchAll(config, () => isWoken || this.clock() >= untilMs);
  }

  private async check(step: StepOf<'check'>): Promise<Outcomes['check']> {
    await this.site.contents.learnSizes(step.entries);
    const refusals = await this.site.refusals(step.actions, step.config, () => step.untilMs - this.clock());
    const result = await this.site.resources.check(step);
    const idleUnits = await this.site.idleUnits(step.actions, step.entries, () => step.untilMs - this.clock());
    return { ...result, idleUnits, refusals: [...refusals, ...result.refusals] };
  }

  private async resetFailed(units: readonly string[]): Promise<void> {
    const refusal = await refused('', () => this.site.resetFailed(units));
    this.warnOnce(
      'reset-failed',
      refusal?.reason ?? '',
      'systemd still shows units as failed; nothing depends on that',
    );
  }

  /** Nothing waits for these probes. They may use the time that they specify. */
  private startProbes({ probes, round }: StepOf<'start-probes'>): Promise<void> {
    void this.site.runProbes(probes, Infinity).then((results) => this.tell({ kind: 'probed', round, results }));
    return Promise.resolve();
  }

  private startDriftCheck(step: StepOf<'start-drift-check'>): Promise<void> {
    this.driftCheck = new DriftCheck(step, this.site.resources, this.tell, this.log);
    return Promise.resolve();
  }

  private async endDriftCheck(): Promise<void> {
    await this.driftCheck?.end();
    this.driftCheck = undefined;
  }
}
