import { refusedDrift, type Fragment, type NewFact, type PlanAnswer } from '#libs/contracts';
import { changed, factOf, file, fragment, LedgerCopy, pool } from '#libs/testing';
import { changeBody, Merger } from './merger.fixture.js';

const NODES = ['n0', 'n1', 'n2', 'n3'];
const MOTD = '/etc/motd: content differs';
const UNIT = 'app.service: is inactive instead of started';

const poolWith = (drift: string, more: object = {}): Fragment =>
  pool('all', 4, '', { nodeSelector: {}, drift, ...more });
const healthWith = (health: string): Fragment =>
  fragment('RolloutPolicy', 'all', { nodeSelector: {}, maxFailures: 0, health } as never);
const motd = (content: string): Fragment => file('motd', content);

describe('a plan tells when each node changes', () => {
  const says = (m: Merger, node: string, more: object): NewFact =>
    factOf('node.reported', {
      node,
      hash: m.state.inForce.get(node) ?? '',
      report: 'announced',
      restored: true,
      ...more,
    });
  const drifts = (m: Merger, node: string, ...differences: readonly string[]): void =>
    void m.given(says(m, node, { report: 'drifted', differences })).when();
  /** The nodes report that they have the committed config. */
  const follow = (m: Merger, ...nodes: readonly string[]): void => {
    for (const node of nodes)
      m.given(says(m, node, { report: 'applied', hash: m.state.desired.get(node)?.hash ?? '' }));
    m.when();
  };
  const fleet = (...fragments: readonly Fragment[]): Merger => {
    const m = new Merger().fleet(NODES);
    m.given(...NODES.map((node) => changed(node, {}, ['kind:File'])));
    m.commits(1, motd('one'), ...fragments);
    follow(m, ...NODES);
    return m;
  };
  const plan = (m: Merger, fragments: Parameters<typeof changeBody>[0], strategy: object = {}): PlanAnswer => {
    const body = { ...changeBody(fragments), strategy };
    m.when({ type: 'request', request: { op: 'plan', id: 'p', body, source: 'me', cursor: '', limit: 100 } });
    const [answer] = m.answers;
    if (answer?.ok !== true) throw new Error('no plan');
    return answer.body as PlanAnswer;
  };
  const shown = ({ nodes }: PlanAnswer): readonly string[] =>
    nodes.map(({ node, changed: places, drift = [], overwritesDrift = false, afterCommit = false, deferred }) =>
      [
        node,
        deferred === undefined ? (afterCommit ? 'after the commit' : 'in the rollout') : `deferred: ${deferred}`,
        ...places,
        ...drift.map((difference) => `(${difference})`),
        ...(overwritesDrift ? ['overwritten'] : []),
      ].join(' '),
    );
  const counts = ({ touched, unchanged, pools }: PlanAnswer): object => ({ touched, unchanged, pools });

  it('and defers it if its pool keeps its drift, with a warning that --strict makes an error', () => {
    const m = fleet(poolWith('report'));
    drifts(m, 'n0', MOTD);
    drifts(m, 'n1', UNIT);
    const answer = plan(m, [motd('two')]);
    expect(shown(answer)).toEqual([
      `n0 deferred: drift /etc/motd (${MOTD})`,
      `n1 in the rollout /etc/motd (${UNIT})`,
      'n2 in the rollout /etc/motd',
      'n3 in the rollout /etc/motd',
    ]);
    expect(counts(answer)).toEqual({ touched: 4, unchanged: 0, pools: { all: { nodes: 3, budget: 4 } } });
    const warning = { code: 'drift', nodes: ['n0'], message: expect.stringMatching(/^1 node is deferred/) as string };
    expect(answer).toMatchObject({ rejected: [], warnings: [warning] });
    expect(plan(m, [motd('two')], { strict: true })).toMatchObject({ rejected: [warning] });
  });

  it.each(['overwrite', 'repair'])('and what it overwrites if the pool has drift: %s', (drift) => {
    const m = fleet(poolWith(drift));
    drifts(m, 'n0', MOTD);
    expect(shown(plan(m, [motd('two')]))[0]).toBe(`n0 in the rollout /etc/motd (${MOTD}) overwritten`);
  });

  it('if the change lets its pool repair drift: after the commit, whatever has drifted', () => {
    const m = fleet(poolWith('report'));
    drifts(m, 'n0', MOTD, '/a: missing', '/b: missing', '/c: missing', '/d: missing');
    drifts(m, 'n1', UNIT);
    const answer = plan(m, [poolWith('repair')]);
    expect(shown(answer)).toEqual([
      `n0 after the commit (${MOTD}) (/a: missing) (/b: missing) (… and 2 more) overwritten`,
      `n1 after the commit (${UNIT})`,
    ]);
    expect(counts(answer)).toEqual({ touched: 0, unchanged: 0, pools: { all: { nodes: 2, budget: 4 } } });
    // With overwrite, drift stays until the next change.
    expect(shown(plan(m, [poolWith('overwrite')]))).toEqual([]);
    // The drift is repaired already, whatever the change says.
    m.commits(2, poolWith('repair'));
    expect(shown(plan(m, [poolWith('repair', { maxUnavailable: 1 })]))).toEqual([]);
  });

  it('if the change is deferred at first, and its own pool then overwrites the drift', () => {
    const m = fleet(poolWith('report'));
    drifts(m, 'n0', MOTD);
    const answer = plan(m, [motd('two'), poolWith('overwrite')]);
    expect(shown(answer)[0]).toBe(`n0 after the commit /etc/motd (${MOTD}) overwritten`);
    expect(answer.warnings).toEqual([]);
  });

  it('if the change adds a pool, whose settings apply at once', () => {
    const m = fleet();
    drifts(m, 'n0', MOTD);
    expect(shown(plan(m, [motd('two'), poolWith('overwrite')]))[0]).toBe(
      `n0 in the rollout /etc/motd (${MOTD}) overwritten`,
    );
    expect(shown(plan(m, [poolWith('repair')]))).toEqual([`n0 after the commit (${MOTD}) overwritten`]);
  });

  it('if an earlier change was deferred there: it gets that after the commit, or keeps waiting', () => {
    const m = fleet(poolWith('report'));
    drifts(m, 'n0', MOTD);
    const DRAIN = fragment('DisruptionPolicy', 'all', {
      nodeSelector: {},
      files: [{ path: '/etc/app', actions: [{ kind: 'drain' }] }],
    } as never);
    m.commits(2, file('app', 'x'), DRAIN);
    follow(m, 'n1', 'n2', 'n3');
    const released = plan(m, [poolWith('overwrite')]);
    expect(shown(released)).toEqual([`n0 after the commit /etc/app (${MOTD}) overwritten`]);
    expect(released.nodes[0]).toMatchObject({
      from: m.state.inForce.get('n0'),
      to: m.state.desired.get('n0')?.hash,
      actions: [{ kind: 'drain' }],
    });
    const again = plan(m, [file('app', 'x')]);
    expect(shown(again)).toEqual([`n0 deferred: drift /etc/app (${MOTD})`]);
    expect(counts(again)).toMatchObject({ touched: 4, unchanged: 3 });
    // What the change gives it is what it has.
    const back = plan(m, [{ gone: { kind: 'File', name: 'app' } }]);
    expect([shown(back).length, counts(back)]).toMatchObject([3, { touched: 4, unchanged: 1 }]);
  });

  it('with the actions that its drift needs', () => {
    const policy = fragment('DisruptionPolicy', 'all', {
      nodeSelector: {},
      files: [{ path: '/etc/motd', actions: [{ kind: 'reboot' }] }],
    } as never);
    const m = fleet(poolWith('report'), policy);
    drifts(m, 'n0', MOTD);
    expect(plan(m, [poolWith('repair')]).nodes).toMatchObject([{ node: 'n0', actions: [{ kind: 'reboot' }] }]);
  });

  it('and which drift stays, because the node refuses to correct it', () => {
    const refused = refusedDrift('/etc/motd: is a directory', 'it is not empty');
    const policy = fragment('DisruptionPolicy', 'all', {
      nodeSelector: {},
      files: [{ path: '/etc/motd', actions: [{ kind: 'reboot' }] }],
    } as never);
    const m = fleet(poolWith('report'), policy);
    drifts(m, 'n0', refused);
    drifts(m, 'n1', refused, '/a: missing');
    expect(shown(plan(m, [poolWith('repair')]))).toEqual([
      'n0 deferred: refused',
      'n1 after the commit (/a: missing) overwritten',
    ]);
    m.commits(2, poolWith('overwrite'));
    const { nodes } = plan(m, [file('app', 'x')]);
    expect(nodes.slice(0, 2)).toMatchObject([
      { node: 'n0', changed: ['/etc/app'], leavesDrift: [refused], actions: [{ kind: 'none' }] },
      { node: 'n1', changed: ['/etc/app'], leavesDrift: [refused], drift: ['/a: missing'], overwritesDrift: true },
    ]);
    expect(nodes[0]).not.toHaveProperty('overwritesDrift');
  });

  it('and defers nodes that get no lease, and those that a policy holds while they are unhealthy', () => {
    const m = fleet(healthWith('strict'));
    const failingProbes = [{ probe: 'p', reason: 'no' }];
    m.given(
      factOf('node.silent', { node: 'n0' }),
      factOf('node.taken', { node: 'n1', owner: 'me' }),
      factOf('node.unhealthy', { node: 'n2', failingProbes }),
    ).when();
    expect(shown(plan(m, [motd('two')]))).toEqual([
      'n0 deferred: silent /etc/motd',
      'n1 deferred: taken /etc/motd',
      'n2 deferred: unhealthy /etc/motd',
      'n3 in the rollout /etc/motd',
    ]);
    m.commits(2, motd('two'));
    follow(m, 'n3');
    expect(shown(plan(m, [healthWith('tolerant')]))).toEqual(['n2 after the commit /etc/motd']);
  });

  it('and does not count a node that a rollout is changing now', () => {
    const m = fleet(poolWith('report'));
    drifts(m, 'n0', MOTD);
    m.publishes(2, motd('two'));
    m.starts('c2');
    expect(shown(plan(m, [poolWith('overwrite')]))).toEqual([]);
  });

  it('also after a snapshot from before it knew what had drifted', () => {
    const m = fleet(poolWith('report'));
    const { drift: _, ...dumped } = m.core.dump(m.state) as Record<string, unknown>;
    const notReady = [
      ['n0', ['silent', 'drifted']],
      ['n1', ['drifted']],
    ];
    const copy = new LedgerCopy(m.core, m.ledger);
    copy.state = m.core.load(m.core.migrations?.[11]?.({ ...dumped, notReady }), 0);
    expect([[...copy.state.drift.entries()], [...copy.state.notReady.entries()]]).toEqual([
      [
        ['n0', ['… and 1 more']],
        ['n1', ['… and 1 more']],
      ],
      [['n0', ['silent']]],
    ]);
  });
});
