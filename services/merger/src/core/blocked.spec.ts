import { factOf, file } from '#libs/testing';
import { Merger } from './merger.fixture.js';

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
  beforeEach(() => {
    m = new Merger().fleet(['n1', 'n2']);
  });

  it('holds up no changes of other fragments, also on the same nodes', () => {
    m.publishes(1, file('a', 'x'));
    isBlocked('c1');
    m.publishes(2, file('b', 'x'));
    expect([m.view('changes', 'c1').needs, queued('c2')]).toEqual([['Vrf/red'], ['rendered', []]]);
  });

  it('holds up changes of some of its fragments, which it would otherwise overwrite later', () => {
    m.publishes(1, file('a', 'old'), file('b', 'refers'));
    isBlocked('c1');
    m.publishes(2, file('a', 'new'));
    expect(queued('c2')).toEqual(['waiting', ['c1']]);
  });

  it('is replaced by a change of all its fragments', () => {
    m.publishes(1, file('a', 'old'), file('b', 'refers'));
    isBlocked('c1');
    m.publishes(2, file('a', 'new'), file('b', 'alone'));
    expect(queued('c2')).toEqual(['rendered', []]);
    m.starts('c2', ['c1']);
    expect(m.phase('c1')).toBe('ended');
  });

  it('holds up a correction of what rolls out, too, until one of them is aborted', () => {
    m.publishes(1, file('a', 'bad'));
    m.starts('c1');
    m.publishes(2, file('a', 'better'), file('b', 'refers'));
    isBlocked('c2');
    m.publishes(3, file('a', 'good'));
    expect(queued('c3')).toEqual(['waiting', ['c1', 'c2']]);
    m.given(factOf('rollout.aborted', { change: 'c2', reason: '' })).when();
    expect(queued('c3')).toEqual(['rendered', []]);
  });
});
