import type { Action, NewFact } from '#libs/contracts';
import { migrated } from '#libs/engine';
import { factOf, LedgerCopy, linesOf, MemoryLedger } from '#libs/testing';
import { drainCore, noteProgress, type Block, type Input, type Sight, type State, type Strategy } from './index.js';

const DRAIN: readonly Action[] = [{ kind: 'drain' }];

class Drain extends LedgerCopy<State, Input> {
  constructor(strategy: Strategy = 'external', ledger = new MemoryLedger()) {
    super(drainCore(strategy), ledger);
  }
  granted(lease: string, phase: 'draining' | 'applying' = 'draining'): readonly NewFact[] {
    return this.given(factOf('node.lease.granted', { ...of(lease), kind: 'forward', phase, actions: DRAIN })).when();
  }
  reportsDrained(lease: string, evicted = 3): readonly NewFact[] {
    return this.when({ type: 'request', request: { op: 'drained', node: 'n0', lease, evicted, by: 'drainer' } });
  }
}
const of = (lease: string) => ({ node: 'n0', pool: 'edge', change: 'c1', lease });
const settled = (lease: string) => factOf('node.lease.settled', { ...of(lease), kind: 'forward', because: 'applied' });

describe('without a drainer', () => {
  it('drains and uncordons a node at once, and names its lease', () => {
    const d = new Drain('none');
    expect(linesOf(d.granted('l1'), 'node', 'pool', 'lease', 'by')).toEqual(['node.drained n0 edge l1 none']);
    expect(d.when()).toEqual([]);
    expect(linesOf(d.given(settled('l1'), factOf('node.lease.uncordoning', of('l1'))).when(), 'lease')).toEqual([
      'node.uncordoned l1',
    ]);
    expect(d.when()).toEqual([]);
  });

  it('ignores a lease that needs no drain', () => {
    expect(new Drain('none').granted('l1', 'applying')).toEqual([]);
  });
});

describe('with an external drainer', () => {
  it('records a drain when the drainer reports it, with its duration', () => {
    const d = new Drain();
    expect(d.granted('l1')).toEqual([]);
    expect(d.view('drains', 'n0')).toMatchObject({ state: 'draining', lease: 'l1', strategy: 'external' });
    d.nowMs += 5_000;
    expect(linesOf(d.reportsDrained('l1'), 'lease', 'durationMs', 'evicted', 'by')).toEqual([
      'node.drained l1 5000 3 drainer',
    ]);
    expect(d.view('drains', 'n0').state).toBe('drained');
  });

  it('processes a repeated answer once', () => {
    const d = new Drain();
    d.granted('l1');
    d.reportsDrained('l1');
    expect(d.reportsDrained('l1')).toEqual([]);
    expect(d.answers).toEqual([{ ok: true, body: { node: 'n0', lease: 'l1' } }]);
  });

  it('relates an answer without a lease to the lease that is draining', () => {
    const d = new Drain();
    d.granted('l1');
    expect(linesOf(d.reportsDrained(''), 'lease')).toEqual(['node.drained l1']);
  });

  it('refuses an answer for an earlier lease', () => {
    const d = new Drain();
    d.granted('l1');
    d.given(settled('l1'), factOf('node.lease.uncordoning', of('l1'))).when();
    d.given(factOf('node.lease.released', { ...of('l1'), because: 'failed' }));
    d.granted('l2');
    expect(d.reportsDrained('l1')).toEqual([]);
    expect(d.answers).toMatchObject([{ ok: false, code: 'conflict' }]);
  });

  it('refuses an answer that arrives after the lease was cancelled', () => {
    const d = new Drain();
    d.granted('l1');
    d.given(
      factOf('node.lease.settled', { ...of('l1'), kind: 'forward', because: 'cancelled' }),
      factOf('node.lease.uncordoning', of('l1')),
    );
    d.when();
    expect(d.reportsDrained('l1')).toEqual([]);
    expect(d.answers).toMatchObject([{ ok: false, code: 'conflict' }]);
  });

  it('refuses an answer for a node without a drain', () => {
    const d = new Drain();
    d.reportsDrained('l1');
    expect(d.answers).toMatchObject([{ ok: false, code: 'not-found' }]);
  });

  it('ignores facts about another lease', () => {
    const d = new Drain();
    d.granted('l2');
    expect(d.given(factOf('node.lease.uncordoning', of('l1')), factOf('node.drained', of('l1'))).when()).toEqual([]);
    expect(d.view('drains', 'n0').state).toBe('draining');
  });
});

it('a copy that starts does the remaining work, and nothing twice', () => {
  const first = new Drain('none');
  first.given(factOf('node.lease.granted', { ...of('l1'), kind: 'forward', phase: 'draining', actions: DRAIN }));
  const second = new Drain('none', first.ledger).read();
  const late = first.about();
  second.when();
  expect(first.ledger.append(late.facts, first.folded)).toBe(false);
  expect(first.when()).toEqual([]);
  expect(linesOf(first.ledger.facts)).toEqual(['node.lease.granted', 'node.drained']);
});

describe('with Kubernetes', () => {
  const sees = (d: Drain, sight: object, lease = 'l1'): readonly NewFact[] =>
    d.when({ type: 'sight', sight: { node: 'n0', lease, ...sight } as Sight });
  const block: Block = {
    reason: 'the budget default/web allows 0 evictions',
    budget: { name: 'default/web', allowed: 0 },
    pods: ['default/web-1'],
    since: '2026-01-01T00:00:00.000Z',
  };
  const blocked = { what: 'blocked', block };
  const started = (): Drain => {
    const d = new Drain('kubernetes');
    expect(d.granted('l1')).toEqual([]);
    return d;
  };

  it('records that a node was cordoned, drained and uncordoned, each once', () => {
    const d = started();
    expect(linesOf(sees(d, { what: 'cordoned', pods: 2 }), 'lease')).toEqual(['node.cordoned l1']);
    expect(sees(d, { what: 'cordoned', pods: 2 })).toEqual([]);
    expect(d.state.drains.get('n0')).toMatchObject({ cordoned: true, pods: 2 });
    d.nowMs += 7_000;
    expect(linesOf(sees(d, { what: 'drained', evicted: 4, amended: 0 }), 'durationMs', 'evicted', 'by')).toEqual([
      'node.drained 7000 4 kubernetes',
    ]);
    expect(sees(d, { what: 'drained', evicted: 4, amended: 0 })).toEqual([]);
    expect(d.given(settled('l1'), factOf('node.lease.uncordoning', of('l1'))).when()).toEqual([]);
    expect(linesOf(sees(d, { what: 'uncordoned' }), 'lease')).toEqual(['node.uncordoned l1']);
    expect(sees(d, { what: 'uncordoned' })).toEqual([]);
  });

  it('records a block once per budget, and again if another budget blocks', () => {
    const d = started();
    expect(linesOf(sees(d, blocked), 'budget', 'allowed', 'pods')).toEqual([
      'node.drain.blocked default/web 0 ["default/web-1"]',
    ]);
    expect(sees(d, { ...blocked, block: { ...block, reason: 'in other words', pods: ['default/web-2'] } })).toEqual([]);
    expect(
      linesOf(sees(d, { ...blocked, block: { ...block, budget: undefined, reason: 'a lone pod' } }), 'reason'),
    ).toEqual(['node.drain.blocked a lone pod']);
  });

  it('ignores observations for another lease, or that are too late', () => {
    const d = started();
    expect(sees(d, { what: 'drained', evicted: 0, amended: 0 }, 'l0')).toEqual([]);
    expect(sees(d, { what: 'uncordoned' })).toEqual([]);
    d.given(
      factOf('node.lease.settled', { ...of('l1'), kind: 'forward', because: 'cancelled' }),
      factOf('node.lease.uncordoning', of('l1')),
    );
    for (const sight of [
      { what: 'cordoned', pods: 2 },
      blocked,
      { what: 'drained', evicted: 1, amended: 0 },
      { what: 'stopped', outcome: 'failed', reason: 'late', amended: 0 },
    ])
      expect(sees(d, sight)).toEqual([]);
  });

  it('never completes a drain that was stopped', () => {
    const d = started();
    expect(
      linesOf(sees(d, { what: 'stopped', outcome: 'deferred', reason: 'too slow', amended: 0 }), 'outcome', 'reason'),
    ).toEqual(['node.drain.stopped deferred too slow']);
    expect(d.view('drains', 'n0').state).toBe('stopped');
    expect(sees(d, { what: 'drained', evicted: 1, amended: 0 })).toEqual([]);
    expect(d.reportsDrained('l1')).toEqual([]);
    expect(d.answers).toMatchObject([{ ok: false, code: 'conflict' }]);
  });

  it('takes the drain settings of the pool, the time and the reboot from the lease', () => {
    const d = new Drain('kubernetes');
    d.given(
      factOf('node.lease.granted', {
        ...of('l1'),
        kind: 'forward',
        phase: 'draining',
        actions: [...DRAIN, { kind: 'reboot' }],
        drainMs: 90_000,
        drain: { onTimeout: 'defer' },
      }),
    );
    expect(d.state.drains.get('n0')).toMatchObject({ how: { onTimeout: 'defer' }, drainMs: 90_000, reboots: true });
  });

  const amended = (lease: string, more: object = {}) =>
    factOf('node.lease.amended', { ...of(lease), drainMs: 90_000, drain: { emptyDir: 'evict' }, ...more });

  it('applies amended drain settings during the drain, and restarts its time', () => {
    const d = started();
    d.nowMs += 60_000;
    d.given(amended('l1')).when();
    expect(d.state.drains.get('n0')).toMatchObject({
      how: { emptyDir: 'evict' },
      drainMs: 90_000,
      termsMs: d.nowMs,
      amended: 1,
    });
    expect(d.restarted().drains.get('n0')).toMatchObject({ how: { emptyDir: 'evict' }, drainMs: 90_000, amended: 1 });
    expect(d.given(amended('l1', { drain: undefined })).state.drains.get('n0')).toMatchObject({ how: {}, amended: 2 });
    d.nowMs += 1_000;
    expect(sees(d, { what: 'drained', evicted: 4, amended: 1 })).toEqual([]);
    expect(linesOf(sees(d, { what: 'drained', evicted: 4, amended: 2 }), 'durationMs')).toEqual(['node.drained 61000']);
  });

  it('ignores amended drain settings after the drain, or of another lease', () => {
    const d = started();
    d.given(amended('l0'));
    expect(d.state.drains.get('n0')).toMatchObject({ how: {}, amended: 0 });
    sees(d, { what: 'drained', evicted: 0, amended: 0 });
    d.given(amended('l1'));
    expect(d.state.drains.get('n0')).toMatchObject({ phase: 'drained', how: {}, amended: 0 });
  });

  it('does not stop a drain because of settings that were amended since', () => {
    const d = started();
    d.given(amended('l1'));
    expect(sees(d, { what: 'stopped', outcome: 'failed', reason: 'not drained within 600 s', amended: 0 })).toEqual([]);
    expect(
      linesOf(
        sees(d, { what: 'stopped', outcome: 'failed', reason: 'not drained within 90 s', amended: 1 }),
        'outcome',
      ),
    ).toEqual(['node.drain.stopped failed']);
  });

  const since = '2026-01-01T00:00:00.000Z';
  it.each([
    { version: 2, wrote: { blockedBy: 'budget default/web' }, lacks: ['amended', 'pods'], blocked: undefined },
    { version: 3, wrote: { blockedBy: '', blockedSince: '' }, lacks: ['pods'], blocked: undefined },
    {
      version: 4,
      wrote: { blockedBy: 'budget default/web', blockedSince: since },
      lacks: [],
      blocked: { by: 'budget default/web', since },
    },
  ])('loads a dump of version $version, which lacks newer fields', ({ version, wrote, lacks, blocked }) => {
    const d = started();
    const [dumped] = d.core.dump(d.state) as readonly Record<string, unknown>[];
    const kept = Object.entries(dumped as object).filter(([name]) => !['blocked', ...lacks].includes(name));
    const before = JSON.parse(JSON.stringify([{ ...Object.fromEntries(kept), ...wrote }])) as unknown;
    const drain = (d.core.load(migrated(d.core, version, before), 0) as State).drains.get('n0');
    expect(drain).toMatchObject({ lease: 'l1', phase: 'draining', amended: 0, pods: 0 });
    expect(drain?.blocked).toEqual(blocked);
  });

  it('shows the progress of a drain while it lasts, as this copy sees it', () => {
    const d = started();
    const progress = {
      lease: 'l1',
      total: 5,
      evicted: 2,
      waitingFor: ['default/a'],
      block: undefined,
    };
    expect([noteProgress(d.state, 'n0', progress), noteProgress(d.state, 'n0', progress)]).toEqual([true, false]);
    expect(d.view('drains', 'n0')).toMatchObject({
      state: 'draining',
      total: 5,
      evicted: 2,
      waitingFor: ['default/a'],
    });
    sees(d, { what: 'drained', evicted: 5, amended: 0 });
    expect(d.view('drains', 'n0')).toMatchObject({ state: 'drained', total: 0, waitingFor: [] });
  });

  it('continues the remaining work when a copy starts', () => {
    const d = started();
    sees(d, { what: 'cordoned', pods: 2 });
    const again = d.restarted();
    expect([...again.open]).toEqual(['n0']);
    expect(again.drains.get('n0')).toMatchObject({ phase: 'draining', cordoned: true });
  });
});
