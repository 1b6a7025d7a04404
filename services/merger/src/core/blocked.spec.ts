import { factOf, file, fragment, joined, pool } from '#libs/testing';
import { changeBody, Merger } from './merger.fixture.js';

describe('a change that needs fragments that do not exist yet', () => {
  let m: Merger;
  const isBlocked = (change: string): void =>
    void m
      .given(
        factOf('config.blocked', {
          change,
          attempt: m.attempt(change),
          needs: ['Vrf/red'],
          reasons: [],
          untilMs: 1_000,
        }),
      )
      .when();
  const queued = (change: string) => [m.phase(change), m.view('changes', change).waitsFor];
  const contents = (): object =>
    Object.fromEntries(
      [...m.state.fragments.values()].flatMap(({ fragment: { kind, name, spec } }) =>
        kind === 'File' ? [[name, spec?.['content']]] : [],
      ),
    );
  /** A fragment of the kind that is needed, on no node. */
  const vrf = fragment('Vrf', 'blue', {
    vrf: 'blue',
    vni: 7,
    routeTarget: '65000:7',
    nodeSelector: { matchLabels: { role: 'none' } },
  });
  beforeEach(() => {
    m = new Merger().fleet(['n1', 'n2']);
  });

  it('holds up no changes of other fragments, also on the same nodes', () => {
    m.publishes(1, file('a', 'x'));
    isBlocked('c1');
    m.publishes(2, file('b', 'x'));
    expect([m.view('changes', 'c1').needs, queued('c2')]).toEqual([['Vrf/red'], ['rendered', []]]);
  });

  it('is named in the plan of a change that needs one of its fragments, and that it needs one of', () => {
    const capabilities = ['kind:File', 'kind:Vrf', 'kind:Layer2Network'];
    m = new Merger().given(joined('n1', {}, { capabilities }));
    const plain = (name: string) => fragment('Vrf', name, { nodeSelector: {}, vrf: name });
    m.publishes(1, file('b', 'refers'), plain('green'));
    isBlocked('c1');
    const pink = fragment('Layer2Network', 'pink', { nodeSelector: {}, id: 200, vrf: 'green' });
    const body = changeBody([pink, plain('red')]);
    m.when({ type: 'request', request: { op: 'plan', id: 'p', body, source: 'other', cursor: '', limit: 9 } });
    expect(m.answers[0]).toMatchObject({
      ok: true,
      body: {
        needs: ['Vrf/green'],
        missing: [{ message: expect.stringContaining('; c1 and this change wait for each other') }],
      },
    });
  });

  it('holds up no newer change of some of its fragments by the same source', () => {
    m.publishes(1, file('a', 'old'), file('b', 'refers'));
    isBlocked('c1');
    m.publishes(2, file('a', 'new'));
    expect(queued('c2')).toEqual(['rendered', []]);
  });

  it('leaves what that change has committed as it is, and says so', () => {
    m.publishes(1, file('a', 'old'), file('b', 'refers'));
    isBlocked('c1');
    m.commits(2, file('a', 'new'));
    expect(queued('c1')).toEqual(['rendered', []]);
    expect(m.view('changes', 'c1').warnings).toMatchObject([{ fragment: 'File/a', code: 'left-to-newer' }]);
    m.starts('c1');
    m.completes('c1');
    expect(m.phase('c1')).toBe('committed');
    expect(contents()).toEqual({ a: 'new', b: 'refers' });
  });

  it('keeps all of its fragments if the newer change is not committed', () => {
    m.publishes(1, file('a', 'old'), file('b', 'refers'));
    isBlocked('c1');
    m.publishes(2, file('a', 'new'));
    m.starts('c2');
    m.given(factOf('rollout.reverting', { change: 'c2' }), factOf('rollout.reverted', { change: 'c2' })).when();
    m.commits(3, vrf);
    m.starts('c1');
    m.completes('c1');
    expect(contents()).toEqual({ a: 'old', b: 'refers' });
  });

  it('waits for a newer change that has passed it, and still leaves it what it has touched', () => {
    m.publishes(1, file('a', 'old'), file('b', 'refers'));
    isBlocked('c1');
    m.publishes(2, file('a', 'new'));
    m.starts('c2');
    m.commits(3, vrf);
    expect(queued('c1')).toEqual(['waiting', ['c2']]);
    m.completes('c2');
    m.starts('c1');
    m.completes('c1');
    expect(contents()).toEqual({ a: 'new', b: 'refers' });
  });

  it('takes its turn before a newer change that has not started when the reference appears', () => {
    m.publishes(1, file('a', 'old'), file('b', 'refers'));
    isBlocked('c1');
    m.publishes(2, file('a', 'new'));
    m.commits(3, vrf);
    expect([queued('c1'), queued('c2')]).toEqual([
      ['rendered', []],
      ['waiting', ['c1']],
    ]);
  });

  it('ends if newer changes have touched all of its fragments', () => {
    m.publishes(1, file('a', 'old'), { gone: { kind: 'File', name: 'b' } });
    isBlocked('c1');
    m.commits(2, file('a', 'new'));
    isBlocked('c1');
    m.commits(3, file('b', 'new'));
    expect(m.view('changes', 'c1')).toMatchObject({
      phase: 'ended',
      outcome: 'superseded',
      reason: 'newer changes have touched all of its fragments: c2, c3',
    });
  });

  it('holds up changes of its fragments by another source, and of its pools', () => {
    m.publishes(1, file('a', 'old'), file('b', 'refers'), pool('edge', 1));
    isBlocked('c1');
    m.publishesText(2, JSON.stringify(changeBody([file('a', 'new')])), 'other');
    m.publishes(3, pool('edge', 2));
    expect([queued('c2'), queued('c3')]).toEqual([
      ['waiting', ['c1']],
      ['waiting', ['c1']],
    ]);
  });

  it('is replaced by a change of all its fragments', () => {
    m.publishes(1, file('a', 'old'), file('b', 'refers'));
    isBlocked('c1');
    m.publishes(2, file('a', 'new'), file('b', 'alone'));
    expect(queued('c2')).toEqual(['rendered', []]);
    m.starts('c2', ['c1']);
    expect(m.phase('c1')).toBe('ended');
  });

  it('holds up no correction of what rolls out', () => {
    m.publishes(1, file('a', 'bad'));
    m.starts('c1');
    m.publishes(2, file('a', 'better'), file('b', 'refers'));
    isBlocked('c2');
    m.publishes(3, file('a', 'good'));
    expect(queued('c3')).toEqual(['rendered', []]);
    m.starts('c3', ['c1']);
    m.completes('c3');
    m.starts('c2');
    m.completes('c2');
    expect(contents()).toEqual({ a: 'good', b: 'refers' });
  });
});

it('a change that waits shows by whom and why it is paused, until it is resumed or has ended', () => {
  const m = new Merger().fleet(['n0']);
  m.publishes(1, file('a', 'x'));
  m.publishes(2, file('b', 'x'));
  const paused = (reason: string) => factOf('rollout.paused', { change: 'c2', by: 'ada', reason });
  const shown = () => m.view('changes', 'c2');
  m.given(paused('not now')).when();
  expect(shown()).toMatchObject({ phase: 'waiting', waitsFor: ['c1'], paused: 'by ada: not now' });
  m.given(factOf('rollout.resumed', { change: 'c2', by: 'ada' })).when();
  expect(shown()).toMatchObject({ phase: 'waiting', paused: '' });
  m.given(paused('')).when();
  expect(shown()).toMatchObject({ paused: 'by ada' });
  m.given(factOf('rollout.aborted', { change: 'c2', reason: 'no' })).when();
  expect(shown()).toMatchObject({ phase: 'ended', paused: '' });
});
