import { changed, factOf, file } from '#libs/testing';
import { emptyHash } from '#libs/rules';
import { changeBody, Merger, rendered, sha256 } from './merger.fixture.js';

const EMPTY = emptyHash(sha256);
const fleetOf = (...names: readonly string[]) => new Merger().fleet(names);

describe('a plan', () => {
  const plan = (m: Merger, ...fragments: Parameters<Merger['publishes']>[1][]) => answerTo(m, changeBody(fragments));
  const answerTo = (m: Merger, body: object, limit = 2) => {
    const facts = m.when({
      type: 'request',
      request: { op: 'plan', id: 'p1', body, source: 'me', cursor: '', limit },
    });
    expect(facts).toEqual([]);
    const [answer] = m.answers;
    if (answer?.ok !== true) throw new Error('no plan');
    return answer.body as {
      nodes: { node: string; changed: string[] }[];
      next?: string;
      rejected: { code: string }[];
      waitsFor: string[];
    };
  };

  it('shows for each node what would change, in pages, and changes nothing', () => {
    const m = fleetOf('n0', 'n1', 'n2');
    const body = plan(m, file('motd', 'x'));
    expect(body).toMatchObject({
      nodes: [
        { node: 'n0', pool: 'default', from: EMPTY, actions: [{ kind: 'none' }], changed: ['/etc/motd'] },
        { node: 'n1' },
      ],
      next: 'n1',
      touched: 3,
      pools: { default: { nodes: 3, budget: 1 } },
    });
  });

  it('shows what the change would wait for, and what would be refused', () => {
    const m = fleetOf('n0');
    m.publishes(1, file('a', 'x'), file('b', 'x'));
    expect(plan(m, file('c', '{{ node.labels.zone }}'))).toMatchObject({
      waitsFor: ['c1'],
      rejected: [
        { fragment: 'File/c', code: 'unknown-template-key' },
        { fragment: 'File/c', code: 'capability' },
      ],
    });
  });

  it('counts nodes that the change leaves out because they are incompatible, and warns of them', () => {
    const m = new Merger().fleet(['n0', 'n1', 'n2'], 'edge');
    for (const node of ['n0', 'n1']) m.given(changed(node, { role: 'edge' }, ['kind:File'])).when();
    m.commits(1, file('site', '{{ node.labels.role }}'));
    m.given(changed('n1', {}, ['kind:File'])).when();
    const warnings = [
      { fragment: 'File/site', field: 'spec.content', code: 'incompatible', nodes: ['n1'] },
      { fragment: 'File/site', field: 'kind', code: 'incompatible', nodes: ['n2'] },
    ];
    const change = file('site', 'at {{ node.labels.role }}');
    const left = { actions: [], changed: [], deferred: 'incompatible' };
    const nodes = [{ node: 'n0' }, { ...left, node: 'n1' }, { node: 'n2', deferred: 'incompatible' }];
    const body = answerTo(m, changeBody([change]), 3);
    expect(body).toMatchObject({ rejected: [], warnings, touched: 3, unchanged: 0, nodes });
    expect(body).not.toHaveProperty('nodes.0.deferred');
    expect(body).toHaveProperty('pools', { default: { nodes: 1, budget: 1 } });
    expect(answerTo(m, { ...changeBody([change]), strategy: { strict: true } })).toMatchObject({ rejected: warnings });
  });

  it('shows how many nodes the change itself lets change at once', () => {
    const m = fleetOf('n0', 'n1', 'n2', 'n3');
    const paced = (maxUnavailable: unknown) =>
      answerTo(m, { ...changeBody([file('a', 'x')]), strategy: { maxUnavailable } });
    expect([paced(3), paced('50%'), paced('1%')]).toMatchObject([3, 2, 1].map((n) => ({ maxUnavailable: n })));
    expect(plan(m, file('a', 'x'))).not.toHaveProperty('maxUnavailable');
  });

  it('shows that a config is known-bad', () => {
    const m = fleetOf('n0');
    const [wanted] = rendered(m.publishes(1, file('a', 'x')));
    m.given(
      changed('n0', {}, ['kind:File']),
      factOf('config.judged', { hash: wanted?.targets['n0']?.to ?? '', recipe: 'r', lease: 'l', knownBad: true }),
      factOf('config.rejected', { change: 'c1', stage: 'review', attempt: 1 }),
    ).when();
    expect(plan(m, file('a', 'x'))).toMatchObject({ rejected: [{ code: 'known-bad', nodes: ['n0'] }] });
  });
});
