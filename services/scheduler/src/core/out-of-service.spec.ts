import { accepted, committed, factOf, left, linesOf, pool, joined, renderedChange, validated } from '#libs/testing';
import { grants, Scheduler } from './scheduler.fixture.js';

const down = (node: string, because = 'NotReady') => factOf('node.unavailable', { node, because, uid: 'u' });
const up = (node: string) => factOf('node.available', { node, uid: 'u' });

function inPool(budget: number, ...names: readonly string[]): Scheduler {
  const s = new Scheduler();
  s.given(accepted('c9', { apply: [pool('edge', budget)] }), renderedChange('c9', {}), validated('c9')).when();
  return s.given(committed('c9')).fleet(names, { role: 'edge' });
}

describe('a node that is out of service in Kubernetes', () => {
  it('takes a unit of its pool, and is listed there with the reason', () => {
    const s = inPool(1, 'n0', 'n1');
    s.given(down('n0', 'NotReady, cordoned'));
    expect(s.unavailable('edge')).toEqual(['n0']);
    expect(s.view('pools', 'edge').unavailable).toEqual([{ node: 'n0', because: 'NotReady, cordoned', lease: '' }]);
    expect(grants(s.rolls('c1', ['n1']))).toEqual([]);
    expect(s.why('n1').text).toContain('n0 (NotReady, cordoned)');
    expect(grants(s.given(up('n0')).when())).toEqual(['n1 forward c1-new']);
  });

  it('needs no further unit for its own lease', () => {
    const s = inPool(1, 'n0', 'n1');
    s.given(down('n0'));
    expect(grants(s.rolls('c1', ['n0', 'n1']))).toEqual(['n0 forward c1-new']);
  });

  it('still counts after its lease until it is back in service', () => {
    const s = inPool(1, 'n0', 'n1');
    s.rolls('c1', ['n0', 'n1']);
    s.given(down('n0')).when();
    expect(grants(s.applies('n0'))).toEqual([]);
    expect(grants(s.given(up('n0')).when())).toEqual(['n1 forward c1-new']);
  });

  it('stalls a rollout that waits for its unit, and is named', () => {
    const s = inPool(1, 'n0', 'n1');
    s.given(down('n0'));
    expect(linesOf(s.rolls('c1', ['n1']), 'nodes')).toContain('rollout.stalled ["n0"]');
  });

  it('no longer counts once it has left, nor when it joins again', () => {
    const s = inPool(1, 'n0', 'n1');
    s.given(down('n0'), left('n0'));
    expect(s.unavailable('edge')).toEqual([]);
    s.given(joined('n0', { role: 'edge' }));
    expect(s.unavailable('edge')).toEqual([]);
  });
});
