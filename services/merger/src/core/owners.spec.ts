import type { FactOf, NewFact } from '#libs/contracts';
import { file, linesOf } from '#libs/testing';
import { mergerCore, publishedInput } from './index.js';
import { changeBody, Merger, sha256, type MessageHead } from './merger.fixture.js';

const DAY_MS = 24 * 3_600_000;
type Content = Parameters<typeof changeBody>[0];

const publish = (
  m: Merger,
  source: string,
  sequence: number,
  content: Content,
  { takeOver, ...head }: MessageHead & { readonly takeOver?: boolean } = {},
): readonly NewFact[] =>
  m.publishesText(
    sequence,
    JSON.stringify({ ...changeBody(content), ...(takeOver ? { takeOver } : {}) }),
    source,
    head,
  );

/** Ci has created File/a, and it is committed. */
function ownedByCi(): Merger {
  const m = new Merger().fleet(['n0']);
  publish(m, 'ci', 1, [file('a', 'ci')]);
  m.starts('c1');
  m.completes('c1');
  return m;
}

const ownerOf = (m: Merger, name: string): string => m.view('fragments', `File.${name}`).source;
const problemsOf = (facts: readonly NewFact[]): readonly (readonly string[])[] =>
  facts.flatMap((fact) =>
    fact.type === 'config.rendered' ? fact.problems.map(({ fragment, code }) => [fragment, code]) : [],
  );

describe('a fragment', () => {
  it('belongs to the source that created it, and the view says so', () => {
    const m = ownedByCi();
    expect(ownerOf(m, 'a')).toBe('ci');
    expect(m.view('changes', 'c1').source).toBe('ci');
  });

  it.each([
    ['changed', [file('a', 'mine')]],
    ['deleted', [{ gone: { kind: 'File', name: 'a' } }]],
  ] as const)('may not be %s by another source', (_what, content) => {
    const [rendered] = publish(ownedByCi(), 'me', 2, content).filter(({ type }) => type === 'config.rendered');
    expect((rendered as FactOf<'config.rendered'> | undefined)?.problems).toEqual([
      {
        fragment: 'File/a',
        field: '',
        code: 'owned-by',
        message: expect.stringMatching(/^belongs to the source ci: .* --take-over/) as string,
        nodes: [],
      },
    ]);
  });

  it('may be changed and deleted by its own source', () => {
    const m = ownedByCi();
    expect(problemsOf(publish(m, 'ci', 2, [file('a', 'again')]))).toEqual([]);
  });

  it('belongs to the source that took it over, once that is committed', () => {
    const m = ownedByCi();
    expect(problemsOf(publish(m, 'me', 2, [file('a', 'mine')], { takeOver: true }))).toEqual([]);
    expect(ownerOf(m, 'a')).toBe('ci');
    m.starts('c2');
    m.completes('c2');
    expect(ownerOf(m, 'a')).toBe('me');
    expect(problemsOf(publish(m, 'ci', 3, [file('a', 'ci')]))).toEqual([['File/a', 'owned-by']]);
  });

  it('that was deleted may be created by anybody', () => {
    const m = ownedByCi();
    publish(m, 'ci', 2, [{ gone: { kind: 'File', name: 'a' } }]);
    m.starts('c2');
    m.completes('c2');
    expect(problemsOf(publish(m, 'me', 3, [file('a', 'mine')]))).toEqual([]);
  });
});

describe('a correction', () => {
  it('of the change of another source waits for that change', () => {
    const m = new Merger().fleet(['n0']);
    publish(m, 'ci', 1, [file('a', 'ci')]);
    m.starts('c1');
    expect(linesOf(publish(m, 'me', 2, [file('a', 'mine')]), 'change')).toEqual([
      'config.accepted c2',
      'config.waiting c2',
    ]);
  });

  it('that may take over replaces the change of another source', () => {
    const m = new Merger().fleet(['n0']);
    publish(m, 'ci', 1, [file('a', 'ci')]);
    m.starts('c1');
    const facts = publish(m, 'me', 2, [file('a', 'mine')], { takeOver: true });
    expect(facts.at(-1)).toMatchObject({ type: 'config.rendered', change: 'c2', replaces: ['c1'] });
  });

  it('of a change that takes over, takes over as well', () => {
    const m = ownedByCi();
    publish(m, 'me', 2, [file('a', 'mine')], { takeOver: true });
    m.starts('c2');
    const facts = publish(m, 'me', 3, [file('a', 'better')]);
    expect(facts.at(-1)).toMatchObject({ type: 'config.rendered', change: 'c3', replaces: ['c2'], problems: [] });
  });
});

describe('an id', () => {
  const types = (facts: readonly NewFact[]): readonly string[] => linesOf(facts, 'change', 'duplicateOf');

  it('makes a change that is published again a duplicate of the first', () => {
    const m = new Merger().fleet(['n0']);
    publish(m, 'ci', 1, [file('a', 'x')], { id: 'build-42' });
    expect(types(publish(m, 'ci', 2, [file('a', 'x')], { id: 'build-42' }))).toEqual(['config.deduplicated c2 c1']);
    expect(m.view('changes', 'c2')).toMatchObject({
      phase: 'ended',
      outcome: 'duplicate',
      duplicateOf: 'c1',
      source: 'ci',
      reason: 'ci published it before, as c1',
    });
    expect(m.core.cursor?.(m.state)).toBe(2);
  });

  it('is read from its header, however that is written', () => {
    const message = { sequence: 1, subject: 'config.desired.ci', text: '', storedMs: 1 };
    const read = (headers: Readonly<Record<string, string>>): object => publishedInput({ ...message, headers });
    expect(read({ 'Nats-Time-Stamp': 'x', 'sluice-id': 'build-42' })).toMatchObject({ source: 'ci', id: 'build-42' });
    expect(read({ 'Nats-Msg-Id': 'build-42' })).toMatchObject({ id: undefined });
  });

  it('of one source does not swallow the change of another', () => {
    const m = new Merger().fleet(['n0']);
    publish(m, 'mallory', 1, [file('b', 'x')], { id: 'build-42' });
    expect(types(publish(m, 'ci', 2, [file('a', 'x')], { id: 'build-42' }))[0]).toBe('config.accepted c2');
  });

  it('is remembered when the first change has ended, and after a start from a snapshot', () => {
    const m = ownedByCi();
    publish(m, 'ci', 2, [file('a', 'y')], { id: 'build-42' });
    m.starts('c2');
    m.completes('c2');
    const again = m.core.load(JSON.parse(JSON.stringify(m.core.dump(m.state))), 0);
    expect(again.firstUses.get('ci/build-42')).toMatchObject({ change: 'c2' });
    expect(types(publish(m, 'ci', 3, [file('a', 'y')], { id: 'build-42' }))).toEqual(['config.deduplicated c3 c2']);
  });

  it('with other content is refused, and names the first change', () => {
    const m = new Merger().fleet(['n0']);
    publish(m, 'ci', 1, [file('a', 'x')], { id: 'build-42' });
    expect(publish(m, 'ci', 2, [file('a', 'y')], { id: 'build-42' })).toMatchObject([
      {
        type: 'config.rejected',
        source: 'ci',
        reasons: [
          { code: 'id-reused', message: expect.stringContaining('c1 with the same Sluice-Id "build-42"') as string },
        ],
      },
    ]);
  });

  it('may be used again after 24 hours', () => {
    const m = new Merger().fleet(['n0']);
    const again = (sequence: number, storedMs: number): string | undefined =>
      types(publish(m, 'ci', sequence, [file('a', 'x')], { id: 'nightly', storedMs }))[0];
    expect(again(1, 0)).toBe('config.accepted c1');
    expect(again(2, DAY_MS)).toBe('config.deduplicated c2 c1');
    expect(again(3, DAY_MS + 1)).toBe('config.accepted c3');
  });

  it.each(['', 'x'.repeat(257)])('of a wrong length is refused', (id) => {
    expect(publish(new Merger().fleet(['n0']), 'ci', 1, [file('a', 'x')], { id })).toMatchObject([
      { type: 'config.rejected', reasons: [{ code: 'bad-id' }] },
    ]);
  });

  const used = (n: number, source: string): NewFact =>
    ({
      type: 'config.accepted',
      change: `c${n}`,
      source,
      apply: [],
      delete: [],
      message: '',
      author: '',
      retryOf: '',
      storedMs: n,
      messageId: { id: `${n}`, digest: '' },
    }) as NewFact;

  it('is forgotten when there are too many: the oldest of the source that uses the most', () => {
    const m = new Merger();
    m.given(used(1, 'ci'));
    for (let n = 2; n <= 10_001; n += 1) m.given(used(n, 'flood'));
    expect(m.state.firstUses.size).toBe(5_001);
    expect(['ci/1', 'flood/5001', 'flood/5002'].map((key) => m.state.firstUses.has(key))).toEqual([true, false, true]);
  });

  it('is forgotten when too many sources use one each: the oldest', () => {
    const m = new Merger();
    for (let n = 1; n <= 10_001; n += 1) m.given(used(n, `s${n}`));
    expect([m.state.firstUses.size, m.state.firstUses.has('s5000/5000')]).toEqual([5_001, false]);
    expect(m.state.firstUses.has('s5001/5001')).toBe(true);
  });
});

const REFUSED = { type: 'config.rejected', stage: 'schema', attempt: 0, reasons: [] } as const;

describe('the quota of a source', () => {
  const large = (sequence: number): Content => [file('a', `${sequence} ${'x'.repeat(3_000)}`)];
  const outcomes = (facts: readonly NewFact[]): readonly string[] =>
    facts.flatMap((fact) =>
      fact.type === 'config.accepted'
        ? [`${fact.change} accepted`]
        : fact.type === 'config.rejected'
          ? fact.reasons.map(({ code }) => `${fact.change} ${code}`)
          : [],
    );

  it('refuses the source that exceeds it, by name, until the next day, and no other source', () => {
    const m = new Merger(undefined, mergerCore(sha256, 9_000)).fleet(['n0']);
    const publishes = (source: string, sequence: number, storedMs: number): readonly NewFact[] =>
      publish(m, source, sequence, large(sequence), { storedMs });
    expect([1, 2, 3].flatMap((n) => outcomes(publishes('ci', n, n)))).toEqual([
      'c1 accepted',
      'c2 accepted',
      'c3 over-quota',
    ]);
    expect(m.view('changes', 'c3')).toMatchObject({
      phase: 'rejected',
      source: 'ci',
      reasons: [
        {
          message: expect.stringMatching(/^the source ci would exceed .* 0\.009 MB.* SLUICE_SOURCE_QUOTA_MB/) as string,
        },
      ],
    });
    expect(outcomes(publishes('me', 4, 4))).toEqual(['c4 accepted']);
    expect(outcomes(publishes('ci', 5, DAY_MS - 1))).toEqual(['c5 over-quota']);
    expect(outcomes(publishes('ci', 6, DAY_MS))).toEqual(['c6 accepted']);
  });

  it('shows the message and the author of what it refuses, as far as they can be read', () => {
    const m = new Merger(undefined, mergerCore(sha256, 2_000)).fleet(['n0']);
    const body = { ...changeBody(large(1)), message: `why ${'y'.repeat(300)}`, author: 'mia' };
    m.publishesText(1, JSON.stringify(body), 'ci');
    const [{ code = '' } = {}] = m.view('changes', 'c1').reasons;
    expect([code, m.view('changes', 'c1')]).toMatchObject([
      'over-quota',
      { message: body.message.slice(0, 200), author: 'mia' },
    ]);
    m.publishesText(2, JSON.stringify({ apply: [1], message: 'short', author: 7 }), 'me');
    expect(m.view('changes', 'c2')).toMatchObject({ phase: 'rejected', message: 'short', author: '' });
    for (const [i, text] of ['null', '"text"', '{', `[${'x'.repeat(3_000)}`].entries()) {
      m.publishesText(i + 3, text, 'odd');
      expect(m.view('changes', `c${i + 3}`)).toMatchObject({ phase: 'rejected', message: '', author: '' });
    }
  });

  it('answers the first 1,000 changes of a day that exceed it, and then one of 100, so that the ledger stays small', () => {
    const m = new Merger(undefined, mergerCore(sha256, 3_000)).fleet(['n0']);
    const refused = (from: number, to: number, storedMs: number): readonly NewFact[] =>
      Array.from({ length: to - from + 1 }, (_, i) => publish(m, 'ci', from + i, large(1), { storedMs })).flat();
    for (let n = 1; n <= 998; n += 1) m.given({ ...REFUSED, change: `c${n}`, source: 'ci', storedMs: 1 });
    expect(outcomes(refused(999, 1_000, 1))).toEqual(['c999 over-quota', 'c1000 over-quota']);
    expect(outcomes(refused(1_098, 1_101, 2))).toEqual(['c1100 over-quota']);
    expect(outcomes(refused(1_199, 1_202, 2))).toEqual(['c1200 over-quota']);
    // Others are answered as ever, and what was passed over stays so, also if it is read again.
    expect(outcomes(publish(m, 'me', 1_251, large(1).slice(1), { storedMs: 3 }))).not.toContain('c1251 over-quota');
    expect(refused(1_252, 1_253, 4)).toEqual([]);
    expect(refused(1_252, 1_253, 4)).toEqual([]);
    expect(outcomes(refused(1_254, 1_254, DAY_MS))).toEqual(['c1254 over-quota']);
  });

  it('also counts changes that are invalid or repeated', () => {
    const m = new Merger(undefined, mergerCore(sha256, 9_000)).fleet(['n0']);
    m.publishesText(1, '{'.repeat(3_000), 'ci');
    expect(outcomes(publish(m, 'ci', 2, large(2), { id: '1' }))).toEqual(['c2 accepted']);
    expect(outcomes(publish(m, 'ci', 3, large(2), { id: '1' }))).toEqual(['c3 over-quota']);
  });

  it('counts the reasons of what is rejected: a small message can have many', () => {
    const m = new Merger(undefined, mergerCore(sha256, 20_000)).fleet(['n0']);
    const many = JSON.stringify({ apply: Array.from({ length: 200 }, () => 1) });
    expect(outcomes(m.publishesText(1, many, 'ci')).length).toBeGreaterThan(100);
    expect(outcomes(m.publishesText(2, many, 'ci'))).toEqual(['c2 over-quota']);
  });

  it('is one for all sources with invalid names', () => {
    const m = new Merger(undefined, mergerCore(sha256, 3_000)).fleet(['n0']);
    expect([1, 2, 3].flatMap((n) => outcomes(m.publishesText(n, '{}', `Bad.${n}`)))).toEqual([
      'c1 bad-source',
      'c2 bad-source',
      'c3 over-quota',
    ]);
    expect(outcomes(publish(m, 'ci', 4, large(1).slice(0, 0)))).not.toContain('c4 over-quota');
  });

  it('is one for all sources after the first 1,000 of a day', () => {
    const m = new Merger(undefined, mergerCore(sha256, 9_000));
    for (let n = 1; n <= 1_000; n += 1) {
      const head = { change: `c${n}`, source: `s${n}`, storedMs: n, bytes: 1_001 };
      m.given({ ...REFUSED, ...head });
    }
    expect(outcomes(publish(m, 'x1', 1_001, large(1), { storedMs: 1 }))).toEqual(['c1001 accepted']);
    expect(outcomes(publish(m, 'x2', 1_002, large(2), { storedMs: 1 }))).toEqual(['c1002 accepted']);
    const [refused] = publish(m, 'x3', 1_003, large(3), { storedMs: 1 });
    expect(refused).toMatchObject({
      reasons: [
        { code: 'over-quota', message: expect.stringMatching(/^1000 other sources .* so x3 and all/) as string },
      ],
    });
    expect(outcomes(publish(m, 's1', 1_004, large(4), { storedMs: 1 }))).toEqual(['c1004 accepted']);
    expect(outcomes(publish(m, 'x3', 1_005, large(5), { storedMs: DAY_MS }))).toEqual(['c1005 accepted']);
    expect(m.state.usage.size).toBe(1);
  });
});
