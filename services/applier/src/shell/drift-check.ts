import type { Difference, Log, Notice, StepOf } from '../core/index.js';
import type { ResourceSteps } from './resource-steps.js';

/** The drift check that runs next to everything else but a lease. */
export class DriftCheck {
  private readonly ending = new AbortController();
  private readonly running: Promise<void>;

  /** Starts it. Its result is told as a notice. */
  constructor(step: StepOf<'start-drift-check'>, resources: ResourceSteps, tell: (notice: Notice) => void, log: Log) {
    const { round } = step;
    const ended = (differences?: readonly Difference[]): void =>
      tell({ kind: 'compared', round, ...(differences === undefined ? {} : { differences }) });
    this.running = resources.checkDrift(step, this.ending.signal).then(ended, (error: Error) => {
      log.error({ error: error.message }, 'the drift check failed; trying again');
      ended();
    });
  }

  /**
   * Ends it, and the commands that it runs. A check and a change must not work on the same things at the same time, so
   * this waits for a call that cannot be ended.
   */
  end(): Promise<void> {
    this.ending.abort();
    return this.running;
  }
}
