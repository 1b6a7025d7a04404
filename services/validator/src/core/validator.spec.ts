import type { NewFact, Reason } from '#libs/contracts';
import {
  accepted,
  ended,
  factOf,
  file,
  joined,
  linesOf,
  pool,
  reason,
  renderedChange,
  renderedNode,
  reviewedNode,
  validated,
} from '#libs/testing';
import { to, Validator } from './validator.fixture.js';

const reasonsOf = (fact: NewFact | undefined): readonly Reason[] =>
  fact?.type === 'config.rejected' ? fact.reasons : [];

describe('a review', () => {
  it('names its attempt', () => {
    expect(linesOf(new Validator().rendered('c1', { n0: to('new') }, 3), 'change', 'attempt')).toEqual([
      'config.validated c1 3',
    ]);
  });

  it('is one answer with every reason, including those of rendering', () => {
    const v = new Validator();
    v.reasons = [reason('conflict'), reason('capability')];
    v.given(
      accepted('c1'),
      renderedChange('c1', { n0: to('new') }, { problems: [{ ...reason('unknown-key'), field: 'spec.content' }] }),
    );
    const [fact] = v.when();
    expect(fact).toMatchObject({ type: 'config.rejected', stage: 'review', attempt: 1 });
    expect(
      reasonsOf(fact)
        .map(({ code }) => code)
        .sort(),
    ).toEqual(['capability', 'conflict', 'unknown-key']);
    expect(v.view('reviews', 'c1')).toMatchObject({ verdict: 'rejected', attempt: 1 });
  });

  it('skips fields that could not be rendered', () => {
    const v = new Validator();
    v.reasons = [
      { ...reason('bad-path'), fragment: 'File/a', field: 'spec.path' },
      { ...reason('capability'), fragment: 'File/a', field: 'kind' },
    ];
    v.given(
      accepted('c1'),
      renderedChange(
        'c1',
        { n0: to('new') },
        { problems: [{ ...reason('unknown-key'), fragment: 'File/a', field: 'spec.path' }] },
      ),
    );
    expect(reasonsOf(v.when()[0]).map(({ code }) => code)).toEqual(['unknown-key', 'capability']);
  });

  it('is given once for an attempt', () => {
    const v = new Validator();
    v.rendered('c1', { n0: to('new') });
    expect(v.when()).toEqual([]);
    expect(v.reviews).toBe(1);
  });

  it('is repeated for another attempt', () => {
    const v = new Validator();
    v.rendered('c1', { n0: to('new') });
    expect(linesOf(v.given(renderedChange('c1', { n0: to('new') }, { attempt: 2 })).when(), 'attempt')).toEqual([
      'config.validated 2',
    ]);
  });

  it('also names nodes on which the committed state does not fit', () => {
    const v = new Validator();
    v.incompatible = ['n7'];
    expect(v.rendered('c1', { n0: to('new') })).toMatchObject([{ type: 'config.validated', incompatible: ['n7'] }]);
  });

  it("of two changes checks each change's own targets only", () => {
    const v = new Validator().given(
      accepted('c1'),
      accepted('c2'),
      renderedChange('c1', { n0: to('x') }),
      renderedChange('c2', { n1: to('y') }, { attempt: 4 }),
    );
    expect(v.decide().needs).toMatchObject([
      { do: 'review-change', change: 'c1', targets: { n0: { to: 'x' } } },
      { do: 'review-change', change: 'c2', targets: { n1: { to: 'y' } } },
    ]);
    expect(linesOf(v.when(), 'change', 'attempt')).toEqual(['config.validated c1 1', 'config.validated c2 4']);
  });

  it('that was gathered for another attempt does not count', () => {
    const v = new Validator().given(accepted('c1'), renderedChange('c1', { n0: to('x') }));
    const gathered = new Map(
      v
        .decide()
        .needs.map(({ key }) => [key, { did: 'review-change' as const, reasons: [], warnings: [], incompatible: [] }]),
    );
    v.given(renderedChange('c1', { n0: to('y') }, { attempt: 2 }));
    const decision = v.decide([], gathered);
    expect([decision.facts, decision.needs.map((need) => need.do)]).toEqual([[], ['review-change']]);
  });

  it('lists warnings, and does not refuse because of them', () => {
    const v = new Validator();
    v.warnings = [reason('deprecated')];
    expect(v.rendered('c1', { n0: to('new') })).toMatchObject([
      { type: 'config.validated', warnings: [{ code: 'deprecated' }] },
    ]);
    expect(v.view('reviews', 'c1')).toMatchObject({
      change: 'c1',
      attempt: 1,
      verdict: 'validated',
      reasons: [],
      warnings: [{ code: 'deprecated' }],
    });
  });

  it('rejects a strict change with the warnings of rendering and of the review', () => {
    const v = new Validator();
    v.warnings = [reason('deprecated')];
    const rendered = (change: string, strict: boolean) =>
      v
        .given(
          accepted(change),
          renderedChange(change, { n0: to('one') }, { strict, warnings: [reason('selects-nothing')] }),
        )
        .when();
    expect(rendered('c1', false)).toMatchObject([{ type: 'config.validated', warnings: [{ code: 'deprecated' }] }]);
    expect(rendered('c2', true)).toMatchObject([
      {
        type: 'config.rejected',
        stage: 'review',
        reasons: expect.arrayContaining([
          expect.objectContaining({ code: 'selects-nothing' }),
          expect.objectContaining({ code: 'deprecated' }),
        ]) as unknown,
      },
    ]);
  });

  it('shows the first hundred of its reasons and of its warnings, and the ledger has all', () => {
    const many = Array.from({ length: 150 }, (_, i) => reason(`r${i}`));
    const v = new Validator();
    v.warnings = many;
    v.rendered('c1', { n0: to('new') });
    expect(v.view('reviews', 'c1').warnings.map(({ code }) => code)).toEqual(
      many.slice(0, 100).map(({ code }) => code),
    );
    v.reasons = many;
    expect(reasonsOf(v.rendered('c2', { n0: to('new') })[0])).toHaveLength(150);
    expect(v.view('reviews', 'c2').reasons.map(({ code }) => code)).toEqual(many.slice(0, 100).map(({ code }) => code));
  });

  it('of an old change is forgotten in the same way by every copy, whether it made the latest one or only reads', () => {
    const v = new Validator().given(...Array.from({ length: 800 }, (_, i) => validated(`c${i + 1}`)));
    expect(v.state.reviews.size).toBe(800);
    v.rendered('c801', { n0: to('new') });
    const kept = Array.from({ length: 400 }, (_, i) => `c${i + 402}`);
    expect([...v.state.reviews.keys()].sort()).toEqual([...kept].sort());
    const reader = new Validator(v.ledger).read();
    expect([...reader.state.reviews.keys()].sort()).toEqual([...kept].sort());
    expect(reader.core.forgets).toEqual(['reviews']);
    expect(reader.core.takeTouched(reader.state).has('reviews/c1')).toBe(true);
  });

  it('is not given while its change waits for another one', () => {
    const v = new Validator().given(
      accepted('c1'),
      renderedChange('c1', { n0: to('new') }),
      factOf('config.waiting', { change: 'c1', waitsFor: ['c0'] }),
    );
    expect(v.when()).toEqual([]);
    expect(v.reviews).toBe(0);
  });

  it('is not repeated for a change that has started, was refused or is superseded', () => {
    const bad = { n1: to('bad') };
    const v = new Validator().started('c1', { n0: to('bad') }).started('c2', bad);
    v.rendered('c3', bad);
    v.rendered('c4', bad);
    v.given(
      factOf('config.rejected', { change: 'c3', attempt: 1, stage: 'review' }),
      factOf('rollout.superseded', { change: 'c4' }),
    );
    expect(linesOf(v.invalid('n0'), 'change')).toEqual(['config.judged c1']);
  });

  it('of an attempt before it was recreated does not count', () => {
    const v = new Validator().given(
      accepted('c1'),
      renderedChange('c1', { n0: to('x') }, { attempt: 2 }),
      validated('c1', 1),
    );
    expect(linesOf(v.when(), 'change', 'attempt')).toEqual(['config.validated c1 2']);
  });

  it('is not given to a change that has ended', () => {
    const v = new Validator().given(accepted('c1'), renderedChange('c1', { n0: to('new') }), ended('c1', 'aborted'));
    expect(v.when()).toEqual([]);
  });

  it('refuses a known-bad hash or recipe, with its history', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    v.invalid('n0');
    v.given(ended('c1', 'reverted'));
    for (const [change, target] of [
      ['c2', to('bad', 'old', 'other')],
      ['c3', to('other', 'old', 'r-bad')],
    ] as const) {
      const [fact] = v.rendered(change, { n1: target });
      expect(fact).toMatchObject({ type: 'config.rejected', reasons: [{ code: 'known-bad', nodes: ['n1'] }] });
      expect(reasonsOf(fact)[0]?.message).toMatch(
        /n0 reported it as invalid in c1 .*the unit does not parse.*sluice clear bad/,
      );
    }
  });

  it('that refuses a known-bad config names each fragment that the change brings to nodes, and no policy', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    v.invalid('n0');
    v.given(
      accepted('c2', { apply: [file('a', 'x'), pool('p', 1)], delete: [{ kind: 'File', name: 'b' }] }),
      renderedChange('c2', { n1: to('bad') }),
    );
    expect(reasonsOf(v.when()[0]).map(({ fragment: id, field }) => [id, field])).toEqual([
      ['File/a', 'spec'],
      ['File/b', 'spec'],
    ]);
    v.given(accepted('c3', { apply: [pool('p', 1)] }), renderedChange('c3', { n1: to('bad') }));
    expect(reasonsOf(v.when()[0])).toMatchObject([{ fragment: '', code: 'known-bad' }]);
  });

  it('says whether the config itself or its recipe is known-bad', () => {
    const v = new Validator().started('c1', { n0: to('badbadbadbadbad') });
    v.invalid('n0', { hash: 'badbadbadbadbad' });
    expect(reasonsOf(v.rendered('c2', { n1: to('badbadbadbadbad', 'old', 'other') })[0])[0]?.message).toMatch(
      /^config badbadbadbad is known/,
    );
    expect(reasonsOf(v.rendered('c3', { n1: to('other', 'old', 'r-bad') })[0])[0]?.message).toMatch(
      /^a config made of the same fragments as badbadbadbad is known/,
    );
  });

  it('names a known-bad config once, including nodes whose config has the same fragments', () => {
    const v = new Validator().started('c1', { n0: to('badbadbadbadbad') });
    v.invalid('n0', { hash: 'badbadbadbadbad' });
    const targets = { n0: to('badbadbadbadbad'), n1: to('other', 'old', 'r-bad') };
    expect(reasonsOf(v.rendered('c2', targets)[0])).toMatchObject([
      { message: expect.stringMatching(/^config badbadbadbad is known/), nodes: ['n0', 'n1'] },
    ]);
  });

  it('checks for known-bad only where the change alters the config', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    v.invalid('n0');
    expect(linesOf(v.rendered('c2', { n1: to('bad', 'bad') }))).toEqual(['config.validated']);
  });

  it('counts the same fragment in another recipe as new', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    v.invalid('n0');
    expect(linesOf(v.rendered('c2', { n0: to('bad-and-more') }))).toEqual(['config.validated']);
  });

  it('is repeated, after the judgement, if a node has reported one of its configs as invalid since', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    v.rendered('c2', { n1: to('bad') });
    expect(linesOf(v.invalid('n0'), 'change')).toEqual(['config.judged c1', 'config.rejected c2']);
  });

  it('that is repeated after a config was cleared accepts the change', () => {
    const v = new Validator().given(joined('n9'), renderedNode('n9', 'bad'), reviewedNode('n9', 'bad'));
    v.started('c1', { n0: to('bad') });
    v.rendered('c2', { n1: to('bad') });
    expect(linesOf(v.invalid('n0'), 'change', 'clearedBecause')).toEqual([
      'config.judged c1 it is the committed config of n9',
      'config.validated c2',
    ]);
  });

  it('is repeated for an invalid hash, whatever its recipe', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    v.rendered('c2', { n1: to('bad', 'old', 'other') });
    expect(linesOf(v.invalid('n0'), 'change')).toEqual(['config.judged c1', 'config.rejected c2']);
  });

  it('is not repeated for another change if the recipe is unknown', () => {
    const v = new Validator().started('c1', { n0: to('bad', 'old', '') });
    v.rendered('c2', { n1: to('good', 'old', '') });
    expect(linesOf(v.invalid('n0', { recipe: '' }))).toEqual(['config.judged']);
  });

  it('touches its view', () => {
    const v = new Validator().given(validated('c1'));
    expect([...v.core.takeTouched(v.state)]).toEqual(['reviews/c1']);
  });

  it('is repeated for an invalid recipe, but not if the change does not alter the node', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    v.rendered('c2', { n1: to('other', 'old', 'r-bad') });
    v.rendered('c3', { n2: to('bad', 'bad') });
    expect(linesOf(v.invalid('n0'), 'change')).toEqual(['config.judged c1', 'config.rejected c2']);
  });

  it('is not repeated for an invalid config from before, or from elsewhere', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    v.rendered('c2', { n1: to('good') });
    expect(linesOf(v.invalid('n0'))).toEqual(['config.judged']);
    expect(linesOf(v.rendered('c3', { n2: to('fine') }))).toEqual(['config.validated']);
    expect(v.when()).toEqual([]);
  });
});
