import { accepted, committed, heard, pool, renderedChange, silent, validated } from '#libs/testing';
import { grants, MINUTE, PAST_DEADLINE, Scheduler, settledAs, types } from './scheduler.fixture.js';

/** A pool with one unit that waits ten minutes for a silent node, or as long as it says. */
function fleet(more: object = { silentNodes: { ignoreAfter: '10m' } }): Scheduler {
  const s = new Scheduler();
  s.given(accepted('c0', { apply: [pool('edge', 1, 'edge', more)] }), renderedChange('c0', {}), validated('c0')).when();
  s.given(committed('c0')).when();
  return s.fleet(['n0', 'n1'], { role: 'edge' });
}

describe('a pool that ignores silent nodes after a time', () => {
  it('counts a silent node until then, and skips it', () => {
    const s = fleet().given(silent('n0'));
    expect(grants(s.rolls('c1', ['n1']))).toEqual([]);
    expect(s.decide().wakeAtMs).toBe(s.nowMs + 10 * MINUTE);
    expect(s.after(10 * MINUTE - 1)).toEqual([]);
    const facts = s.after(1);
    expect(facts).toMatchObject([
      { type: 'node.skipped', node: 'n0', pool: 'edge', by: 'scheduler', reason: 'silent for 10m' },
      { type: 'node.lease.granted', node: 'n1' },
    ]);
    expect(s.status('n0').skipped).toBe('scheduler');
  });

  it('ends the lease of a node that never answered', () => {
    const s = fleet();
    s.rolls('c1', ['n0']);
    s.given(silent('n0'));
    expect(settledAs(s.after(PAST_DEADLINE))).toEqual(['n0 unknown']);
    expect(settledAs(s.after(8 * MINUTE))).toEqual(['n0 skipped']);
    expect(types(s.after(PAST_DEADLINE))).toContain('node.lease.released');
    expect(s.unavailable('edge')).toEqual([]);
  });

  it('counts a node again that was heard, and restarts the time when it is silent again', () => {
    const s = fleet().given(silent('n0'));
    s.after(10 * MINUTE);
    s.given(heard('n0'), silent('n0'));
    expect(s.unavailable('edge')).toEqual(['n0']);
    expect(s.after(10 * MINUTE - 1)).toEqual([]);
    expect(types(s.after(1))).toEqual(['node.skipped']);
  });

  it('restarts the time in a copy that starts from a snapshot', () => {
    const s = fleet().given(silent('n0'));
    s.nowMs += 9 * MINUTE;
    s.restart();
    expect(s.after(10 * MINUTE - 1)).toEqual([]);
    expect(types(s.after(1))).toEqual(['node.skipped']);
  });
});

it.each([{}, { silentNodes: 'count' }])('a pool with %j counts silent nodes forever', (settings) => {
  const s = fleet(settings).given(silent('n0'));
  expect(s.after(10_000 * MINUTE)).toEqual([]);
  expect(s.unavailable('edge')).toEqual(['n0']);
});
