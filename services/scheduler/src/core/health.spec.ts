import type { NewFact } from '#libs/contracts';
import {
  accepted,
  changed,
  committed,
  ended,
  fragment,
  heard,
  left,
  renderedChange,
  renderedNode,
  reviewedNode,
  silent,
} from '#libs/testing';
import { deferred, grants, PAST_DEADLINE, Scheduler, types } from './scheduler.fixture.js';

const NO = [{ probe: 'app', reason: 'it says no' }];
const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);
const probed = (s: Scheduler, node: string, failingProbes = NO, hash = 'old'): readonly NewFact[] =>
  s.when(s.message(node, hash, { kind: 'probed', failingProbes }));
const HELD =
  'it is unhealthy (app: it says no), and RolloutPolicy/all has health: strict: repair the node until its probes pass, or set health: tolerant in RolloutPolicy/all';
const policy = (health: string, name = 'all') => fragment('RolloutPolicy', name, { maxFailures: 0, health });

describe('a node', () => {
  it('becomes unhealthy and healthy again by facts, and its status and pool say so', () => {
    const s = fleetOf('n0', 'n1');
    expect(probed(s, 'n0')).toMatchObject([
      { type: 'node.reported', report: 'probed' },
      { type: 'node.unhealthy', node: 'n0', pool: 'default', failingProbes: NO },
    ]);
    expect(s.status('n0').failingProbes).toEqual(NO);
    expect(s.view('pools', 'default')).toMatchObject({
      unhealthy: 1,
      unhealthyNodes: [{ node: 'n0', failingProbes: NO }],
      used: 0,
    });
    expect(s.why('n0')).toMatchObject({
      because: 'unhealthy',
      text: 'it has its config, but is unhealthy: app: it says no',
    });
    expect(types(probed(s, 'n0'))).toEqual(['node.reported']);
    expect(types(probed(s, 'n0', []))).toEqual(['node.reported', 'node.healthy']);
    expect([s.status('n0').failingProbes, s.view('pools', 'default').unhealthy]).toEqual([[], 0]);
    expect(s.why('n0').because).toBe('up-to-date');
  });

  it('is unhealthy by the report that ends its lease, and a redelivered one changes nothing', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    const answer = s.answer('n0', 'applied', { hash: 'c1-new', failingProbes: NO });
    expect(types(s.when(answer))).toContain('node.unhealthy');
    expect(s.when(answer)).toEqual([]);
    expect(s.rollout('c1').phase).toBe('complete');
  });

  it('keeps its reported probes until it reports others, and loses them when it leaves', () => {
    const s = fleetOf('n0');
    probed(s, 'n0');
    s.nodeReports('n0', 'old');
    expect(s.status('n0').failingProbes).toEqual(NO);
    s.given(left('n0'));
    expect(s.view('pools', 'default').unhealthy).toBe(0);
  });
});

describe('an unhealthy node', () => {
  it('gets a change by default, so that a fix can reach it', () => {
    const s = fleetOf('n0');
    probed(s, 'n0');
    expect(grants(s.rolls('c1', ['n0']))).toEqual(['n0 forward c1-new']);
  });

  it('is deferred under a strict policy, and gets the change when it is healthy', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', [], { apply: [policy('strict')] });
    s.given(committed('c1')).when();
    probed(s, 'n0');
    const facts = s.rolls('c2', ['n0', 'n1']);
    expect(deferred(facts)).toEqual([`n0: ${HELD}`]);
    expect(grants(facts)).toEqual(['n1 forward c2-new']);
    expect(s.why('n0')).toMatchObject({
      because: 'unhealthy',
      text: `c2 deferred it: ${HELD}; then it gets the committed config once the rollout has ended`,
    });
    s.applies('n1');
    s.given(committed('c2', 2));
    expect(grants(s.when())).toEqual([]);
    expect(s.why('n0')).toMatchObject({ because: 'unhealthy', text: `the committed config waits: ${HELD}` });
    expect(grants(probed(s, 'n0', []))).toEqual(['n0 corrective c2-new']);
  });

  it('says so under a strict policy also while another change waits to start', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', [], { apply: [policy('strict')] });
    s.given(committed('c1')).when();
    probed(s, 'n0');
    s.rolls('c2', ['n0', 'n1']);
    s.applies('n1');
    s.given(committed('c2', 2));
    // It is rendered, and not validated, because it waits for what it refers to.
    s.given(accepted('c3'), renderedChange('c3', { n0: { from: 'c2-new', to: 'c3-new', recipe: '' } })).when();
    expect(s.why('n0')).toMatchObject({ because: 'unhealthy', text: `the committed config waits: ${HELD}` });
    probed(s, 'n0', []);
    s.applies('n0');
    expect(s.why('n0')).toMatchObject({ because: 'not-started', text: 'it waits for c3 to start' });
  });

  it('gets no lease under a strict policy, even if nobody knows what a skipped one left there', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', [], { apply: [policy('strict')] });
    s.given(committed('c1')).when();
    s.rolls('c2', ['n0', 'n1']);
    const late = s.atWork()[0] ?? '';
    const { lease } = s.lease(late);
    s.skips(late);
    s.aborts('c2');
    probed(s, late);
    s.after(PAST_DEADLINE);
    expect(s.status(late).unsure).toBe(true);
    expect(grants(s.given(ended('c2', 'reverted'), heard(late)).when())).toEqual([]);
    s.when(s.message(late, 'old', { kind: 'failed', verdict: 'failed', lease }));
    expect(s.status(late).unsure).toBeUndefined();
  });

  it('gets a change that brings a tolerant policy of the same name', () => {
    const s = fleetOf('n0');
    s.rolls('c1', [], { apply: [policy('strict')] });
    s.given(committed('c1')).when();
    probed(s, 'n0');
    expect(grants(s.rolls('c2', ['n0'], { apply: [policy('tolerant')] }))).toEqual(['n0 forward c2-new']);
  });

  it('gets the committed config back under a strict policy if a failed change left it behind', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', [], { apply: [policy('strict')] });
    s.given(committed('c1')).when();
    s.rolls('c2', ['n0', 'n1']);
    const first = s.atWork()[0] ?? '';
    const other = first === 'n0' ? 'n1' : 'n0';
    s.leaseEnds(first, 'applied', { hash: 'c2-new', failingProbes: NO });
    s.given(silent(first));
    expect(deferred(s.leaseEnds(other, 'failed'))).toContain(`${first}: silent`);
    s.given(ended('c2', 'reverted'), heard(first));
    expect(grants(s.when())).toEqual([`${first} corrective old`]);
    s.leaseEnds(first, 'failed', { hash: 'c2-new', failingProbes: NO });
    expect(s.why(first).because).toBe('backing-off');
  });

  it('is deferred under a strict policy if it left a rollout with the config that was then committed', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', [], { apply: [policy('strict')] });
    s.given(committed('c1')).when();
    s.rolls('c2', ['n0', 'n1']);
    const first = s.atWork()[0] ?? '';
    const other = first === 'n0' ? 'n1' : 'n0';
    s.applies(first);
    // It got other labels, and does not answer before the change is committed.
    s.given(changed(first, { role: 'edge' }), renderedNode(first, 'old', { cause: 'relabel', outdatedIn: ['c2'] }));
    s.given(reviewedNode(first, 'old'), silent(first)).when();
    s.applies(other);
    s.given(committed('c2', 2), heard(first), renderedNode(first, 'edge', { cause: 'commit' }));
    s.given(reviewedNode(first, 'edge'));
    expect(grants(probed(s, first, NO, 'c2-new'))).toEqual([]);
    expect(deferred(s.rolls('c3', [first], { from: 'c2-new' }))).toEqual([`${first}: ${HELD}`]);
  });

  it('gets a correction of the change that it has under a strict policy', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { apply: [policy('strict')] });
    const first = s.atWork()[0] ?? '';
    s.leaseEnds(first, 'applied', { hash: 'c1-new', failingProbes: NO });
    s.pauses('c1');
    expect(deferred(s.rolls('c2', ['n0', 'n1'], { replaces: ['c1'], apply: [policy('strict')] }))).toEqual([]);
  });

  it('is rolled back under a strict policy, too', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1'], { apply: [policy('strict')] });
    const first = s.atWork()[0] ?? '';
    const other = first === 'n0' ? 'n1' : 'n0';
    s.leaseEnds(first, 'applied', { hash: 'c1-new', failingProbes: NO });
    expect(grants(s.leaseEnds(other, 'invalid'))).toEqual([`${first} rollback old`]);
  });
});
