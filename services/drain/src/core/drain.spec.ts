import type { Action, NewFact } from '#libs/contracts';
import { factOf, LedgerCopy, linesOf, MemoryLedger } from '#libs/testing';
import { drainCore, type Input, type State, type Strategy } from './index.js';

const DRAIN: readonly Action[] = [{ kind: 'drain' }];

class Drain extends LedgerCopy<State, Input> {
  constructor(strategy: Strategy = 'external', ledger = new MemoryLedger()) {
    super(drainCore(strategy), ledger);
  }
  granted(lease: string, phase: 'draining' | 'ready' = 'draining'): readonly NewFact[] {
    return this.given(factOf('node.lease.granted', { ...of(lease), kind: 'forward', phase, actions: DRAIN })).when();
  }
  answers_(lease: string, evicted = 3): readonly NewFact[] {
    return this.when({ type: 'request', request: { op: 'drained', node: 'n0', lease, evicted, by: 'drainer' } });
  }
}
const of = (lease: string) => ({ node: 'n0', pool: 'edge', change: 'c1', lease });
const settled = (lease: string) => factOf('node.lease.settled', { ...of(lease), kind: 'forward', because: 'applied' });

describe('without a drainer', () => {
  it('a node is drained and uncordoned at once, in the name of its lease', () => {
    const d = new Drain('none');
    expect(linesOf(d.granted('l1'), 'node', 'pool', 'lease', 'by')).toEqual(['node.drained n0 edge l1 none']);
    expect(d.when()).toEqual([]);
    expect(linesOf(d.given(settled('l1'), factOf('node.lease.uncordoning', of('l1'))).when(), 'lease')).toEqual(['node.uncordoned l1']);
    expect(d.when()).toEqual([]);
  });

  it('a lease that needs no drain is none of its business', () => {
    expect(new Drain('none').granted('l1', 'ready')).toEqual([]);
  });
});

describe('with a drainer from outside', () => {
  it('a node is drained when that says so, and the time it took is told', () => {
    const d = new Drain();
    expect(d.granted('l1')).toEqual([]);
    expect(d.view('drains', 'n0')).toMatchObject({ state: 'draining', lease: 'l1', strategy: 'external' });
    d.nowMs += 5_000;
    expect(linesOf(d.answers_('l1'), 'lease', 'durationMs', 'evicted', 'by')).toEqual(['node.drained l1 5000 3 drainer']);
    expect(d.view('drains', 'n0').state).toBe('drained');
  });

  it('an answer given twice is taken once', () => {
    const d = new Drain();
    d.granted('l1');
    d.answers_('l1');
    expect(d.answers_('l1')).toEqual([]);
    expect(d.answers).toEqual([{ ok: true, body: { node: 'n0', lease: 'l1' } }]);
  });

  it('an answer that names no lease means the one that drains', () => {
    const d = new Drain();
    d.granted('l1');
    expect(linesOf(d.answers_(''), 'lease')).toEqual(['node.drained l1']);
  });

  it('an answer for an earlier lease drains nothing', () => {
    const d = new Drain();
    d.granted('l1');
    d.given(settled('l1'), factOf('node.lease.uncordoning', of('l1'))).when();
    d.given(factOf('node.lease.released', { ...of('l1'), because: 'failed' }));
    d.granted('l2');
    expect(d.answers_('l1')).toEqual([]);
    expect(d.answers).toMatchObject([{ ok: false, code: 'conflict' }]);
  });

  it('an answer that comes after the lease was cancelled drains nothing', () => {
    const d = new Drain();
    d.granted('l1');
    d.given(factOf('node.lease.settled', { ...of('l1'), kind: 'forward', because: 'cancelled' }), factOf('node.lease.uncordoning', of('l1')));
    d.when();
    expect(d.answers_('l1')).toEqual([]);
    expect(d.answers).toMatchObject([{ ok: false, code: 'conflict' }]);
  });

  it('an answer for a node without a drain is refused', () => {
    const d = new Drain();
    d.answers_('l1');
    expect(d.answers).toMatchObject([{ ok: false, code: 'not-found' }]);
  });

  it('what is said of another lease moves nothing', () => {
    const d = new Drain();
    d.granted('l2');
    expect(d.given(factOf('node.lease.uncordoning', of('l1')), factOf('node.drained', of('l1'))).when()).toEqual([]);
    expect(d.view('drains', 'n0').state).toBe('draining');
  });
});

it('a copy that begins anew does what is still to do, and nothing twice', () => {
  const first = new Drain('none');
  first.given(factOf('node.lease.granted', { ...of('l1'), kind: 'forward', phase: 'draining', actions: DRAIN }));
  const second = new Drain('none', first.ledger).read();
  const late = first.about();
  second.when();
  expect(first.ledger.append(late.facts, first.folded)).toBe(false);
  expect(first.when()).toEqual([]);
  expect(linesOf(first.ledger.facts)).toEqual(['node.lease.granted', 'node.drained']);
});
