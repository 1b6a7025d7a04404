import { Bench, file, hash } from './applier.fixture.js';

const [A, B] = [hash('a'), hash('b')];
const TOO_LATE = 'nothing was started: 60000 ms is not enough time to apply and to roll back';

describe('the config of a lease', () => {
  let bench: Bench;
  beforeEach(() => {
    bench = new Bench();
    bench.config('a', [file('/a', 'old')]);
    bench.settle();
    bench.grant({ hash: A });
    bench.settle();
    bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
  });
  const trouble = (): string | undefined => bench.state.memory.preparation?.trouble;

  it('is waited for, and is the reason if it does not arrive', () => {
    bench.pass(40_000);
    expect(bench.last).toMatchObject({ lease: 'l2', verdict: 'failed', restored: true, hash: A });
    expect(bench.last?.reason).toBe('nothing was started: no such config');
  });

  it('is not blamed for the lack of time once it has arrived', () => {
    bench.pass(5_000);
    expect(trouble()).toBe('no such config');
    bench.config('b', [file('/a', 'new')]);
    for (let i = 0; i < 100 && trouble() !== ''; i++) {
      const step = bench.step();
      if (step.do === 'wait') bench.nowMs = step.untilMs;
    }
    expect([trouble(), bench.state.memory.configs.has(B)]).toEqual(['', true]);
    // What follows takes too long, for whatever reason.
    bench.nowMs += 30_000;
    bench.settle();
    expect(bench.last).toMatchObject({ lease: 'l2', verdict: 'failed', restored: true, reason: TOO_LATE });
  });

  it('is applied if it arrives in time', () => {
    bench.pass(5_000);
    bench.config('b', [file('/a', 'new')]);
    bench.pass(15_000);
    expect(bench.last).toMatchObject({ lease: 'l2', verdict: 'applied', hash: B });
  });
});
