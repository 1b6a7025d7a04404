import { factOf } from '#libs/testing';
import { grants, Scheduler, types } from './scheduler.fixture.js';

const far = { incarnation: 1_002, nonce: 66, seq: 1 };

describe('a report whose incarnation is far above the last one', () => {
  it("is refused with a reason, and the node's other reports still count", () => {
    const s = new Scheduler().fleet(['n0']);
    expect(s.nodeReports('n0', 'bogus', far)).toEqual([]);
    expect(s.answers).toEqual([
      {
        ok: false,
        code: 'bad-incarnation',
        message:
          'incarnation 1002 of n0 is more than 1000 above the last one, 1; if it is right, remove the node (sluice remove n0 --force): its applier then starts over',
      },
    ]);
    expect(types(s.nodeReports('n0', 'old'))).toEqual(['node.reported']);
    expect(s.status('n0')).toMatchObject({ hash: 'old', incarnation: 1 });
  });

  it('is also refused from a node that never reported', () => {
    const s = new Scheduler();
    expect(s.nodeReports('n0', 'x', { ...far, incarnation: 1_001 })).toEqual([]);
    expect(types(s.nodeReports('n0', 'x', { ...far, incarnation: 1_000 }))).toEqual(['node.reported']);
  });

  it('settles no lease', () => {
    const s = new Scheduler().fleet(['n0']);
    expect(grants(s.rolls('c1', ['n0']))).toEqual(['n0 forward c1-new']);
    expect(s.leaseEnds('n0', 'applied', { hash: 'c1-new', ...far })).toEqual([]);
    expect(s.lease('n0').phase).toBe('applying');
  });
});

describe('a node that is removed', () => {
  const climbed = (): Scheduler => {
    const s = new Scheduler().fleet(['n0']);
    s.nodeReports('n0', 'old', { ...far, incarnation: 1_001 });
    return s;
  };

  it('counts its incarnations from 0 again', () => {
    const s = climbed().given(factOf('node.left', { node: 'n0', because: 'removed' }));
    expect(s.status('n0')).toMatchObject({ hash: 'old', incarnation: 0, nonce: 0, seq: 0 });
    expect(s.nodeReports('n0', 'late', { ...far, incarnation: 1_001, seq: 2 })).toEqual([]);
    expect(types(s.nodeReports('n0', 'new', { incarnation: 1 }))).toEqual(['node.reported']);
    expect(s.status('n0').hash).toBe('new');
  });

  it('keeps its incarnation if its Node object was deleted, or if the incarnation is low', () => {
    const s = climbed().given(factOf('node.left', { node: 'n0', because: 'deleted' }));
    expect(s.status('n0').incarnation).toBe(1_001);
    const low = new Scheduler().fleet(['n0']).given(factOf('node.left', { node: 'n0', because: 'removed' }));
    expect(low.status('n0').incarnation).toBe(1);
  });
});
