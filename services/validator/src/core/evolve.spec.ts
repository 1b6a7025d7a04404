import {
  accepted,
  changed,
  committed,
  ended,
  factOf,
  file,
  fragment,
  joined,
  left,
  linesOf,
  reason,
  renderedChange,
  renderedNode,
  reviewedNode,
  validated,
} from '#libs/testing';
import { to, Validator } from './validator.fixture.js';

describe('a node outside rollouts', () => {
  it('gets its config reviewed, and is incompatible with the reasons if the config does not fit', () => {
    const v = new Validator().given(joined('n0'), joined('n1'), renderedNode('n0', 'x'), renderedNode('n1', 'x'));
    v.nodeReasons.set('n1', [reason('capability')]);
    expect(linesOf(v.when(), 'node', 'hash', 'compatible')).toEqual([
      'node.reviewed n0 x true',
      'node.reviewed n1 x false',
    ]);
  });

  it('that could not be rendered is incompatible without a review', () => {
    const v = new Validator().given(joined('n0'), renderedNode('n0', '', { problems: [reason('unknown-key')] }));
    expect(v.when()).toMatchObject([
      { type: 'node.reviewed', node: 'n0', compatible: false, reasons: [{ code: 'unknown-key' }] },
    ]);
    expect(v.reviews).toBe(0);
  });

  it('is reviewed in the same turn as nodes that could not be rendered', () => {
    const v = new Validator().given(
      joined('n0'),
      joined('n1'),
      renderedNode('n1', 'x'),
      renderedNode('n0', '', { problems: [reason('unknown-key')] }),
    );
    expect(v.decide().needs).toMatchObject([{ do: 'review-nodes', nodes: [{ node: 'n1', hash: 'x' }] }]);
    expect(linesOf(v.when(), 'node', 'compatible')).toEqual(['node.reviewed n0 false', 'node.reviewed n1 true']);
  });

  it('is reviewed in a batch of five hundred, by name', () => {
    const names = Array.from({ length: 501 }, (_, i) => `n${String(i).padStart(3, '0')}`);
    const v = new Validator().given(...[...names].reverse().map((name) => renderedNode(name, 'x')));
    expect(
      v.decide().needs.map((need) => (need.do === 'review-nodes' ? need.nodes.map(({ node }) => node) : [])),
    ).toEqual([names.slice(0, 500)]);
    const gathered = new Map(
      v.decide().needs.map(({ key }) => [key, { did: 'review-nodes' as const, reasons: new Map() }]),
    );
    expect(v.decide([], gathered)).toMatchObject({ facts: { length: 500 }, more: true });
    expect(linesOf(v.when(), 'node')).toEqual(names.map((name) => `node.reviewed ${name}`));
    expect(v.reviews).toBe(2);
    expect(v.decide().more).toBe(false);
  });

  it('is reviewed again if its config has changed meanwhile', () => {
    const v = new Validator().given(renderedNode('n0', 'x'));
    const gathered = new Map(
      v.decide().needs.map(({ key }) => [key, { did: 'review-nodes' as const, reasons: new Map() }]),
    );
    v.given(renderedNode('n0', 'y'));
    const decision = v.decide([], gathered);
    expect([decision.facts, decision.needs]).toMatchObject([[], [{ nodes: [{ node: 'n0', hash: 'y' }] }]]);
  });

  it('is not reviewed once it has left', () => {
    const v = new Validator().given(joined('n0'), renderedNode('n0', 'x'), left('n0'));
    expect(v.when()).toEqual([]);
  });

  it('has the labels and capabilities of its last announcement, until it leaves', () => {
    const v = new Validator().given(joined('n0', { role: 'a' }, { capabilities: ['kind:File'] }));
    expect([v.state.labels.get('n0'), v.state.capabilities.get('n0')]).toEqual([{ role: 'a' }, ['kind:File']]);
    v.given(changed('n0', { role: 'b' }, ['kind:Probe']));
    expect([v.state.labels.get('n0'), v.state.capabilities.get('n0')]).toEqual([{ role: 'b' }, ['kind:Probe']]);
    v.given(left('n0'));
    expect([v.state.labels.get('n0'), v.state.capabilities.get('n0')]).toEqual([undefined, undefined]);
  });

  it('is reviewed again with every rendering', () => {
    const v = new Validator().given(joined('n0'), renderedNode('n0', 'x'));
    v.when();
    expect(linesOf(v.given(renderedNode('n0', 'y')).when(), 'hash')).toEqual(['node.reviewed y']);
  });

  it('keeps its committed config when its rollout is committed', () => {
    const v = new Validator().given(joined('n0'), renderedNode('n0', 'old'));
    v.when();
    v.started('c1', { n0: to('new') }).given(committed('c1'));
    expect(v.state.committed.get('n0')).toBe('new');
  });
});

describe('a policy', () => {
  const rules = fragment('DisruptionPolicy', 'rules');
  const policies = (v: Validator) => [[...v.state.carried.keys()], [...v.state.policies.keys()]];

  it('belongs to its change until that is committed, and applies from then on until it is deleted', () => {
    const v = new Validator().given(
      accepted('c1', { apply: [file('a', 'x'), rules] }),
      accepted('c2', { apply: [file('b', 'x')] }),
    );
    expect(policies(v)).toEqual([['c1'], []]);
    v.given(renderedChange('c1', { n0: to('new') }), validated('c1'), factOf('rollout.started', { change: 'c1' }));
    expect(policies(v)).toEqual([['c1'], []]);
    v.given(committed('c1'));
    expect(policies(v)).toEqual([[], ['DisruptionPolicy/rules']]);
    v.given(
      accepted('c3', { delete: [{ kind: 'DisruptionPolicy', name: 'rules' }] }),
      factOf('rollout.started', { change: 'c3' }),
    );
    expect(policies(v)).toEqual([['c3'], ['DisruptionPolicy/rules']]);
    v.given(committed('c3'));
    expect(policies(v)).toEqual([[], []]);
  });

  it('disappears with its change if that is not committed', () => {
    const v = new Validator().given(
      accepted('c1', { apply: [rules] }),
      ended('c1', 'aborted'),
      accepted('c2', { apply: [rules] }),
      factOf('rollout.started', { change: 'c2' }),
      ended('c2', 'reverted'),
    );
    expect(policies(v)).toEqual([[], []]);
  });
});

describe('a commit', () => {
  it('gives no committed config to a node that was never rendered on its own, nor to one that has left its rollout', () => {
    const v = new Validator()
      .given(joined('n0'), renderedNode('n0', 'old'), reviewedNode('n0', 'old'))
      .started('c1', { n0: to('new'), n1: to('new') });
    v.given(renderedNode('n0', 'own', { outdatedIn: ['c1'] }), reviewedNode('n0', 'own'), committed('c1'));
    expect([...v.state.committed.entries()]).toEqual([['n0', 'own']]);
  });
});
