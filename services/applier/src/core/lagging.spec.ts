import type { LeaseView, StatusView } from '#libs/contracts';
import { Bench, file, hash } from './applier.fixture.js';

const A = hash('a');
const B = hash('b');

/** An applier that has config A, and for which B is ready. */
function scene(): Bench {
  const bench = new Bench();
  bench.config('a', [file('/motd', 'a')]);
  bench.config('b', [file('/motd', 'b')]);
  bench.settle();
  bench.grant({ lease: 'l1', hash: A });
  bench.settle();
  return bench;
}

const content = (bench: Bench): string | undefined => bench.machine.files.get('/motd');

/** The applier acts for so long, and nobody processes what it reports. */
function unheard(bench: Bench, ms: number): void {
  const endMs = bench.nowMs + ms;
  while (bench.nowMs < endMs) {
    const step = bench.step();
    if (step.do === 'wait') bench.nowMs = Math.max(bench.nowMs + 1, Math.min(endMs, step.untilMs));
  }
}

describe('an applier whose server may be cut off from the others', () => {
  it('starts no lease after its start before the status shows its announcement', () => {
    const bench = scene();
    bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
    bench.restart();
    unheard(bench, 300_000);
    expect(content(bench)).toBe('a');
    bench.takeReports();
    bench.settle();
    expect(content(bench)).toBe('b');
  });

  it('announces itself again after it has connected to another server, and starts no lease before that is shown', () => {
    const bench = scene();
    const { length } = bench.bus.reports;
    bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
    bench.hear({ kind: 'connected', mayLag: true });
    unheard(bench, 300_000);
    expect(content(bench)).toBe('a');
    expect(new Set(bench.bus.reports.slice(length).map(({ kind }) => kind))).toEqual(new Set(['announced']));
    bench.takeReports();
    bench.settle();
    expect(content(bench)).toBe('b');
  });

  it('does not announce itself again if the same server answers', () => {
    const bench = scene();
    const { length } = bench.bus.reports;
    bench.hear({ kind: 'connected', mayLag: false });
    bench.settle();
    expect(bench.bus.reports).toHaveLength(length);
  });
});

describe('a lease that is older than the newest one', () => {
  const newest = (bench: Bench, leaseLedger: number): void => {
    bench.bus.status = { ...(bench.bus.status as StatusView), ledger: leaseLedger, leaseLedger };
    bench.hear({ kind: 'status', status: bench.bus.status });
  };

  it('is read again, and not started, while the status knows a newer one', () => {
    const bench = scene();
    newest(bench, 20);
    bench.grant({ lease: 'l2', hash: B, from: A, ledger: 19 });
    const reads = (): number => bench.steps.filter((step) => step.do === 'read-lease').length;
    const before = reads();
    bench.pass(60_000);
    expect(content(bench)).toBe('a');
    // Often at first, and then every few seconds.
    expect(reads() - before).toBeGreaterThan(12);
    expect(reads() - before).toBeLessThan(30);
    bench.grant({ lease: 'l2', hash: B, from: A, ledger: 20 });
    bench.settle();
    expect(content(bench)).toBe('b');
  });

  it('is started after a while if only a push knows a newer one, because anybody can push', () => {
    const bench = scene();
    bench.grant({ lease: 'l2', hash: B, from: A, ledger: 9 });
    bench.hear({ kind: 'lease', lease: { ...(bench.bus.lease as LeaseView), ledger: 1_000_000 } });
    bench.pass(2_000);
    expect(content(bench)).toBe('a');
    bench.pass(20_000);
    expect(content(bench)).toBe('b');
  });
});
