import fc from 'fast-check';
import { configKey } from '#libs/contracts';
import { file, fragment, left, renderedNode } from '#libs/testing';
import { Merger } from './merger.fixture.js';
import { areTargetsReferenced, referencedConfigs, referencedObjects } from './references.js';
import { State } from './state.js';

const NODES = ['a', 'b.dc1', 'c'] as const;
const HASHES = ['h1', 'h2', 'h3', 'h4', ''] as const;
const [node, hash] = [fc.constantFrom(...NODES), fc.constantFrom(...HASHES)];
const nothing = { statuses: [], leases: [] };

const world = fc.record({
  here: fc.subarray([...NODES]),
  desired: fc.array(fc.tuple(node, hash)),
  targets: fc.array(fc.record({ change: fc.constantFrom('c1', 'c2'), node, from: hash, to: hash })),
  statuses: fc.array(fc.record({ node, hash, desired: hash })),
  leases: fc.array(fc.record({ node, hash, from: hash })),
});

describe('referenced configs', () => {
  it('are exactly those that an existing node has, should have, will get, or had before', () => {
    fc.assert(
      fc.property(world, ({ here, desired, targets, statuses, leases }) => {
        const state = new State();
        for (const name of here) state.nodes.set(name, { node: name, labels: {}, capabilities: [] });
        for (const [name, given] of desired) state.desired.set(name, { hash: given, recipe: '' });
        for (const { change, node: name, from, to } of targets)
          state.targets.set(change, { ...state.targets.get(change), [name]: { from, to, recipe: '' } });
        const pairs = [
          ...[...state.desired.entries()].map(([name, given]) => [name, given.hash] as const),
          ...[...state.targets.values()].flatMap((of) =>
            Object.entries(of).flatMap(
              ([name, { from, to }]) =>
                [
                  [name, from],
                  [name, to],
                ] as const,
            ),
          ),
          ...statuses.flatMap(
            (status) =>
              [
                [status.node, status.hash],
                [status.node, status.desired],
              ] as const,
          ),
          ...leases.flatMap(
            (lease) =>
              [
                [lease.node, lease.hash],
                [lease.node, lease.from],
              ] as const,
          ),
        ];
        const expected = new Set(
          pairs
            .filter(([name, given]) => given !== '' && (here as readonly string[]).includes(name))
            .map(([name, given]) => configKey(name, given)),
        );
        expect(referencedConfigs(state, { statuses, leases })).toEqual(expected);
      }),
    );
  });

  it('include both ends of a change until it ends, and then its result', () => {
    const merger = new Merger().fleet(['n1']);
    const before = merger.state.desired.get('n1')?.hash ?? '';
    merger.publishes(1, file('motd', 'hello'));
    const to = merger.state.targets.get('c1')?.['n1']?.to ?? '';
    expect(referencedConfigs(merger.state, nothing)).toEqual(new Set([configKey('n1', before), configKey('n1', to)]));
    merger.starts('c1');
    merger.completes('c1');
    expect(referencedConfigs(merger.state, nothing)).toEqual(new Set([configKey('n1', to)]));
  });

  it('do not include those of a node that has left', () => {
    const merger = new Merger().fleet(['n1']).given(renderedNode('n1', 'h9'));
    const shown = { statuses: [{ node: 'n1', hash: 'h9', desired: 'h9' }], leases: [] };
    expect(referencedConfigs(merger.state, shown)).toEqual(new Set(['n1.h9']));
    expect(referencedConfigs(merger.given(left('n1')).state, shown)).toEqual(new Set());
  });

  it('include the targets of facts in the ledger, and of open changes', () => {
    const isReferenced = (key: string): boolean => areTargetsReferenced(new Set(['c1']), new Set(['c2.x']), key);
    expect([
      isReferenced('c1.y'),
      isReferenced('c2.x'),
      isReferenced('c2.y'),
      isReferenced('c11.y'),
      isReferenced('junk'),
    ]).toEqual([true, true, false, false, false]);
  });
});

describe('the objects that are named', () => {
  const [A, B] = ['a'.repeat(64), 'b'.repeat(64)];
  const image = (sha256: string) => fragment('File', 'image', { path: '/image', contentFrom: { object: 'x', sha256 } });

  it('are those of the committed state and of open changes', () => {
    const merger = new Merger().fleet(['n1']);
    merger.publishes(1, image(A));
    expect(referencedObjects(merger.state)).toEqual(new Set([A]));
    merger.starts('c1');
    merger.completes('c1');
    merger.publishes(2, image(B));
    expect(referencedObjects(merger.state)).toEqual(new Set([A, B]));
    merger.starts('c2');
    merger.completes('c2');
    expect(referencedObjects(merger.state)).toEqual(new Set([B]));
    merger.commits(3, { gone: { kind: 'File', name: 'image' } });
    expect(referencedObjects(merger.state)).toEqual(new Set());
  });
});
