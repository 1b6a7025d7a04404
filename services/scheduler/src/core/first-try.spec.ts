import { accepted, committed, factOf, heard, pool, renderedChange, silent, validated } from '#libs/testing';
import { grants, MINUTE, PAST_DEADLINE, Scheduler } from './scheduler.fixture.js';

const NAMES = ['n0', 'n1', 'n2', 'n3'];

/** Nodes of a pool that lets `units` of them change at once. */
function edge(units: number): Scheduler {
  const s = new Scheduler();
  s.given(accepted('c0', { apply: [pool('edge', units)] }), renderedChange('c0', {}), validated('c0')).when();
  return s.given(committed('c0')).fleet(NAMES, { role: 'edge' });
}
/** All of them were silent when c1 was committed. */
function untried(): Scheduler {
  const s = edge(3);
  s.given(...NAMES.map((node) => silent(node))).rolls('c1', NAMES);
  s.given(committed('c1')).when();
  return s;
}
const returned = (): Scheduler => {
  const s = untried();
  expect(grants(s.given(...NAMES.map((node) => heard(node))).when())).toEqual(['n0 corrective c1-new']);
  return s;
};

describe('a committed config that no node has applied', () => {
  it('goes to one node first, and to the others as the budget allows once that node has applied it', () => {
    const s = returned();
    expect(s.why('n1')).toMatchObject({
      because: 'first-try',
      holders: ['n0'],
      text: expect.stringContaining(
        'no node has applied the committed config yet, and n0 tries it first (it has a lease)',
      ),
    });
    expect(grants(s.applies('n0'))).toEqual(['n1 corrective c1-new', 'n2 corrective c1-new', 'n3 corrective c1-new']);
  });

  it('goes to no other node while the first one fails, however often it is tried again', () => {
    const s = returned();
    expect(grants(s.leaseEnds('n0', 'failed'))).toEqual([]);
    expect(s.why('n1').text).toContain('(its lease ended as failed: it is failed)');
    expect(grants(s.after(MINUTE))).toEqual(['n0 corrective c1-new']);
    expect(grants(s.leaseEnds('n0', 'failed'))).toEqual([]);
    expect(grants(s.after(2 * MINUTE))).toEqual(['n0 corrective c1-new']);
    expect(grants(s.applies('n0'))).toHaveLength(3);
  });

  it.each(['invalid', 'failed'] as const)(
    'goes to no other node if the first one reports it as %s and falls silent',
    (verdict) => {
      const s = returned();
      s.leaseEnds('n0', verdict);
      expect(grants(s.given(silent('n0')).when())).toEqual([]);
      expect(grants(s.after(MINUTE))).toEqual([]);
    },
  );

  it('goes to no other node while the first one does not answer, and to the next one once somebody skips it', () => {
    const s = returned();
    expect(grants(s.after(PAST_DEADLINE))).toEqual([]);
    expect(s.why('n1').because).toBe('first-try');
    expect(grants([...s.skips('n0'), ...s.after(PAST_DEADLINE)])).toEqual(['n1 corrective c1-new']);
  });

  it('goes to the next one if the first one was unreachable, did not start, or is set aside', () => {
    const unreachable = returned();
    expect(grants(unreachable.leaseEnds('n0', 'unreachable'))).toEqual(['n1 corrective c1-new']);
    const untouched = returned();
    expect(grants(untouched.leaseEnds('n0', 'failed', { untouched: true }))).toEqual(['n1 corrective c1-new']);
    const aside = returned();
    aside.leaseEnds('n0', 'failed');
    const taken = factOf('node.taken', { node: 'n0', owner: 'me', reason: '', forMs: 0 });
    expect(grants(aside.given(taken).when())).toEqual(['n1 corrective c1-new']);
  });

  it('goes to all once a change corrects it on one of them', () => {
    const s = returned();
    s.leaseEnds('n0', 'failed');
    s.rolls('c2', NAMES, { from: 'c1-new' });
    expect(s.atWork()).toHaveLength(3);
  });

  it('is tried in the same order after a restart', () => {
    const s = returned();
    s.leaseEnds('n0', 'failed');
    const again = new Scheduler(s.ledger);
    expect(grants(again.when())).toEqual([]);
    expect(again.why('n1')).toMatchObject({ because: 'first-try', holders: ['n0'] });
  });
});

it('a config that one node applied in its rollout needs no first try', () => {
  const s = edge(4);
  s.given(silent('n1'), silent('n2'), silent('n3')).rolls('c1', NAMES);
  s.applies('n0');
  s.given(committed('c1')).when();
  expect(grants(s.given(heard('n1')).when())).toEqual(['n1 corrective c1-new']);
  s.leaseEnds('n1', 'failed');
  expect(grants(s.given(heard('n2')).when())).toEqual(['n2 corrective c1-new']);
});

it('a config that every node had, and lost, is given to all of them', () => {
  const s = untried();
  s.given(...NAMES.map((node) => heard(node))).when();
  s.applies('n0');
  s.applies('n1', 'n2', 'n3');
  for (const node of NAMES.slice(0, 3))
    expect(grants(s.nodeReports(node, 'strange'))).toEqual([`${node} corrective c1-new`]);
});
