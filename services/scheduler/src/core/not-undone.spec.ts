import { committed, heard, joined, left, renderedNode, reviewedNode, silent } from '#libs/testing';
import { Scheduler } from './scheduler.fixture.js';

const fleetOf = (...names: readonly string[]) => new Scheduler().fleet(names);
const LEFT = { reason: 'the probe p fails; rolled back, except Exec/x', notUndone: ['Exec/x'] };

describe('a node whose rollback could not undo a command', () => {
  it('is not called up to date, until the next change is applied', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.leaseEnds('n0', 'failed', LEFT);
    expect(s.rollout('c1').phase).toBe('reverted');
    expect(s.status('n0').notUndone).toEqual(['Exec/x']);
    expect(s.why('n0')).toMatchObject({
      because: 'not-undone',
      text: 'it was rolled back, except Exec/x: undo on the node what these commands did, or apply a change that does',
    });
    s.nodeReports('n0', 'old');
    expect(s.status('n0').notUndone).toEqual(['Exec/x']);
    s.rolls('c2', ['n0']);
    s.applies('n0');
    expect(s.status('n0').notUndone).toEqual([]);
  });

  it('is not called up to date when it has drift, too', () => {
    const s = fleetOf('n0');
    s.rolls('c1', ['n0']);
    s.leaseEnds('n0', 'failed', LEFT);
    s.when(s.message('n0', 'old', { kind: 'drifted', differences: ['/a', '/b'] }));
    expect(s.why('n0')).toMatchObject({
      because: 'not-undone',
      text: 'it was rolled back, except Exec/x: undo on the node what these commands did, or apply a change that does; it also has drift: /a; /b',
    });
  });

  it('is listed in the rollout, when it failed and when it was rolled back after it had succeeded', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    const first = s.atWork()[0] ?? '';
    const other = first === 'n0' ? 'n1' : 'n0';
    s.applies(first);
    s.leaseEnds(other, 'failed', LEFT);
    s.leaseEnds(first, 'applied', { hash: 'old', notUndone: ['Exec/x'] });
    expect(s.view('rollouts', 'c1').worst.map(({ node, state, reason }) => [node, state, reason])).toEqual([
      [other, 'failed', LEFT.reason],
      [first, 'partly-rolled-back', 'rolled back, except Exec/x'],
    ]);
  });

  it('is listed, too, if it was skipped while it applied a change that was rolled back', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    const late = s.atWork()[0] ?? '';
    const { lease, hash } = s.lease(late);
    s.aborts('c1');
    s.skips(late);
    expect(s.rollout('c1').phase).toBe('reverted');
    // It may still be working, so nobody can say that it was rolled back.
    expect(s.view('rollouts', 'c1').worst.map(({ node, state }) => [node, state])).toEqual([[late, 'deferred']]);
    s.when(s.message(late, hash, { kind: 'applied', lease, verdict: 'applied' }));
    expect(s.lease(late)).toMatchObject({ kind: 'corrective', undo: true, from: hash, hash: 'old', phase: 'applying' });
    s.leaseEnds(late, 'applied', { hash: 'old', notUndone: ['Exec/x'] });
    expect(s.why(late).because).toBe('not-undone');
    expect(s.view('rollouts', 'c1').worst.map(({ node, state, reason }) => [node, state, reason])).toEqual([
      [late, 'partly-rolled-back', 'rolled back, except Exec/x'],
    ]);
  });
});

describe('a lease outside a rollout', () => {
  it('undoes the commands of an aborted change on a node that was skipped while it had its lease', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.skips('n0');
    s.aborts('c1');
    s.applies('n0');
    expect(s.rollout('c1').phase).toBe('reverted');
    expect(s.lease('n0')).toMatchObject({ kind: 'corrective', hash: 'old', from: 'c1-new', undo: true });
  });

  it('undoes nothing on a node that only lags behind the committed config', () => {
    const s = fleetOf('n0', 'n1').given(silent('n0'));
    s.rolls('c1', ['n0', 'n1']);
    s.skips('n0');
    s.applies('n1');
    s.given(committed('c1'), heard('n0')).when();
    expect(s.lease('n0')).toMatchObject({ kind: 'corrective', hash: 'c1-new', from: 'old' });
    expect(s.lease('n0').undo).toBeUndefined();
  });
});

describe('a node that was removed with content of a change that failed', () => {
  it('undoes the commands of that change when it joins again', () => {
    const s = fleetOf('n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.applies('n0');
    s.given(left('n0'));
    s.aborts('c1');
    s.given(joined('n0'), renderedNode('n0', 'old'), reviewedNode('n0', 'old'));
    s.nodeReports('n0', 'c1-new');
    s.applies('n1');
    s.applies('n1');
    expect(s.rollout('c1').phase).toBe('reverted');
    expect(s.lease('n0')).toMatchObject({ kind: 'join', hash: 'old', from: 'c1-new', undo: true });
  });

  it('undoes nothing if it had the committed config', () => {
    const s = fleetOf('n0', 'n1');
    s.given(left('n0'));
    s.rolls('c1', ['n1']);
    s.applies('n1');
    s.given(committed('c1'), joined('n0'), renderedNode('n0', 'c1-new'), reviewedNode('n0', 'c1-new'));
    s.nodeReports('n0', 'old');
    expect(s.lease('n0')).toMatchObject({ kind: 'join', hash: 'c1-new', from: 'old' });
    expect(s.lease('n0').undo).toBeUndefined();
  });
});
