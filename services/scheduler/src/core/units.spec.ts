import { accepted, committed, factOf, joined, left, linesOf, pool, renderedChange, validated } from '#libs/testing';
import { grants, MINUTE, Scheduler } from './scheduler.fixture.js';

/** Nodes of a pool `edge`, and another tool that takes some. */
class Shared extends Scheduler {
  constructor(budget: number, ...names: readonly string[]) {
    super();
    this.given(accepted('c9', { apply: [pool('edge', budget)] }), renderedChange('c9', {}), validated('c9')).when();
    this.given(committed('c9')).fleet(names, { role: 'edge' });
  }
  takes(node: string, { owner = 'kured', pool: name = '', reason = 'a new kernel', forMs = 0 } = {}) {
    return this.asks({ op: 'pool.take', node, pool: name, owner, reason, by: 'me', forMs });
  }
  gives(node: string, owner = 'kured') {
    return this.asks({ op: 'pool.give', node, owner, by: 'me' });
  }
}

describe('a unit that another tool takes for a node', () => {
  it('counts like any other, and is shown with owner and reason wherever a node waits for it', () => {
    const s = new Shared(1, 'n0', 'n1');
    expect(linesOf(s.takes('n0'), 'node', 'pool', 'owner', 'reason', 'by')).toEqual([
      'node.taken n0 edge kured a new kernel me',
    ]);
    expect(s.answers).toEqual([{ ok: true, body: { node: 'n0', pool: 'edge', owner: 'kured', taken: true } }]);
    expect(s.view('pools', 'edge').unavailable).toEqual([
      { node: 'n0', because: 'taken by kured: a new kernel', lease: '' },
    ]);
    expect(grants(s.rolls('c1', ['n1']))).toEqual([]);
    expect(s.why('n1').text).toContain('n0 (taken by kured: a new kernel)');
    const facts = s.gives('n0');
    expect(linesOf(facts, 'node', 'owner')[0]).toBe('node.returned n0 kured');
    expect(grants([...facts, ...s.when()])).toEqual(['n1 forward c1-new']);
  });

  it('is refused if the pool has no room, and the refusal names the nodes that hold its units', () => {
    const s = new Shared(1, 'n0', 'n1');
    s.rolls('c1', ['n0']);
    expect(s.takes('n1')).toEqual([]);
    expect(s.answers).toEqual([
      {
        ok: false,
        code: 'no-room',
        message: 'the budget of pool edge is used up: 1 unavailable, 1 allowed: n0 (applying)',
      },
    ]);
  });

  it('is granted without room for a node that is already unavailable', () => {
    const s = new Shared(1, 'n0', 'n1');
    s.given(factOf('node.unavailable', { node: 'n0', because: 'cordoned', uid: 'u' }));
    expect(linesOf(s.takes('n0'))).toEqual(['node.taken']);
  });

  it("belongs to the node's own pool if the request names none", () => {
    const s = new Shared(1, 'n0');
    s.asks({ op: 'pool.take', node: 'n0', owner: 'kured', reason: '', by: 'me' });
    expect(s.answers).toMatchObject([{ ok: true, body: { pool: 'edge', taken: true } }]);
  });

  it('is refused while the node has a lease, and for another pool than its own', () => {
    const s = new Shared(2, 'n0', 'n1');
    s.rolls('c1', ['n0']);
    s.takes('n0');
    expect(s.answers).toMatchObject([
      { ok: false, code: 'conflict', message: 'n0 has the lease n0-l1: try again when it is released' },
    ]);
    s.takes('n1', { pool: 'core' });
    expect(s.answers).toMatchObject([{ ok: false, code: 'conflict', message: 'n1 is in pool edge, not core' }]);
    s.takes('nobody');
    expect(s.answers).toMatchObject([{ ok: false, code: 'not-found' }]);
  });

  it('is taken once if its owner repeats the request, and another owner can neither take nor give it', () => {
    const s = new Shared(2, 'n0');
    s.takes('n0');
    expect(s.takes('n0')).toEqual([]);
    expect(s.answers).toMatchObject([{ ok: true }]);
    expect(s.takes('n0', { owner: 'me' })).toEqual([]);
    expect(s.answers).toMatchObject([{ ok: false, code: 'conflict', message: 'n0 is taken by kured: a new kernel' }]);
    expect(s.gives('n0', 'me')).toEqual([]);
    expect(s.answers).toMatchObject([{ ok: false, code: 'conflict' }]);
    expect(linesOf(s.gives('n0'))).toEqual(['node.returned']);
    expect(s.gives('n0')).toEqual([]);
    expect(s.answers).toMatchObject([{ ok: true, body: { taken: false } }]);
  });
});

describe('a node that its owner takes again', () => {
  it('is taken for the new reason, and keeps the old one if none is given', () => {
    const s = new Shared(2, 'n0');
    s.takes('n0');
    expect(linesOf(s.takes('n0', { reason: 'a new disk' }), 'owner', 'reason')).toEqual([
      'node.taken kured a new disk',
    ]);
    expect(s.status('n0').taken).toMatchObject({ owner: 'kured', reason: 'a new disk', forMs: 0 });
    expect(s.takes('n0', { reason: '' })).toEqual([]);
    expect(linesOf(s.takes('n0', { reason: '', forMs: MINUTE }), 'reason')).toEqual(['node.taken a new disk']);
  });
});

describe('a unit that is taken for a limited time', () => {
  const HALF_HOUR = 30 * MINUTE;

  it('is given back when the time is over, and another node gets it in the same batch', () => {
    const s = new Shared(1, 'n0', 'n1');
    expect(linesOf(s.takes('n0', { forMs: HALF_HOUR }), 'node', 'owner', 'forMs')).toEqual([
      `node.taken n0 kured ${HALF_HOUR}`,
    ]);
    expect(grants(s.rolls('c1', ['n1']))).toEqual([]);
    expect(s.after(HALF_HOUR - 1)).toEqual([]);
    const facts = s.after(1);
    expect(linesOf(facts, 'node', 'owner', 'by', 'expired')[0]).toBe('node.returned n0 kured scheduler true');
    expect(grants(facts)).toEqual(['n1 forward c1-new']);
    expect(s.when()).toEqual([]);
  });

  it('shows the time wherever a node waits for it, and for the node itself', () => {
    const s = new Shared(1, 'n0', 'n1');
    s.takes('n0', { forMs: HALF_HOUR });
    s.rolls('c1', ['n1']);
    expect(s.view('pools', 'edge').unavailable).toMatchObject([
      { node: 'n0', because: expect.stringMatching(/^taken by kured for 30m from 2026-.*: a new kernel$/) as string },
    ]);
    expect(s.why('n0').text).toMatch(
      /taken by kured for 30m from .*; it gets no lease until kured gives it back or the time is over \(sluice give n0 --owner kured\)$/,
    );
    expect(s.status('n0').taken).toMatchObject({ owner: 'kured', reason: 'a new kernel', forMs: HALF_HOUR });
    s.gives('n0');
    expect(s.status('n0').taken).toBeUndefined();
    expect(s.after(HALF_HOUR)).not.toContainEqual(expect.objectContaining({ type: 'node.returned' }));
  });

  it('is extended if its owner takes it again, and has no limit if the owner sets none', () => {
    const s = new Shared(1, 'n0');
    s.takes('n0', { forMs: HALF_HOUR });
    s.after(HALF_HOUR - 1);
    expect(linesOf(s.takes('n0', { forMs: HALF_HOUR }))).toEqual(['node.taken']);
    expect(s.after(HALF_HOUR - 1)).toEqual([]);
    expect(linesOf(s.takes('n0'))).toEqual(['node.taken']);
    expect([s.after(10 * HALF_HOUR), s.status('n0').taken?.forMs]).toEqual([[], 0]);
  });

  it('is never shortened: a copy that starts counts from its start', () => {
    const s = new Shared(1, 'n0');
    s.takes('n0', { forMs: HALF_HOUR });
    s.after(HALF_HOUR - 1);
    s.restart();
    expect(s.after(HALF_HOUR - 1)).toEqual([]);
    expect(linesOf(s.after(1))).toEqual(['node.returned']);
  });

  it('has no limit in an older dump without one', () => {
    const s = new Shared(1, 'n0');
    s.takes('n0', { forMs: HALF_HOUR });
    const dumped = s.core.dump(s.state) as { readonly nodes: readonly [string, { readonly taken?: object }][] };
    const before = {
      ...dumped,
      nodes: dumped.nodes.map(([name, node]) => [name, { ...node, taken: { owner: 'kured', reason: '' } }]),
    };
    expect((s.core.load(s.core.migrations?.[7]?.(before), 0) as typeof s.state).nodes.get('n0')?.taken).toEqual({
      owner: 'kured',
      reason: '',
      at: '',
      sinceMs: 0,
      forMs: 0,
    });
  });
});

describe('a tool that takes a unit', () => {
  it('may name the expected pool of the node', () => {
    const s = new Shared(1, 'n0');
    expect(linesOf(s.takes('n0', { pool: 'edge' }))).toEqual(['node.taken']);
  });

  it('gets the first five nodes that hold the units, and the number of others', () => {
    const s = new Shared(6, 'n0', 'n1', 'n2', 'n3', 'n4', 'n5', 'n6');
    for (const node of ['n0', 'n1', 'n2', 'n3', 'n4']) s.takes(node, { reason: '' });
    expect(s.takes('n6')).toHaveLength(1);
    s.takes('n5');
    expect(s.answers).toMatchObject([
      {
        code: 'no-room',
        message:
          'the budget of pool edge is used up: 6 unavailable, 6 allowed: n0 (taken by kured), n1 (taken by kured), n2 (taken by kured), n3 (taken by kured), n4 (taken by kured) and 1 more',
      },
    ]);
    const full = new Shared(5, 'n0', 'n1', 'n2', 'n3', 'n4', 'n5');
    for (const node of ['n0', 'n1', 'n2', 'n3', 'n4', 'n5']) full.takes(node, { reason: '' });
    expect(full.answers).toMatchObject([
      { code: 'no-room', message: expect.stringMatching(/n4 \(taken by kured\)$/) as string },
    ]);
  });

  it('is refused for a node that has left or is unknown, but may give back one that has left', () => {
    const s = new Shared(1, 'n0').given(left('n0'));
    s.takes('n0');
    expect(s.answers).toMatchObject([{ ok: false, code: 'not-found', message: 'node n0 is not in the fleet' }]);
    expect(s.gives('n0')).toEqual([]);
    expect(s.answers).toEqual([
      { ok: true, body: { node: 'n0', pool: 'edge', owner: 'kured', taken: false, returned: false } },
    ]);
    s.gives('nobody');
    expect(s.answers).toEqual([{ ok: false, code: 'not-found', message: 'node nobody not found' }]);
  });

  it('gets the name of the owner if it cannot give the node', () => {
    const s = new Shared(1, 'n0');
    s.takes('n0', { reason: '' });
    s.gives('n0', 'me');
    expect(s.answers).toEqual([
      { ok: false, code: 'conflict', message: 'n0 is taken by kured; only that owner can give it back, not me' },
    ]);
  });
});

describe('a node that was taken', () => {
  it('gets no lease, is deferred by a rollout, and gets the config when it is given back', () => {
    const s = new Shared(2, 'n0', 'n1');
    s.takes('n0');
    expect(grants(s.rolls('c1', ['n0', 'n1']))).toEqual(['n1 forward c1-new']);
    expect(s.status('n0').deferred).toBe('taken by kured: a new kernel');
    s.applies('n1');
    expect(s.rollout('c1').phase).toBe('complete');
    s.given(committed('c1')).when();
    expect(s.why('n0')).toMatchObject({
      because: 'taken',
      text: expect.stringContaining('sluice give n0 --owner kured'),
    });
    const facts = s.gives('n0');
    expect(grants([...facts, ...s.when()])).toEqual(['n0 corrective c1-new']);
  });

  it('that leaves has no owner any more, even when it joins again', () => {
    const s = new Shared(1, 'n0');
    s.takes('n0');
    s.given(left('n0'), joined('n0', { role: 'edge' }));
    expect(s.unavailable('edge')).toEqual([]);
  });
});
