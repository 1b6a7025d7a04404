import type { Fact } from '#libs/contracts';
import { drainCore } from '../../services/drain/src/core/index.js';
import type { AnyKind } from './services.js';
import type { Mutant } from './world.js';

/** Changes what one service makes of a fact; undefined lets it overlook the fact. */
const misreads = (service: string, misread: (fact: Fact) => Fact | undefined) => (kind: AnyKind): AnyKind =>
  kind.core.name !== service
    ? kind
    : {
        ...kind,
        core: {
          ...kind.core,
          evolve: (state, entry) => {
            const fact = misread(entry.fact);
            if (fact !== undefined) kind.core.evolve(state, { ...entry, fact });
          },
        },
      };

/** Forgets to write some of its views. */
const leavesUnwritten = (service: string, prefix: string) => (kind: AnyKind): AnyKind =>
  kind.core.name !== service
    ? kind
    : { ...kind, core: { ...kind.core, takeTouched: (state) => new Set([...kind.core.takeTouched(state)].filter((key) => !key.startsWith(prefix))) } };

const overlooks = (service: string, type: Fact['type']) => misreads(service, (fact) => (fact.type === type ? undefined : fact));
const both = (first: (kind: AnyKind) => AnyKind, second: (kind: AnyKind) => AnyKind) => (kind: AnyKind): AnyKind => second(first(kind));
const neverCondemned = (fact: Fact): Fact => (fact.type === 'config.judged' ? { ...fact, condemned: false } : fact);

/** One planted fault for each invariant, at least. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'the scheduler counts no lease against its pool',
    caughtBy: 'I1',
    service: misreads('scheduler', (fact) => (fact.type === 'node.lease.granted' ? { ...fact, free: true } : fact)),
  },
  { name: 'the scheduler takes silent nodes for available', caughtBy: 'I1', service: overlooks('scheduler', 'node.silent') },
  { name: 'the scheduler forgets that it granted a lease', caughtBy: 'I2', service: overlooks('scheduler', 'node.lease.granted') },
  { name: 'nobody remembers a condemnation', caughtBy: 'I3', service: both(misreads('scheduler', neverCondemned), misreads('validator', neverCondemned)) },
  { name: 'a node does not put back what it replaced', caughtBy: 'I4', keepsReplaced: true },
  {
    name: 'the drain service says drained when nobody drained',
    caughtBy: 'I5',
    service: (kind) => (kind.core.name === 'drain' ? ({ ...kind, core: drainCore('none') } as unknown as AnyKind) : kind),
  },
  { name: 'the scheduler overlooks a pause', caughtBy: 'I6', service: overlooks('scheduler', 'rollout.paused') },
  { name: 'the scheduler forgets that a lease was settled', caughtBy: 'I2 I5', service: overlooks('scheduler', 'node.lease.settled') },
  {
    name: 'the scheduler takes old reports for new ones',
    caughtBy: 'I7 taken once',
    service: misreads('scheduler', (fact) => (fact.type === 'node.reported' ? { ...fact, seq: 0 } : fact.type === 'node.lease.settled' && fact.report !== undefined ? { ...fact, report: { ...fact.report, seq: 0 } } : fact)),
  },
  { name: 'the scheduler does not write the views of rollouts', caughtBy: 'I7 true views', service: leavesUnwritten('scheduler', 'rollouts/') },
  { name: 'the merger overlooks that a rollout is complete', caughtBy: 'I7 I8 I10', service: overlooks('merger', 'rollout.complete') },
  {
    name: 'the merger skips a change',
    caughtBy: 'I7 I8 I10',
    service: misreads('merger', (fact) => (fact.type === 'config.accepted' && Number(fact.change.slice(1)) % 5 === 2 ? undefined : fact)),
  },
  { name: 'a node only says that it has acted', caughtBy: 'I4 running', onlySaysActed: true },
  { name: 'configs go that nodes are to get', caughtBy: 'kept configs', forgetsNames: true },
];
