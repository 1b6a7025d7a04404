import type { Logger } from '#libs/runtime';
import type { Bus } from './connection.js';
import { InputLostError, type HaltedError } from './errors.js';
import { ViewsAheadError } from './leader-term.js';
import type { Ledger } from './ledger.js';
import { pause } from './signal.js';
import type { Shown } from './view-writer.js';
import { newestViews, sequenceAt } from './views-end.js';

export interface IntegrityParts {
  readonly bus: Bus;
  readonly ledger: Ledger;
  /** The stream in which `cursor` is a place. */
  readonly input: string | undefined;
  readonly cursor: () => number;
  readonly logger: Logger;
  /** What did not fit together does now. */
  readonly onFit: () => void;
}

const RECHECK_MS = 3_000;

/** Whether what is stored fits together: where it does not, nothing is decided until a person has put that right. */
export class Integrity {
  private stopped = false;
  /** What does not fit; undefined when all does. */
  mismatch: string | undefined;

  constructor(private readonly parts: IntegrityParts) {}

  stop(): void {
    this.stopped = true;
  }

  /** Notes what was found, and looks every now and then whether it still is so. Other reasons to halt are not its business. */
  take(error: HaltedError): void {
    if (error instanceof ViewsAheadError) void this.recheck(error, () => this.viewsFit(error.shown));
    if (error instanceof InputLostError) void this.recheck(error, () => this.requireInput().then(() => true));
  }

  /** What was read of the input must be in it: behind a shorter one nobody's word would ever be heard. Throws InputLostError. */
  async requireInput(): Promise<void> {
    const { bus, input, cursor } = this.parts;
    if (input === undefined) return;
    const last = (await bus.streamInfo(input)).state.last_seq;
    if (last < cursor()) throw new InputLostError(input, last, cursor());
  }

  private async recheck({ message }: HaltedError, fits: () => Promise<boolean>): Promise<void> {
    this.mismatch = message;
    this.parts.logger.error({}, `halted: ${message}`);
    while (!this.stopped && this.mismatch !== undefined) {
      await pause(RECHECK_MS);
      if (await fits().catch(() => false)) this.mismatch = undefined;
    }
    this.parts.onFit();
  }

  private async viewsFit({ bucket, subject }: Shown): Promise<boolean> {
    const { bus, ledger } = this.parts;
    const own = subject === '' ? 0 : await sequenceAt(bus, bucket, subject);
    const highest = Math.max(own, ...(await newestViews(bus)).values());
    return highest <= (await ledger.lastSequence());
  }
}
