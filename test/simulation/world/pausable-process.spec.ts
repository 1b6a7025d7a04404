import { Clock } from './clock.js';
import { PausableProcess } from './pausable-process.js';

class Walker extends PausableProcess {
  readonly walked: string[] = [];
  protected override readonly isRollingBack = false;

  constructor(private readonly time: Clock) {
    super('walker', time);
    this.start();
  }

  walk(step: string): void {
    this.after(10, () => this.walked.push(`${step} at ${this.time.nowMs}`));
  }
}

function scene(): { readonly walker: Walker; runUntil(ms: number): void } {
  const clock = new Clock();
  const runUntil = (ms: number): void => {
    clock.after(ms - clock.nowMs, () => undefined);
    while (clock.step(ms)) continue;
  };
  return { walker: new Walker(clock), runUntil };
}

it('what comes for a paused process is handled in this order when it continues', () => {
  const { walker, runUntil } = scene();
  walker.pause(100);
  walker.walk('first');
  runUntil(50);
  walker.walk('second');
  runUntil(99);
  expect(walker.walked).toEqual([]);
  runUntil(200);
  expect(walker.walked).toEqual(['first at 100', 'second at 100']);
});

it('a process whose pause is ended early continues at once', () => {
  const { walker, runUntil } = scene();
  walker.pause(100_000);
  walker.walk('first');
  runUntil(50);
  walker.endPause();
  runUntil(60);
  expect(walker.walked).toEqual(['first at 50']);
});

it('a second pause makes the first one longer', () => {
  const { walker, runUntil } = scene();
  walker.pause(100);
  walker.walk('first');
  runUntil(50);
  walker.pause(100);
  runUntil(200);
  expect(walker.walked).toEqual(['first at 150']);
});

it('what came for a process that was killed in its pause is never handled', () => {
  const { walker, runUntil } = scene();
  walker.pause(100);
  walker.walk('first');
  runUntil(50);
  walker.kill();
  walker.start();
  runUntil(200);
  expect(walker.walked).toEqual([]);
});
