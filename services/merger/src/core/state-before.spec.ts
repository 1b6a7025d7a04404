import type { FactOf, Fragment, NewFact } from '#libs/contracts';
import { factOf, file, linesOf } from '#libs/testing';
import { API_VERSION } from '#libs/manifests';
import { Merger } from './merger.fixture.js';
import { stateBefore, whyNoRetry } from './index.js';

const gone = (name: string) => ({ gone: { kind: 'File', name } });
const rollback = (m: Merger, sequence: number, change: string, source = 'me', more: object = {}): readonly NewFact[] =>
  m.publishesText(sequence, JSON.stringify({ rollbackOf: change, ...more }), source);
const acceptedIn = (facts: readonly NewFact[]): FactOf<'config.accepted'> =>
  facts.find(({ type }) => type === 'config.accepted') as FactOf<'config.accepted'>;
const rejectionIn = (facts: readonly NewFact[]): string =>
  facts.flatMap((fact) => (fact.type === 'config.rejected' ? fact.reasons.map(({ message }) => message) : [])).join();
const commit = (m: Merger, change: string): void => {
  m.starts(change);
  m.completes(change);
};
const contents = (m: Merger): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    [...m.state.fragments.values()].map(({ fragment }: { fragment: Fragment }) => [
      fragment.name,
      (fragment.spec as { content?: string } | undefined)?.content,
    ]),
  );

/** c1 has created a and b; c2 has changed a, deleted b and created c. */
function changedTwice(): Merger {
  const m = new Merger().fleet(['n0']);
  m.commits(1, file('a', '1'), file('b', '1'));
  m.commits(2, file('a', '2'), gone('b'), file('c', '2'));
  return m;
}

describe('a rollback', () => {
  it('publishes the state before the change, deletions included', () => {
    const m = changedTwice();
    const facts = rollback(m, 3, 'c2');
    expect(acceptedIn(facts)).toMatchObject({
      change: 'c3',
      source: 'me',
      rollbackOf: 'c2',
      apply: [file('a', '1'), file('b', '1')],
      delete: [{ kind: 'File', name: 'c' }],
    });
    commit(m, 'c3');
    expect(contents(m)).toEqual({ a: '1', b: '1' });
    expect(m.view('changes', 'c3')).toMatchObject({ rollbackOf: 'c2', phase: 'committed' });
  });

  it('can be rolled back itself', () => {
    const m = changedTwice();
    rollback(m, 3, 'c2');
    commit(m, 'c3');
    rollback(m, 4, 'c3');
    commit(m, 'c4');
    expect(contents(m)).toEqual({ a: '2', c: '2' });
  });

  it('gives back what the change took over', () => {
    const m = new Merger().fleet(['n0']);
    const publish = (sequence: number, source: string, content: string, more: object = {}): void => {
      const manifest = {
        apiVersion: API_VERSION,
        kind: 'File',
        metadata: { name: 'a' },
        spec: { nodeSelector: {}, path: '/etc/a', content },
      };
      m.publishesText(sequence, JSON.stringify({ apply: [manifest], ...more }), source);
      commit(m, `c${sequence}`);
    };
    publish(1, 'ci', '1');
    publish(2, 'me', '2', { takeOver: true });
    rollback(m, 3, 'c2', 'me');
    commit(m, 'c3');
    expect(m.view('fragments', 'File.a')).toMatchObject({ source: 'ci', change: 'c3' });
    const facts = rollback(m, 4, 'c3', 'me', { takeOver: true });
    expect(facts.at(-1)).toMatchObject({ type: 'config.rendered', problems: [] });
    commit(m, 'c4');
    expect(m.view('fragments', 'File.a')).toMatchObject({ source: 'me', change: 'c4' });
    expect(contents(m)).toEqual({ a: '2' });
  });

  it('of another source needs to take over', () => {
    const m = changedTwice();
    const problems = (facts: readonly NewFact[]): readonly string[] =>
      facts.flatMap((fact) => (fact.type === 'config.rendered' ? fact.problems.map(({ code }) => code) : []));
    expect(problems(rollback(m, 3, 'c2', 'other'))).toEqual(['owned-by', 'owned-by']);
    const again = changedTwice();
    expect(problems(rollback(again, 3, 'c2', 'other', { takeOver: true }))).toEqual([]);
  });

  it('is possible after hundreds of other changes, as long as no later one touched all its fragments', () => {
    const m = changedTwice();
    const reject = (from: number, to: number): void => {
      const changes = Array.from({ length: to - from + 1 }, (_, i) => `c${from + i}`);
      m.given(
        ...changes.map((change) => factOf('config.rejected', { stage: 'schema', change, attempt: 0, reasons: [] })),
      );
    };
    m.commits(3, file('z', '1'));
    for (let n = 4; n <= 210; n += 1) m.commits(n, file('y', String(n)));
    reject(211, 2_200);
    expect(stateBefore(m.state, 'c2')).toMatchObject({ ok: true });
    expect(m.state.changes.size).toBeLessThan(1_700);
    m.commits(2_201, file('a', '3'), file('b', '3'), file('c', '3'));
    reject(2_202, 3_900);
    expect([stateBefore(m.state, 'c2'), m.state.changes.has('c3')]).toMatchObject([{ code: 'not-found' }, true]);
    const again = m.core.load(JSON.parse(JSON.stringify(m.core.dump(m.state))), 0);
    expect([...again.lastOf.entries()].sort()).toEqual([...m.state.lastOf.entries()].sort());
  });

  it('works after a start from a snapshot', () => {
    const m = changedTwice();
    const again = m.core.load(JSON.parse(JSON.stringify(m.core.dump(m.state))), 0);
    expect(stateBefore(again, 'c2')).toEqual(stateBefore(m.state, 'c2'));
  });

  it.each<[what: string, m: () => Merger, change: string, message: RegExp]>([
    [
      'later changes touched the same fragments',
      () => {
        const m = changedTwice();
        m.commits(3, file('a', '3'));
        m.publishes(4, file('c', '4'));
        return m;
      },
      'c2',
      /^later changes touched the same fragments \(File\/a by c3, File\/c by c4\): run sluice apply/,
    ],
    [
      'a later change deleted the fragment',
      () => {
        const m = changedTwice();
        m.commits(3, gone('c'));
        return m;
      },
      'c2',
      /File\/c by c3/,
    ],
    ['it is unknown', changedTwice, 'c9', /^change c9 not found/],
    [
      'it has not ended',
      () => {
        const m = changedTwice();
        m.publishes(3, file('z', '1'));
        return m;
      },
      'c3',
      /^c3 has not ended: .* sluice abort c3$/,
    ],
    [
      'it was rejected',
      () => {
        const m = changedTwice();
        m.publishesText(3, '{');
        return m;
      },
      'c3',
      /^c3 was rejected: /,
    ],
    [
      'it changed nothing',
      () => {
        const m = changedTwice();
        m.commits(3, gone('nothing'));
        return m;
      },
      'c3',
      /^c3 changed nothing/,
    ],
    [
      'it deleted only what was deleted before',
      () => {
        const m = changedTwice();
        m.commits(3, gone('b'));
        return m;
      },
      'c3',
      /^c3 changed nothing/,
    ],
  ])('is refused if %s', (_what, prepared, change, message) => {
    const m = prepared();
    expect(stateBefore(m.state, change)).toMatchObject({
      ok: false,
      message: expect.stringMatching(message) as string,
    });
    expect(rejectionIn(rollback(m, 9, change))).toMatch(message);
  });

  it('decides on the content when it is read, so a faster change is never overwritten', () => {
    const m = changedTwice();
    expect(stateBefore(m.state, 'c2')).toMatchObject({ ok: true });
    m.commits(3, file('a', '3'));
    expect(linesOf(rollback(m, 4, 'c2'), 'change')).toEqual(['config.rejected c4']);
    expect(contents(m)).toEqual({ a: '3', c: '2' });
  });
});

describe('a retry', () => {
  const REFUSED = /^later changes touched the same fragments \(File\/a by c3\): run sluice apply/;
  const retryOfA = (m: Merger, sequence: number, retryOf: string): readonly NewFact[] =>
    m.publishesText(
      sequence,
      JSON.stringify({ apply: [{ ...MANIFEST, spec: { ...MANIFEST.spec, content: 'old' } }], retryOf }),
    );
  const MANIFEST = {
    apiVersion: API_VERSION,
    kind: 'File',
    metadata: { name: 'a' },
    spec: { nodeSelector: {}, path: '/etc/a' },
  };
  /** c1 has committed a, and c2, which changed it, was reverted. */
  const reverted = (): Merger => {
    const m = new Merger().fleet(['n0']);
    m.commits(1, file('a', '1'));
    m.publishes(2, file('a', '2'));
    m.starts('c2');
    m.given(factOf('rollout.reverted', { change: 'c2', reason: 'no' })).when();
    return m;
  };

  it('of a reverted change is accepted if no later change touched its fragments', () => {
    const m = reverted();
    m.commits(3, file('b', '3'));
    expect(whyNoRetry(m.state, 'c2')).toBeUndefined();
    expect(acceptedIn(retryOfA(m, 4, 'c2'))).toMatchObject({ change: 'c4', retryOf: 'c2' });
  });

  it.each<[what: string, touch: (m: Merger) => void]>([
    ['was committed', (m) => m.commits(3, file('a', '3'))],
    ['deleted it', (m) => m.commits(3, gone('a'))],
    ['is open', (m) => m.publishes(3, file('a', '3'))],
  ])('of a reverted change is refused if a later change of the same fragment %s', (_what, touch) => {
    const m = reverted();
    touch(m);
    expect(whyNoRetry(m.state, 'c2')).toMatch(REFUSED);
    expect(rejectionIn(retryOfA(m, 4, 'c2'))).toMatch(REFUSED);
  });

  it('is refused for what it publishes, also when the merger no longer remembers the change', () => {
    const m = reverted();
    m.commits(3, file('a', '3'));
    m.state.changes.delete('c2');
    expect(rejectionIn(retryOfA(m, 4, 'c2'))).toMatch(REFUSED);
  });
});
