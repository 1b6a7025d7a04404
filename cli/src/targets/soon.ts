/** Many objects change together, and each look at them takes them all. */
const SOON_MS = 50;

/** Calls back once, soon after one or more calls. */
export class Soon {
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(private readonly act: () => void) {}

  call(): void {
    if (this.isStopped) return;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.act();
    }, SOON_MS);
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }
}
