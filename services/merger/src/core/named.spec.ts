import fc from 'fast-check';
import { configKey } from '#libs/contracts';
import { file, left, renderedNode } from '#libs/testing';
import { Merger } from './merger.fixture.js';
import { areTargetsNamed, namedConfigs } from './named.js';
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

describe('what is named', () => {
  it('is exactly what some node that is there has, should have, is to get or comes from', () => {
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
        expect(namedConfigs(state, { statuses, leases })).toEqual(expected);
      }),
    );
  });

  it('holds both ends of a change until that is over, and then what it led to', () => {
    const merger = new Merger().fleet(['n1']);
    const before = merger.state.desired.get('n1')?.hash ?? '';
    merger.publishes(1, file('motd', 'hello'));
    const to = merger.state.targets.get('c1')?.['n1']?.to ?? '';
    expect(namedConfigs(merger.state, nothing)).toEqual(new Set([configKey('n1', before), configKey('n1', to)]));
    merger.starts('c1');
    merger.completes('c1');
    expect(namedConfigs(merger.state, nothing)).toEqual(new Set([configKey('n1', to)]));
  });

  it('is nothing of a node that has left', () => {
    const merger = new Merger().fleet(['n1']).given(renderedNode('n1', 'h9'));
    const shown = { statuses: [{ node: 'n1', hash: 'h9', desired: 'h9' }], leases: [] };
    expect(namedConfigs(merger.state, shown)).toEqual(new Set(['n1.h9']));
    expect(namedConfigs(merger.given(left('n1')).state, shown)).toEqual(new Set());
  });

  it('are the targets that a fact of the ledger lists, and those of an open change', () => {
    const named = (key: string): boolean => areTargetsNamed(new Set(['c1']), new Set(['c2.x']), key);
    expect([named('c1.y'), named('c2.x'), named('c2.y'), named('c11.y'), named('junk')]).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});
