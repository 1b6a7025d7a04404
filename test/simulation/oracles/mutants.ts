import type { Fact } from '#libs/contracts';
import { drainCore } from '../../../services/drain/src/core/index.js';
import type { AnyKind } from '../world/services.js';
import type { Plan } from '../runs/plan.js';
import type { PlantedFaults } from '../world/surroundings.js';

/** A fault planted on purpose, to show that an oracle sees it. */
export interface Mutant extends PlantedFaults {
  readonly name: string;
  /** How the violation begins that it must lead to. */
  readonly caughtBy: string;
  /** In which worlds it shows, where not in all. */
  readonly on?: Pick<Plan, 'kubernetes' | 'actors'>;
  readonly service?: (kind: AnyKind) => AnyKind;
}

type AnyCore = AnyKind['core'];

/** Replaces parts of the core of one service. */
const altering =
  (service: string, change: (core: AnyCore) => Partial<AnyCore>) =>
  (kind: AnyKind): AnyKind =>
    kind.core.name === service ? { ...kind, core: { ...kind.core, ...change(kind.core) } } : kind;

/** Changes what one service makes of a fact; undefined lets it overlook the fact. */
const misreads = (service: string, misread: (fact: Fact) => Fact | undefined) =>
  altering(service, (core) => ({
    evolve: (state, entry) => {
      const fact = misread(entry.fact);
      if (fact !== undefined) core.evolve(state, { ...entry, fact });
    },
  }));
const overlooks = (service: string, type: Fact['type']) =>
  misreads(service, (fact) => (fact.type === type ? undefined : fact));
const neverKnownBad = (service: string) =>
  misreads(service, (fact) => (fact.type === 'config.judged' ? { ...fact, knownBad: false } : fact));

/** A world in which only these act: what one of them shows is then soon seen. */
const among = (...actors: readonly string[]): Plan['actors'] => new Map(actors.map((name) => [name, undefined]));

/** One planted fault for each invariant, at least. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'the scheduler counts no lease against its pool',
    caughtBy: 'I1 budget',
    service: misreads('scheduler', (fact) => (fact.type === 'node.lease.granted' ? { ...fact, free: true } : fact)),
  },
  {
    name: 'the scheduler takes silent nodes for available',
    caughtBy: 'I1 budget',
    service: overlooks('scheduler', 'node.silent'),
  },
  {
    name: 'the scheduler lets all nodes roll back at once',
    caughtBy: 'I1 budget',
    service: misreads('scheduler', (fact) =>
      fact.type === 'node.lease.granted' && fact.kind === 'rollback' ? { ...fact, free: true } : fact,
    ),
  },
  {
    name: 'the scheduler forgets that it granted a lease',
    caughtBy: 'I2 one lease',
    service: overlooks('scheduler', 'node.lease.granted'),
  },
  {
    name: 'nobody remembers that a config is known-bad',
    caughtBy: 'I3 known-bad',
    service: (kind) => neverKnownBad('validator')(neverKnownBad('scheduler')(kind)),
  },
  { name: 'a node does not put back what it replaced', caughtBy: 'I4 whole files', keepsReplaced: true },
  {
    name: 'the drain service says drained when nobody drained',
    caughtBy: 'I5 drained first',
    service: altering('drain', () => drainCore('none') as unknown as AnyCore),
  },
  { name: 'the scheduler overlooks a pause', caughtBy: 'I6 paused', service: overlooks('scheduler', 'rollout.paused') },
  {
    name: 'the scheduler forgets that a lease was settled',
    caughtBy: 'I2 I5 lease phases',
    service: overlooks('scheduler', 'node.lease.settled'),
  },
  {
    name: 'the scheduler takes what belongs together for separate',
    caughtBy: 'I4 no forward after failure',
    on: { kubernetes: false, actors: among('changes', 'parted-appends') },
    service: altering('scheduler', () => ({ separable: () => true })),
  },
  {
    name: 'the scheduler takes old reports for new ones',
    caughtBy: 'I7 taken once',
    service: misreads('scheduler', (fact) =>
      fact.type === 'node.reported'
        ? { ...fact, seq: 0 }
        : fact.type === 'node.lease.settled' && fact.report !== undefined
          ? { ...fact, report: { ...fact.report, seq: 0 } }
          : fact,
    ),
  },
  {
    name: 'the scheduler does not write the views of rollouts',
    caughtBy: 'I7 true views',
    service: altering('scheduler', (core) => ({
      takeTouched: (state) => new Set([...core.takeTouched(state)].filter((key) => !key.startsWith('rollouts/'))),
    })),
  },
  {
    name: 'the merger overlooks that a rollout is complete',
    caughtBy: 'I7 I8 I10 ended',
    service: overlooks('merger', 'rollout.complete'),
  },
  {
    name: 'the merger skips a change',
    caughtBy: 'I7 I8 I10 ended',
    service: misreads('merger', (fact) =>
      fact.type === 'config.accepted' && Number(fact.change.slice(1)) % 5 === 2 ? undefined : fact,
    ),
  },
  { name: 'a node only says that it has acted', caughtBy: 'I4 running', onlySaysActed: true },
  { name: 'a node restarts its machine without leave', caughtBy: 'I5 drained first', restartsUnasked: true },
  {
    name: 'the guard of an applier that hangs does not look',
    caughtBy: 'I4 in time',
    on: { kubernetes: false, actors: among('changes', 'hung-appliers') },
    guardSleeps: true,
  },
  { name: 'configs go that nodes are to get', caughtBy: 'kept configs', forgetsNames: true },
  {
    name: 'the scheduler takes nodes that are out of service in Kubernetes for available',
    caughtBy: 'I1 budget',
    on: { kubernetes: true, actors: among('changes', 'unready-nodes') },
    service: overlooks('scheduler', 'node.unavailable'),
  },
  {
    name: 'the scheduler overlooks that another tool has taken a node',
    caughtBy: 'I1 budget',
    on: { kubernetes: true, actors: among('changes', 'other-operators') },
    service: overlooks('scheduler', 'node.taken'),
  },
  {
    name: 'the inventory hears of no change of a Node',
    caughtBy: 'I1 known nodes',
    on: { kubernetes: true, actors: among('changes', 'unready-nodes') },
    overlooksNodes: true,
  },
  {
    name: 'the inventory takes no report for a sign of life',
    caughtBy: 'signs of life',
    on: { kubernetes: false, actors: among('changes', 'lost-heartbeats') },
    overlooksReports: true,
  },
  {
    name: 'a cordon that was found is marked as if it were not',
    caughtBy: 'I5 cordons',
    on: { kubernetes: true, actors: among('changes', 'meddling-people') },
    forgetsFound: true,
  },
  {
    name: 'what is written to a Node does not rest on what was read',
    caughtBy: 'I5 cordons',
    on: { kubernetes: true, actors: among('changes', 'meddling-people', 'troubled-api', 'stale-leaders') },
    writesBlindly: true,
  },
  {
    name: 'the drain service sees no pods',
    caughtBy: 'I5 cordons',
    on: { kubernetes: true, actors: among('changes') },
    overlooksPods: true,
  },
  {
    name: 'the drain service gives nodes back before their lease is over',
    caughtBy: 'I5 cordons',
    on: { kubernetes: true, actors: among('changes') },
    service: misreads('drain', (fact) =>
      fact.type === 'node.drained' ? ({ ...fact, type: 'node.lease.uncordoning' } as unknown as Fact) : fact,
    ),
  },
  {
    name: 'pods whose eviction is refused are deleted',
    caughtBy: 'pod budgets',
    on: { kubernetes: true, actors: among('changes', 'troubled-pods') },
    deletesRefused: true,
  },
  {
    name: 'a copy that takes over leaves the views as it finds them',
    caughtBy: 'I7 true views',
    on: { kubernetes: false, actors: among('changes', 'killed-services', 'killed-take-overs', 'late-views') },
    trustsViews: true,
  },
  {
    name: 'a copy starts from a snapshot and forgets what was in it',
    caughtBy: 'recovery',
    on: { kubernetes: false, actors: among('changes', 'killed-starts') },
    service: altering('inventory', (core) => ({ load: () => core.initial() })),
  },
  {
    name: 'the ledger is trimmed further than the snapshots reach',
    caughtBy: 'recovery',
    on: { kubernetes: false, actors: among('changes', 'killed-starts', 'killed-trims') },
    trimsAll: true,
  },
];
