import type { NewFact } from '#libs/contracts';
import {
  accepted,
  committed,
  factOf,
  heard,
  pool,
  reason,
  renderedChange,
  renderedNode,
  reviewedNode,
  silent,
  validated,
} from '#libs/testing';
import { MINUTE, Scheduler } from './scheduler.fixture.js';

const NAMES = ['n0', 'n1'];

/** Three places where people look: the rollout of c1, its list of nodes, and the node itself. */
function shown(s: Scheduler): readonly (string | undefined)[] {
  s.asks({ op: 'rollout.get', change: 'c1', cursor: '', limit: 100 });
  const [answer] = s.answers;
  const listed = answer?.ok === true ? (answer.body as { nodes: readonly Row[] }).nodes : [];
  const { worst } = s.view('rollouts', 'c1');
  return [...[worst, listed].map((rows) => rows.find(({ node }) => node === 'n0')?.reason), s.status('n0').deferred];
}
interface Row {
  readonly node: string;
  readonly reason: string;
}
const everywhere = (reason: string): readonly string[] => [reason, reason, reason];

/** Two nodes of a pool that lets both change at once. */
function edge(): Scheduler {
  const s = new Scheduler();
  s.given(accepted('c0', { apply: [pool('edge', 2)] }), renderedChange('c0', {}), validated('c0')).when();
  return s.given(committed('c0')).fleet(NAMES, { role: 'edge' });
}

/** Another tool has taken n0, and c1 defers it. */
function taken(): Scheduler {
  const s = edge();
  s.asks({ op: 'pool.take', node: 'n0', owner: 'kured', reason: 'a new kernel', by: 'kured' });
  s.rolls('c1', NAMES);
  return s;
}
const give = (s: Scheduler): unknown => s.asks({ op: 'pool.give', node: 'n0', owner: 'kured', by: 'kured' });

describe('a deferred node shows the same reason everywhere', () => {
  it('when it is taken, and then skipped', () => {
    const s = taken();
    expect(shown(s)).toEqual(everywhere('taken by kured: a new kernel'));
    s.skips('n0');
    expect(shown(s)).toEqual(everywhere('skipped by me'));
    expect(s.why('n0')).toMatchObject({ because: 'skipped' });
    give(s);
    expect(shown(s)).toEqual(everywhere('skipped by me'));
  });

  it('when it is given back before the rollout ends', () => {
    const s = taken();
    give(s);
    expect(shown(s)).toEqual(everywhere('was taken by kured: a new kernel'));
    expect(s.why('n0').text).toBe(
      'c1 deferred it (was taken by kured: a new kernel); it gets the committed config once the rollout has ended',
    );
  });

  it('when it is given back after that', () => {
    const s = taken();
    s.applies('n1');
    s.given(committed('c1')).when();
    give(s);
    expect(shown(s)).toEqual(everywhere('was taken by kured: a new kernel'));
  });

  it('when its next lease fails, after the rollout', () => {
    const s = taken();
    s.applies('n1');
    s.given(committed('c1')).when();
    give(s);
    s.leaseEnds('n0', 'failed');
    expect(shown(s)).toEqual(everywhere('corrective lease ended as failed: it is failed'));
    s.after(MINUTE);
    s.applies('n0');
    expect(shown(s)).toEqual([undefined, '', '']);
  });
});

it('a node that was skipped counts as deferred when its change is committed, until it has the config', () => {
  const s = taken();
  s.skips('n0');
  give(s);
  s.applies('n1');
  s.given(committed('c1')).when();
  expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'succeeded', nodes: 2, applied: 1, deferred: 1 });
  s.applies('n0');
  expect(s.view('rollouts', 'c1')).toMatchObject({ phase: 'succeeded', nodes: 2, applied: 2, deferred: 0 });
});

it('the view of an ended rollout is written again when a node is deferred by a later change, and when that ends', () => {
  const s = edge();
  s.given(renderedNode('n0', 'next'), reviewedNode('n0', 'next', [reason('missing-reference')])).nodeReports(
    'n0',
    'other',
  );
  s.given(silent('n0'));
  s.rolls('c1', NAMES);
  s.leaseEnds('n1', 'invalid');
  s.given(
    factOf('config.judged', { hash: 'c1-new', recipe: '', lease: 'n1-l1', change: 'c1', node: 'n1', knownBad: true }),
  ).when();
  s.given(heard('n0')).when();
  const touched = (...facts: readonly NewFact[]): boolean => {
    s.core.takeTouched(s.state);
    s.given(...facts);
    return s.core.takeTouched(s.state).has('rollouts/c1');
  };
  expect(touched(factOf('node.deferred', { node: 'n0', change: 'c2', reason: 'taken' }))).toBe(true);
  expect(shown(s)).toEqual(everywhere('taken'));
  expect(touched(renderedNode('n0', 'last'), reviewedNode('n0', 'last', [reason('missing-reference')]))).toBe(true);
  expect(shown(s)).toEqual(['silent', 'silent', '']);
});
