import type { Difference, Left, Log, Notice, StepOf } from '../core/index.js';
import type { ResourceSteps } from './resource-steps.js';

/** Longer than any call that cannot be ended. A process that waits for a disk in the kernel may never end. */
const ENDED_MS = 20_000;

/** The drift check that runs next to everything else but a lease. */
export class DriftCheck {
  private readonly ending = new AbortController();
  private readonly running: Promise<void>;

  /** Starts it. Its result is told as a notice. */
  constructor(step: StepOf<'start-drift-check'>, resources: ResourceSteps, tell: (notice: Notice) => void, log: Log) {
    const { round } = step;
    const ended = (found: Pick<Notice & { readonly kind: 'compared' }, 'differences' | 'left'> = {}): void =>
      tell({ kind: 'compared', round, ...found });
    this.running = check(step, resources, this.ending.signal).then(ended, (error: Error) => {
      log.error({ error: error.message }, 'the drift check failed; trying again');
      ended();
    });
  }

  /**
   * Ends it, and the commands that it runs. A check and a change must not work on the same things at the same time, so
   * this waits for a call that cannot be ended, but not forever: all that it does is reading.
   */
  async end(): Promise<void> {
    this.ending.abort();
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([this.running, new Promise((resolve) => (timer = setTimeout(resolve, ENDED_MS)))]);
    clearTimeout(timer);
  }
}

async function check(
  step: StepOf<'start-drift-check'>,
  resources: ResourceSteps,
  ending: AbortSignal,
): Promise<{ readonly differences: readonly Difference[]; readonly left: Left | undefined }> {
  const differences = await resources.checkDrift(step, ending);
  if (step.leaving.length === 0 || ending.aborted) return { differences, left: undefined };
  // It looks once.
  const { left } = await resources.awaitOthers({ items: step.leaving, untilMs: 0 });
  return { differences, left };
}
