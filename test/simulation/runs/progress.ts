import type { Tally } from './crew.js';

/** How often to print a line if the output is not a terminal. */
const LINE_EVERY_MS = 15_000;
const TERMINAL_EVERY_MS = 200;

/** Shows the progress of a long run: one line that changes on a terminal, and a line now and then elsewhere. */
export class Progress {
  private readonly startedMs = performance.now();
  private shownMs = this.startedMs;

  constructor(
    private readonly seeds: number,
    private readonly out: { readonly isTTY?: boolean; write(text: string): unknown },
  ) {}

  show(tally: Tally): void {
    const nowMs = performance.now();
    const terminal = this.out.isTTY === true;
    if (nowMs - this.shownMs < (terminal ? TERMINAL_EVERY_MS : LINE_EVERY_MS)) return;
    this.shownMs = nowMs;
    const perSecond = this.perSecond(tally);
    const leftS = Math.ceil((this.seeds - tally.seeds) / Math.max(perSecond, 0.001));
    const line = `${tally.seeds} of ${this.seeds} seeds, ${perSecond.toFixed(1)} seeds/s, ${tally.failed.length} failed, ${timeOf(leftS)} left`;
    this.out.write(terminal ? `\r\u001b[2K${line}` : `${line}\n`);
  }

  end(tally: Tally): void {
    const seconds = (performance.now() - this.startedMs) / 1_000;
    if (this.out.isTTY === true) this.out.write('\r\u001b[2K');
    this.out.write(
      `${tally.seeds} seeds in ${timeOf(Math.ceil(seconds))}, ${this.perSecond(tally).toFixed(1)} seeds/s, ${Math.round(tally.facts / Math.max(1, tally.seeds))} facts each\n`,
    );
  }

  private perSecond(tally: Tally): number {
    return (tally.seeds * 1_000) / Math.max(1, performance.now() - this.startedMs);
  }
}

const timeOf = (seconds: number): string => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
