import { ended, factOf, linesOf } from '#libs/testing';
import { validatorCore } from './index.js';
import { to, Validator } from './validator.fixture.js';

const judged = (facts: readonly unknown[]) => linesOf(facts as never, 'hash', 'lease', 'knownBad', 'clearedBecause');

describe('clearing', () => {
  const knownBad = () => {
    const v = new Validator().started('c1', { n0: to('badbadbad') });
    v.invalid('n0', { hash: 'badbadbad', recipe: 'r-badbadbad' });
    v.given(ended('c1', 'reverted'));
    return v;
  };

  it.each(['badbadbad', 'badbadb', 'r-badbadbad'])(
    'removes hash and recipe, requested as %s, and is final for that lease',
    (hash) => {
      const v = knownBad();
      expect(v.clears(hash)).toMatchObject([
        { type: 'config.cleared', hash: 'badbadbad', recipe: 'r-badbadbad', by: 'me', reason: 'fixed' },
      ]);
      expect(v.answers).toMatchObject([{ ok: true, body: { cleared: true } }]);
      expect(v.when()).toEqual([]);
      expect(linesOf(v.rendered('c2', { n0: to('badbadbad'), n1: to('other', 'old', 'r-badbadbad') }))).toEqual([
        'config.validated',
      ]);
      expect(v.view('known-bad', 'config.badbadbad')).toMatchObject({
        gone: true,
        clearedBy: 'me',
        clearedReason: 'fixed',
      });
      expect(v.view('known-bad', 'recipe.r-badbadbad')).toMatchObject({ gone: true });
    },
  );

  it('touches the views of each recipe and of the config', () => {
    const v = knownBad();
    v.showViews();
    v.given(factOf('config.cleared', { hash: 'badbadbad', recipe: 'r-badbadbad', by: 'me', reason: 'fixed' }));
    expect([...validatorCore.takeTouched(v.state)].sort()).toEqual([
      'known-bad/config.badbadbad',
      'known-bad/recipe.r-badbadbad',
    ]);
    expect([...validatorCore.viewKeys(v.state)].sort()).toEqual([
      'known-bad/config.badbadbad',
      'known-bad/recipe.r-badbadbad',
      'reviews/c1',
    ]);
  });

  it('of a recipe that two configs share clears both', () => {
    const v = knownBad();
    v.started('c2', { n1: to('x') });
    v.invalid('n1', { change: 'c2', hash: 'otherhash', recipe: 'r-badbadbad', lease: 'n1-l1' });
    expect([...linesOf(v.clears('r-badbadbad'), 'hash')].sort()).toEqual([
      'config.cleared badbadbad',
      'config.cleared otherhash',
    ]);
  });

  it('is done once, also if the config is named by a part of its hash or recipe', () => {
    const v = knownBad();
    v.clears('badbadbad');
    v.started('c3', { n0: to('x') });
    v.invalid('n0', { change: 'c3', hash: 'later', recipe: '' });
    v.clears('later');
    for (const name of ['badbadb', 'r-badbadbad', 'r-badba']) {
      expect(v.clears(name)).toEqual([]);
      expect(v.answers).toMatchObject([
        { ok: true, body: { hash: 'badbadbad', recipe: 'r-badbadbad', cleared: true } },
      ]);
    }
    expect(v.clears('badbad')).toEqual([]);
    expect(v.answers).toMatchObject([{ ok: false, code: 'not-found' }]);
  });

  it('keeps other known-bad configs', () => {
    const v = knownBad();
    v.started('c2', { n1: to('worseworse') });
    v.invalid('n1', { change: 'c2', hash: 'worseworse', recipe: 'r-worse' });
    v.clears('badbadbad');
    expect(v.view('known-bad', 'config.worseworse')).toMatchObject({
      hash: 'worseworse',
      recipe: 'r-worse',
      node: 'n1',
      change: 'c2',
      gone: false,
      clearedBy: '',
      clearedReason: '',
    });
    expect(v.view('known-bad', 'recipe.r-worse')).toMatchObject({ hash: 'worseworse', gone: false });
    expect(validatorCore.view(v.state, { bucket: 'known-bad', key: 'config.neverseen' })).toBeUndefined();
    expect(validatorCore.view(v.state, { bucket: 'reviews', key: 'c99' })).toBeUndefined();
  });

  it('is done once if it is requested twice', () => {
    const v = knownBad();
    v.clears('badbadbad');
    expect(v.clears('badbadbad')).toEqual([]);
    expect(v.answers).toMatchObject([{ ok: true }]);
  });

  it('does not stop a later lease from making the config known-bad again', () => {
    const v = knownBad();
    v.clears('badbadbad');
    v.started('c2', { n0: to('badbadbad') });
    expect(judged(v.invalid('n0', { change: 'c2', hash: 'badbadbad', recipe: 'r-badbadbad', lease: 'n0-l2' }))).toEqual(
      ['config.judged badbadbad n0-l2 true'],
    );
    expect(v.view('known-bad', 'config.badbadbad').gone).toBe(false);
  });

  it('clears every recipe that led to the hash', () => {
    const v = knownBad();
    v.started('c2', { n1: to('x') });
    v.invalid('n1', { change: 'c2', hash: 'badbadbad', recipe: 'another', lease: 'n1-l1' });
    const facts = v.clears('badbadbad');
    expect([...linesOf(facts, 'recipe')].sort()).toEqual(['config.cleared another', 'config.cleared r-badbadbad']);
    expect(v.view('known-bad', 'recipe.r-badbadbad').gone).toBe(true);
    expect(v.view('known-bad', 'recipe.another')).toMatchObject({ gone: true, hash: 'badbadbad', recipe: 'another' });
  });

  it.each([
    ['zzzzzzzzz', 'not-found'],
    ['bad', 'not-found'],
  ])('%s is refused as %s', (hash, code) => {
    const v = knownBad();
    expect(v.clears(hash)).toEqual([]);
    expect(v.answers).toMatchObject([{ ok: false, code }]);
  });

  it('is refused for a prefix that is not unique', () => {
    const v = knownBad();
    v.started('c2', { n1: to('badbadboo') });
    v.invalid('n1', { change: 'c2', hash: 'badbadboo', recipe: 'r2' });
    v.clears('badbadb');
    expect(v.answers).toMatchObject([{ ok: false, code: 'conflict' }]);
  });
});

describe('the list of known-bad configs', () => {
  it('has pages', () => {
    const v = new Validator();
    for (const hash of ['b', 'a', 'c']) {
      v.started(`c${hash.charCodeAt(0)}`, { n0: to(hash) });
      v.invalid('n0', { change: `c${hash.charCodeAt(0)}`, hash, recipe: `r-${hash}`, lease: `l-${hash}` });
    }
    v.asks({ op: 'list', cursor: '', limit: 2 });
    expect(v.answers).toMatchObject([{ ok: true, body: { knownBad: [{ hash: 'a' }, { hash: 'b' }], next: 'b' } }]);
    v.asks({ op: 'list', cursor: 'b', limit: 2 });
    expect(v.answers).toMatchObject([{ ok: true, body: { knownBad: [{ hash: 'c' }] } }]);
    const page = (cursor: string, limit: number) => {
      v.asks({ op: 'list', cursor, limit });
      const { knownBad, ...rest } = (
        v.answers[0] as { body: { knownBad: readonly { hash: string; reason: string }[] } }
      ).body;
      return [knownBad.map(({ hash, reason: why }) => `${hash} ${why}`), rest];
    };
    expect(page('', 3)).toEqual([['a', 'b', 'c'].map((hash) => `${hash} the unit does not parse`), {}]);
    expect(page('a', 1)).toEqual([['b the unit does not parse'], { next: 'b' }]);
    expect(page('c', 9)).toEqual([[], {}]);
  });
});

describe('a config that another fleet found to be bad', () => {
  const hash = 'a'.repeat(64);
  const request = {
    op: 'add',
    hash,
    recipe: 'r-a',
    fleet: 'europe',
    node: 'w-1',
    change: 'c7',
    reason: 'a probe failed',
    by: 'me',
  } as const;

  it('becomes known-bad here, with where it was found', () => {
    const v = new Validator();
    expect(v.asks(request)).toMatchObject([
      {
        type: 'config.judged',
        hash,
        recipe: 'r-a',
        fleet: 'europe',
        node: 'w-1',
        change: 'c7',
        lease: '',
        knownBad: true,
      },
    ]);
    expect(v.answers).toMatchObject([{ ok: true, body: { hash, knownBad: true } }]);
    expect(v.view('known-bad', `config.${hash}`)).toMatchObject({ fleet: 'europe', node: 'w-1', gone: false });
    const [rejected] = v.rendered('c1', { n0: to(hash) });
    expect(rejected).toMatchObject({ type: 'config.rejected' });
    expect(JSON.stringify(rejected)).toContain('w-1 of the fleet europe reported it as invalid in c7');
  });

  it('is not added again after it was cleared here, unless it was found to be bad again', () => {
    const v = new Validator();
    const first = { ...request, finding: 'w-1-l4' };
    v.asks(first);
    v.clears(hash);
    expect(v.asks(first)).toEqual([]);
    expect(v.answers).toMatchObject([{ ok: false, code: 'conflict' }]);
    expect(v.asks({ ...first, finding: 'w-1-l5' })).toMatchObject([{ type: 'config.judged', knownBad: true }]);
    expect(v.view('known-bad', `config.${hash}`)).toMatchObject({
      gone: false,
      findings: ['europe w-1-l5'],
      clearedFindings: ['europe w-1-l4'],
    });
    v.clears(hash);
    for (const finding of ['w-1-l4', 'w-1-l5']) expect(v.asks({ ...first, finding })).toEqual([]);
  });

  it('keeps its first story if others find it to be bad, too, and a clear is for all of them', () => {
    const v = new Validator();
    v.asks({ ...request, finding: 'w-1-l4' });
    expect(v.asks({ ...request, fleet: 'asia', node: 'a-1', finding: 'a-1-l1' })).toHaveLength(1);
    expect(v.view('known-bad', `config.${hash}`)).toMatchObject({
      ...{ fleet: 'europe', node: 'w-1' },
      findings: ['europe w-1-l4', 'asia a-1-l1'],
    });
    const clear = { op: 'clear', hash, by: 'me', reason: 'fixed' } as const;
    expect(v.asks({ ...clear, findings: ['europe w-1-l4'] })).toEqual([]);
    expect(v.answers).toMatchObject([{ ok: false, code: 'conflict' }]);
    expect(v.asks({ ...clear, findings: ['europe w-1-l4', 'asia a-1-l1'] })).toHaveLength(1);
    expect(v.asks({ ...request, fleet: 'asia', node: 'a-1', finding: 'a-1-l1' })).toEqual([]);
  });

  it('has an end of findings, so that two fleets cannot fill the ledger', () => {
    const v = new Validator();
    let facts = 0;
    for (let i = 0; i < 300; i++) facts += v.asks({ ...request, finding: `w-1-l${i}` }).length;
    expect(facts).toBe(200);
  });

  it('is known with its finding in a snapshot of an earlier version', () => {
    const v = new Validator();
    v.asks(request);
    const all = validatorCore.dump(v.state) as { knownBad: [string, object][] };
    const knownBad = all.knownBad.map(([key, story]) => [
      key,
      Object.fromEntries(Object.entries(story).filter(([field]) => !field.toLowerCase().endsWith('findings'))),
    ]);
    const state = validatorCore.load(validatorCore.migrations?.[5]?.({ ...all, knownBad }), 0);
    expect(validatorCore.view(state, { bucket: 'known-bad', key: `config.${hash}` })).toMatchObject({
      findings: ['europe c7'],
      clearedFindings: [],
    });
  });

  it('is added once, and also rejects a change that was reviewed before and has not started', () => {
    const v = new Validator();
    expect(linesOf(v.rendered('c1', { n0: to(hash) }))).toEqual(['config.validated']);
    expect(linesOf(v.asks(request))).toEqual(['config.judged', 'config.rejected']);
    expect(v.asks(request)).toEqual([]);
    expect(v.answers).toMatchObject([{ ok: true }]);
  });

  it.each([
    ['is in a rollout', (v: Validator) => v.started('c1', { n0: to(hash) }), 'c1 is rolling'],
    [
      'has the same fragments as one in a rollout',
      (v: Validator) => v.started('c1', { n0: to('x', 'old', 'r-a') }),
      'c1 is rolling',
    ],
    [
      'is in force on a node',
      (v: Validator) => v.given(factOf('node.reported', { node: 'n0', hash, report: 'applied' })),
      'it is the last good config of n0',
    ],
    [
      'was cleared by a person',
      (v: Validator) =>
        v.given(
          factOf('config.judged', { hash, fleet: 'europe', change: 'c7', knownBad: true }),
          factOf('config.cleared', { hash, by: 'me', reason: 'fixed' }),
        ),
      'me cleared it: fixed',
    ],
  ])('is not added if it %s', (_, given, why) => {
    const v = new Validator();
    given(v);
    expect(v.asks(request)).toEqual([]);
    expect(v.answers).toMatchObject([{ ok: false, code: 'conflict', message: expect.stringContaining(why) as string }]);
  });
});
