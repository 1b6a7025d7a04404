import type { NewFact, Reason } from '#libs/contracts';
import { accepted, committed, ended, factOf, joined, left, linesOf, reason, renderedChange, renderedNode, reviewedNode, validated } from '#libs/testing';
import { to, Validator } from './validator.fixture.js';

const reasonsOf = (fact: NewFact | undefined): readonly Reason[] => (fact?.type === 'config.rejected' ? fact.reasons : []);
const judged = (facts: readonly unknown[]) => linesOf(facts as never, 'hash', 'lease', 'condemned', 'spared');

describe('a review', () => {
  it('names the attempt that it judged', () => {
    expect(linesOf(new Validator().rendered('c1', { n0: to('new') }, 3), 'change', 'attempt')).toEqual(['config.validated c1 3']);
  });

  it('is one answer with every reason, those of rendering too', () => {
    const v = new Validator();
    v.reasons = [reason('conflict'), reason('capability')];
    v.given(accepted('c1'), renderedChange('c1', { n0: to('new') }, { problems: [{ ...reason('unknown-key'), field: 'spec.content' }] }));
    const [said] = v.when();
    expect(said).toMatchObject({ type: 'config.rejected', stage: 'review', attempt: 1 });
    expect(reasonsOf(said).map(({ code }) => code).sort()).toEqual(['capability', 'conflict', 'unknown-key']);
    expect(v.view('reviews', 'c1')).toMatchObject({ verdict: 'rejected', attempt: 1 });
  });

  it('says nothing of a field that could not be rendered', () => {
    const v = new Validator();
    v.reasons = [{ ...reason('bad-path'), fragment: 'File/a', field: 'spec.path' }, { ...reason('capability'), fragment: 'File/a', field: 'kind' }];
    v.given(accepted('c1'), renderedChange('c1', { n0: to('new') }, { problems: [{ ...reason('unknown-key'), fragment: 'File/a', field: 'spec.path' }] }));
    expect(reasonsOf(v.when()[0]).map(({ code }) => code)).toEqual(['unknown-key', 'capability']);
  });

  it('is given once for an attempt', () => {
    const v = new Validator();
    v.rendered('c1', { n0: to('new') });
    expect(v.when()).toEqual([]);
    expect(v.reviews).toBe(1);
  });

  it('of another attempt is another review', () => {
    const v = new Validator();
    v.rendered('c1', { n0: to('new') });
    expect(linesOf(v.given(renderedChange('c1', { n0: to('new') }, { attempt: 2 })).when(), 'attempt')).toEqual(['config.validated 2']);
  });

  it('names the nodes that the committed state does not fit either', () => {
    const v = new Validator();
    v.unfit = ['n7'];
    expect(v.rendered('c1', { n0: to('new') })).toMatchObject([{ type: 'config.validated', unfit: ['n7'] }]);
  });

  it('of long ago is forgotten, and in every copy the same: in one that gave the latest as in one that only reads', () => {
    const v = new Validator().given(...Array.from({ length: 800 }, (_, i) => validated(`c${i + 1}`)));
    expect(v.state.reviews.size).toBe(800);
    v.rendered('c801', { n0: to('new') });
    const kept = Array.from({ length: 400 }, (_, i) => `c${i + 402}`);
    expect([...v.state.reviews.keys()].sort()).toEqual([...kept].sort());
    expect([...new Validator(v.ledger).read().state.reviews.keys()].sort()).toEqual([...kept].sort());
  });

  it('is given to nothing that has ended', () => {
    const v = new Validator().given(accepted('c1'), renderedChange('c1', { n0: to('new') }), ended('c1', 'aborted'));
    expect(v.when()).toEqual([]);
  });

  it('refuses a hash or a recipe that is known to be bad, with the story', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    v.invalid('n0');
    v.given(ended('c1', 'reverted'));
    for (const [change, target] of [['c2', to('bad', 'old', 'other')], ['c3', to('other', 'old', 'r-bad')]] as const) {
      const [said] = v.rendered(change, { n1: target });
      expect(said).toMatchObject({ type: 'config.rejected', reasons: [{ code: 'known-bad', nodes: ['n1'] }] });
      expect(reasonsOf(said)[0]?.message).toMatch(/n0 found it invalid in c1 .*the unit does not parse.*sluice forgive bad/);
    }
  });

  it('asks about known-bad only where the change alters the config', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    v.invalid('n0');
    expect(linesOf(v.rendered('c2', { n1: to('bad', 'bad') }))).toEqual(['config.validated']);
  });

  it('takes the same fragment in another recipe as new', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    v.invalid('n0');
    expect(linesOf(v.rendered('c2', { n0: to('bad-and-more') }))).toEqual(['config.validated']);
  });

  it('is made again, after the judgement, when a node has found one of its configs invalid since', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    v.rendered('c2', { n1: to('bad') });
    expect(linesOf(v.invalid('n0'), 'change')).toEqual(['config.judged c1', 'config.rejected c2']);
  });

  it('made again after a sparing lets the change go', () => {
    const v = new Validator().given(joined('n9'), renderedNode('n9', 'bad'), reviewedNode('n9', 'bad'));
    v.started('c1', { n0: to('bad') });
    v.rendered('c2', { n1: to('bad') });
    expect(linesOf(v.invalid('n0'), 'change', 'spared')).toEqual(['config.judged c1 it is the committed config of n9', 'config.validated c2']);
  });

  it('is not made again for what was found invalid before, or elsewhere', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    v.rendered('c2', { n1: to('good') });
    expect(linesOf(v.invalid('n0'))).toEqual(['config.judged']);
    expect(linesOf(v.rendered('c3', { n2: to('fine') }))).toEqual(['config.validated']);
    expect(v.when()).toEqual([]);
  });
});

describe('a judgement', () => {
  it('condemns hash and recipe of an invalid, once, by lease', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    expect(v.invalid('n0')).toMatchObject([{ type: 'config.judged', hash: 'bad', recipe: 'r-bad', lease: 'n0-l1', change: 'c1', node: 'n0', condemned: true, spared: '', reason: 'the unit does not parse' }]);
    expect(v.when()).toEqual([]);
    expect(v.view('known-bad', 'config.bad')).toMatchObject({ node: 'n0', change: 'c1', gone: false });
    expect(v.view('known-bad', 'recipe.r-bad')).toMatchObject({ hash: 'bad' });
  });

  it.each([
    ['a committed config of another node', (v: Validator) => v.given(joined('n9'), renderedNode('n9', 'bad')), 'it is the committed config of n9'],
    ['a last good one', (v: Validator) => v.started('c5', { n9: to('next', 'bad') }), 'it is the last good config of n9'],
    ['the target of a complete rollout', (v: Validator) => v.started('c5', { n9: to('bad') }).given(factOf('rollout.complete', { change: 'c5' })), 'it is the config of n9 in c5, which is complete'],
    ['what a node outside rollouts has in force', (v: Validator) => v.given(factOf('node.reported', { node: 'n9', hash: 'bad', report: 'announced' })), 'it is the last good config of n9'],
  ])('spares %s', (_, given, spared) => {
    const v = new Validator();
    given(v);
    v.when();
    v.started('c1', { n0: to('bad') });
    expect(v.invalid('n0')).toMatchObject([{ type: 'config.judged', condemned: false, spared }]);
  });

  it('is not moved to mercy by the node itself, nor by other targets of the same rollout', () => {
    const v = new Validator().started('c1', { n0: to('bad'), n1: to('bad') });
    v.given(factOf('node.reported', { node: 'n1', hash: 'bad', report: 'applied', verdict: 'applied' }), factOf('node.reported', { node: 'n0', hash: 'bad', report: 'invalid', verdict: 'invalid' }));
    expect(v.invalid('n0')).toMatchObject([{ condemned: true }]);
  });

  it('is not moved to mercy by a node that has left', () => {
    const v = new Validator().given(joined('n9'), renderedNode('n9', 'bad'), left('n9'));
    v.started('c1', { n0: to('bad') });
    expect(v.invalid('n0')).toMatchObject([{ condemned: true }]);
  });

  it('is not moved to mercy by a target that has left', () => {
    const v = new Validator().given(joined('n9')).started('c5', { n9: to('next', 'bad') }).given(left('n9'));
    v.started('c1', { n0: to('bad') });
    expect(v.invalid('n0')).toMatchObject([{ condemned: true }]);
  });

  it.each(['corrective', 'back'] as const)('is for forward leases: one of a %s lease condemns nothing', (kind) => {
    const v = new Validator().started('c1', { n0: to('bad') });
    expect(v.invalid('n0', { kind: kind as never })).toEqual([]);
  });

  it('comes for each of two leases', () => {
    const v = new Validator().started('c1', { n0: to('b0', 'old', 'r'), n1: to('b1', 'old', 'r') });
    v.invalid('n0', { hash: 'b0', recipe: 'r' });
    expect(judged(v.invalid('n1', { hash: 'b1', recipe: 'r' }))).toEqual(['config.judged b1 n1-l1 true']);
  });
});

describe('forgiving', () => {
  const condemned = () => {
    const v = new Validator().started('c1', { n0: to('badbadbad') });
    v.invalid('n0', { hash: 'badbadbad', recipe: 'r-badbadbad' });
    v.given(ended('c1', 'reverted'));
    return v;
  };

  it.each(['badbadbad', 'badbadb', 'r-badbadbad'])('lifts hash and recipe, asked for as %s, and is final for that lease', (hash) => {
    const v = condemned();
    expect(v.forgives(hash)).toMatchObject([{ type: 'config.forgiven', hash: 'badbadbad', recipe: 'r-badbadbad', by: 'me', reason: 'fixed' }]);
    expect(v.answers).toMatchObject([{ ok: true, body: { forgiven: true } }]);
    expect(v.when()).toEqual([]);
    expect(linesOf(v.rendered('c2', { n0: to('badbadbad'), n1: to('other', 'old', 'r-badbadbad') }))).toEqual(['config.validated']);
    expect(v.view('known-bad', 'config.badbadbad')).toMatchObject({ gone: true, forgivenBy: 'me', forgivenReason: 'fixed' });
    expect(v.view('known-bad', 'recipe.r-badbadbad')).toMatchObject({ gone: true });
  });

  it('asked twice is done once', () => {
    const v = condemned();
    v.forgives('badbadbad');
    expect(v.forgives('badbadbad')).toEqual([]);
    expect(v.answers).toMatchObject([{ ok: true }]);
  });

  it('does not keep a later lease from condemning it again', () => {
    const v = condemned();
    v.forgives('badbadbad');
    v.started('c2', { n0: to('badbadbad') });
    expect(judged(v.invalid('n0', { change: 'c2', hash: 'badbadbad', recipe: 'r-badbadbad', lease: 'n0-l2' }))).toEqual(['config.judged badbadbad n0-l2 true']);
    expect(v.view('known-bad', 'config.badbadbad').gone).toBe(false);
  });

  it('lifts every recipe that gave the hash', () => {
    const v = condemned();
    v.started('c2', { n1: to('x') });
    v.invalid('n1', { change: 'c2', hash: 'badbadbad', recipe: 'another', lease: 'n1-l1' });
    const said = v.forgives('badbadbad');
    expect([...linesOf(said, 'recipe')].sort()).toEqual(['config.forgiven another', 'config.forgiven r-badbadbad']);
    expect(v.view('known-bad', 'recipe.r-badbadbad').gone).toBe(true);
    expect(v.view('known-bad', 'recipe.another').gone).toBe(true);
  });

  it.each([['zzzzzzzzz', 'not-found'], ['bad', 'not-found']])('%s is refused as %s', (hash, code) => {
    const v = condemned();
    expect(v.forgives(hash)).toEqual([]);
    expect(v.answers).toMatchObject([{ ok: false, code }]);
  });

  it('of what is not unique is refused', () => {
    const v = condemned();
    v.started('c2', { n1: to('badbadboo') });
    v.invalid('n1', { change: 'c2', hash: 'badbadboo', recipe: 'r2' });
    v.forgives('badbadb');
    expect(v.answers).toMatchObject([{ ok: false, code: 'conflict' }]);
  });
});

describe('what is known to be bad', () => {
  it('is listed in pages', () => {
    const v = new Validator();
    for (const hash of ['b', 'a', 'c']) {
      v.started(`c${hash.charCodeAt(0)}`, { n0: to(hash) });
      v.invalid('n0', { change: `c${hash.charCodeAt(0)}`, hash, recipe: `r-${hash}`, lease: `l-${hash}` });
    }
    v.asks({ op: 'list', cursor: '', limit: 2 });
    expect(v.answers).toMatchObject([{ ok: true, body: { knownBad: [{ hash: 'a' }, { hash: 'b' }], next: 'b' } }]);
    v.asks({ op: 'list', cursor: 'b', limit: 2 });
    expect(v.answers).toMatchObject([{ ok: true, body: { knownBad: [{ hash: 'c' }] } }]);
  });
});

describe('a node outside rollouts', () => {
  it('has its config reviewed, and is unfit with the reasons if that does not fit', () => {
    const v = new Validator().given(joined('n0'), joined('n1'), renderedNode('n0', 'x'), renderedNode('n1', 'x'));
    v.nodeReasons.set('n1', [reason('capability')]);
    expect(linesOf(v.when(), 'node', 'hash', 'fit')).toEqual(['node.reviewed n0 x true', 'node.reviewed n1 x false']);
  });

  it('that could not be rendered is unfit without a look at its config', () => {
    const v = new Validator().given(joined('n0'), renderedNode('n0', '', { problems: [reason('unknown-key')] }));
    expect(v.when()).toMatchObject([{ type: 'node.reviewed', node: 'n0', fit: false, reasons: [{ code: 'unknown-key' }] }]);
    expect(v.reviews).toBe(0);
  });

  it('is reviewed again with every rendering', () => {
    const v = new Validator().given(joined('n0'), renderedNode('n0', 'x'));
    v.when();
    expect(linesOf(v.given(renderedNode('n0', 'y')).when(), 'hash')).toEqual(['node.reviewed y']);
  });

  it('keeps what it has committed known across a commit of its rollout', () => {
    const v = new Validator().given(joined('n0'), renderedNode('n0', 'old'));
    v.when();
    v.started('c1', { n0: to('new') }).given(committed('c1'));
    expect(v.state.committed.get('n0')).toBe('new');
  });
});
