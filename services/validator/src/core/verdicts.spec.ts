import { accepted, committed, ended, factOf, joined, left, linesOf, renderedChange, renderedNode } from '#libs/testing';
import { validatorCore, type Input } from './index.js';
import { to, Validator } from './validator.fixture.js';

const judged = (facts: readonly unknown[]) => linesOf(facts as never, 'hash', 'lease', 'knownBad', 'clearedBecause');

/**
 * A lease of a node that ended with a report; `says`: the config in force in the report, if it is not the one of the
 * lease.
 */
const leaseEnded = (node: string, { hash, reported }: { readonly hash: string; readonly reported: string }) =>
  factOf('node.lease.settled', {
    node,
    pool: 'default',
    lease: `${node}-l1`,
    kind: 'corrective',
    hash,
    because: reported === '' ? 'applied' : 'failed',
    report: {
      incarnation: 1,
      nonce: 1,
      seq: 1,
      hash: reported,
      verdict: '',
      bootId: '',
      reportSequence: 1,
      notUndone: [],
      leftovers: [],
    },
  });

describe('a judgement', () => {
  it('makes the hash and the recipe of an invalid config known-bad, once per lease', () => {
    const v = new Validator().started('c1', { n0: to('bad') });
    expect(v.invalid('n0')).toMatchObject([
      {
        type: 'config.judged',
        hash: 'bad',
        recipe: 'r-bad',
        lease: 'n0-l1',
        change: 'c1',
        node: 'n0',
        knownBad: true,
        clearedBecause: '',
        reason: 'the unit does not parse',
      },
    ]);
    expect(v.when()).toEqual([]);
    expect(v.view('known-bad', 'config.bad')).toMatchObject({ node: 'n0', change: 'c1', gone: false });
    expect(v.view('known-bad', 'recipe.r-bad')).toMatchObject({ hash: 'bad' });
  });

  it.each([
    [
      'a committed config of another node',
      (v: Validator) => v.given(joined('n9'), renderedNode('n9', 'bad')),
      'it is the committed config of n9',
    ],
    [
      'the last good config of another node',
      (v: Validator) => v.started('c5', { n9: to('next', 'bad') }),
      'it is the last good config of n9',
    ],
    [
      'the target of a complete rollout',
      (v: Validator) => v.started('c5', { n9: to('bad') }).given(factOf('rollout.complete', { change: 'c5' })),
      'it is the config of n9 in c5, which is complete',
    ],
    [
      'the config of a lease outside rollouts',
      (v: Validator) => v.given(leaseEnded('n9', { hash: 'bad', reported: '' })),
      'it is the last good config of n9',
    ],
    [
      'a config that a lease outside rollouts left in force',
      (v: Validator) => v.given(leaseEnded('n9', { hash: 'other', reported: 'bad' })),
      'it is the last good config of n9',
    ],
    [
      'the active config of a node outside rollouts',
      (v: Validator) => v.given(factOf('node.reported', { node: 'n9', hash: 'bad', report: 'announced' })),
      'it is the last good config of n9',
    ],
  ])('clears %s', (_, given, clearedBecause) => {
    const v = new Validator();
    given(v);
    v.when();
    v.started('c1', { n0: to('bad') });
    expect(v.invalid('n0')).toMatchObject([{ type: 'config.judged', knownBad: false, clearedBecause }]);
  });

  it('does not clear a config because of the node itself, or of other targets of the same rollout', () => {
    const v = new Validator().started('c1', { n0: to('bad'), n1: to('bad') });
    v.given(
      factOf('node.reported', { node: 'n1', hash: 'bad', report: 'applied', verdict: 'applied' }),
      factOf('node.reported', { node: 'n0', hash: 'bad', report: 'invalid', verdict: 'invalid' }),
    );
    expect(v.invalid('n0')).toMatchObject([{ knownBad: true }]);
  });

  it('does not clear a config because of a node that has left', () => {
    const v = new Validator().given(joined('n9'), renderedNode('n9', 'bad'), left('n9'));
    v.started('c1', { n0: to('bad') });
    expect(v.invalid('n0')).toMatchObject([{ knownBad: true }]);
  });

  it.each([
    ['ended', (v: Validator) => v.given(ended('c5', 'reverted'))],
    ['is superseded', (v: Validator) => v.given(factOf('rollout.superseded', { change: 'c5' }))],
    ['is committed, and did not reach the node', (v: Validator) => v.given(committed('c5'))],
    [
      'no longer includes the node, because the node was rendered on its own',
      (v: Validator) => v.given(renderedNode('n9', 'x', { outdatedIn: ['c5'] })),
    ],
  ])('does not clear a config because of a rollout that %s', (_, over) => {
    const v = new Validator().started('c5', { n9: to('next', 'bad') });
    over(v).started('c1', { n0: to('bad') });
    expect(judged(v.invalid('n0'))).toEqual(['config.judged bad n0-l1 true']);
  });

  it('clears what other targets of a rollout had, if one of them has left it', () => {
    const v = new Validator()
      .started('c5', { n8: to('next', 'bad'), n9: to('next', 'bad') })
      .given(renderedNode('n9', 'x', { outdatedIn: ['c5', 'c6'] }));
    v.started('c1', { n0: to('bad') });
    expect(v.invalid('n0')).toMatchObject([{ knownBad: false, clearedBecause: 'it is the last good config of n8' }]);
  });

  it('clears what a complete rollout committed if only another of its targets led elsewhere', () => {
    const v = new Validator()
      .started('c5', { n8: to('other'), n9: to('bad') })
      .given(factOf('rollout.complete', { change: 'c5' }));
    v.started('c1', { n0: to('bad') });
    expect(v.invalid('n0')).toMatchObject([
      { knownBad: false, clearedBecause: 'it is the config of n9 in c5, which is complete' },
    ]);
  });

  it('does not clear a config because another config is committed, in force or last good', () => {
    const v = new Validator().given(
      joined('n9'),
      renderedNode('n9', 'good'),
      factOf('node.reported', { node: 'n8', hash: 'good', report: 'announced' }),
    );
    v.started('c5', { n7: to('next', 'good') })
      .given(factOf('rollout.complete', { change: 'c5' }))
      .started('c1', { n0: to('bad') });
    expect(judged(v.invalid('n0'))).toEqual(['config.judged bad n0-l1 true']);
  });

  it('follows the order of the ledger', () => {
    const v = new Validator();
    const verdicts = ['z', 'a', 'm'].map((hash) =>
      factOf('node.lease.settled', {
        node: 'n0',
        pool: 'default',
        lease: `l-${hash}`,
        change: 'c1',
        kind: 'forward',
        hash,
        recipe: '',
        because: 'invalid',
      }),
    );
    v.given(...verdicts).decide(); // a refused decision leaves no order behind
    expect(linesOf(v.when(), 'hash')).toEqual(['config.judged z', 'config.judged a', 'config.judged m']);
  });

  it('of more than a batch can hold comes first, in as many batches as it takes', () => {
    const facts = Array.from({ length: 1_000 }, (_, i) =>
      factOf('node.lease.settled', {
        node: `n${i}`,
        pool: 'default',
        lease: `l${i}`,
        change: 'c1',
        kind: 'forward',
        hash: `h${i}`,
        because: 'invalid',
      }),
    );
    const v = new Validator().given(
      ...facts,
      accepted('c2'),
      renderedChange('c2', { n0: to('x') }),
      joined('n0'),
      renderedNode('n0', 'x'),
    );
    const list: Input = { type: 'request', request: { op: 'list', cursor: '', limit: 1 } };
    const first = v.decide([list]);
    expect([first.facts.length, first.more, first.needs, first.answers.size, first.waiting.has(list)]).toEqual([
      950,
      true,
      [],
      0,
      true,
    ]);
    expect(linesOf(v.when(list)).filter((type) => type !== 'config.judged')).toEqual([
      'config.validated',
      'node.reviewed',
    ]);
    expect(v.answers).toMatchObject([{ ok: true, body: { knownBad: [{ hash: 'h0' }] } }]);
  });

  it('leaves room for other facts: no batch is larger than the ledger accepts', () => {
    const facts = Array.from({ length: 900 }, (_, i) =>
      factOf('node.lease.settled', {
        node: `n${i}`,
        pool: 'default',
        lease: `l${i}`,
        change: 'c1',
        kind: 'forward',
        hash: `h${i}`,
        because: 'invalid',
      }),
    );
    const nodes = Array.from({ length: 200 }, (_, i) => renderedNode(`m${i}`, 'x'));
    const lines = linesOf(new Validator().given(...facts, ...nodes).when());
    expect([
      lines.filter((type) => type === 'config.judged').length,
      lines.filter((type) => type === 'node.reviewed').length,
    ]).toEqual([900, 200]);
  });

  it('is for `invalid` only, and without a recipe it makes only the hash known-bad', () => {
    const settled = (because: 'failed' | 'invalid', hash: string) =>
      factOf('node.lease.settled', {
        node: 'n0',
        pool: 'default',
        lease: `l-${hash}`,
        change: 'c1',
        kind: 'forward',
        hash,
        recipe: '',
        because,
      });
    const v = new Validator().given(settled('failed', 'h1'));
    expect(v.when()).toEqual([]);
    v.given(
      settled('invalid', 'h2'),
      factOf('config.judged', { hash: 'h2', recipe: '', lease: 'l-h2', change: 'c1', node: 'n0', knownBad: true }),
    );
    expect([...validatorCore.takeTouched(v.state)]).toEqual(['known-bad/config.h2']);
    expect(v.when()).toEqual([]);
    expect([...validatorCore.viewKeys(v.state)]).toEqual(['known-bad/config.h2']);
    expect(linesOf(v.rendered('c2', { n1: to('x', 'old', '') }))).toEqual(['config.validated']);
  });

  it('does not clear a config because of a target that has left', () => {
    const v = new Validator()
      .given(joined('n9'))
      .started('c5', { n9: to('next', 'bad') })
      .given(left('n9'));
    v.started('c1', { n0: to('bad') });
    expect(v.invalid('n0')).toMatchObject([{ knownBad: true }]);
  });

  it.each(['corrective', 'rollback'] as const)(
    'is for forward leases only: a %s lease makes nothing known-bad',
    (kind) => {
      const v = new Validator().started('c1', { n0: to('bad') });
      expect(v.invalid('n0', { kind: kind as never })).toEqual([]);
    },
  );

  it('is recorded for each of two leases', () => {
    const v = new Validator().started('c1', { n0: to('b0', 'old', 'r'), n1: to('b1', 'old', 'r') });
    v.invalid('n0', { hash: 'b0', recipe: 'r' });
    expect(judged(v.invalid('n1', { hash: 'b1', recipe: 'r' }))).toEqual(['config.judged b1 n1-l1 true']);
  });
});
