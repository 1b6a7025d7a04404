import type { Fact, FragmentCounts, FragmentView, Reason } from '#libs/contracts';
import { drainCore, type State as DrainState } from '../../../services/drain/src/core/index.js';
import type { State as MergerState } from '../../../services/merger/src/core/index.js';
import type { State as SchedulerState } from '../../../services/scheduler/src/core/index.js';
import type { ReviewResult } from '../../../services/validator/src/core/index.js';
import type { AnyKind } from '../world/services.js';
import { REGION } from '../people/manifests.js';
import type { Plan } from '../runs/plan.js';
import type { PlantedFaults } from '../world/surroundings.js';

/** A deliberate bug that an oracle must detect. */
export interface Mutant extends PlantedFaults {
  readonly name: string;
  /** The start of the violation that it must cause. */
  readonly caughtBy: string;
  /** The worlds in which it shows. Undefined for all. */
  readonly on?: Pick<Plan, 'kubernetes' | 'actors'> & Partial<Pick<Plan, 'minutes'>>;
  readonly service?: (kind: AnyKind) => AnyKind;
}

type AnyCore = AnyKind['core'];

/** Replaces parts of the core of one service. */
const altering =
  (service: string, change: (core: AnyCore) => Partial<AnyCore>) =>
  (kind: AnyKind): AnyKind =>
    kind.core.name === service ? { ...kind, core: { ...kind.core, ...change(kind.core) } } : kind;

/** Changes how one service reads a fact. Undefined makes it overlook the fact. */
const misreads = (service: string, misread: (fact: Fact) => Fact | undefined) =>
  altering(service, (core) => ({
    evolve: (state, entry) => {
      const fact = misread(entry.fact);
      if (fact !== undefined) core.evolve(state, { ...entry, fact });
    },
  }));
const overlooks = (service: string, type: Fact['type']) =>
  misreads(service, (fact) => (fact.type === type ? undefined : fact));
/** Changes what the merger shows of deleted fragments. */
const showsDeleted = (change: (view: FragmentView, counts: FragmentCounts, nodes: readonly string[]) => FragmentView) =>
  altering('merger', (core) => ({
    view: (state, key) => {
      const view = core.view(state, key) as FragmentView | undefined;
      if (view?.gone !== true || view.counts === undefined) return view;
      return change(view, view.counts, [...(state as MergerState).nodes.keys()]);
    },
  }));
const neverKnownBad = (service: string) =>
  misreads(service, (fact) => (fact.type === 'config.judged' ? { ...fact, knownBad: false } : fact));

/** A world in which only these actors act, so that the mutant shows soon. */
const among = (...actors: readonly string[]): Plan['actors'] => new Map(actors.map((name) => [name, undefined]));

const FAILURES: ReadonlySet<string> = new Set(['failed', 'invalid']);

/** At least one mutant for each invariant. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'the scheduler does not count leases against their pool',
    caughtBy: 'I1 budget',
    service: misreads('scheduler', (fact) => (fact.type === 'node.lease.granted' ? { ...fact, free: true } : fact)),
  },
  {
    name: 'the scheduler counts silent nodes as available',
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
    name: 'a node starts the lease that any server shows',
    caughtBy: 'no old leases',
    on: { kubernetes: false, actors: among('changes', 'lagging-servers', 'steering', 'hasty-people'), minutes: 60 },
    trustsAnyServer: true,
  },
  {
    name: 'the services forget that a config is known-bad',
    caughtBy: 'I3 known-bad',
    service: (kind) => neverKnownBad('validator')(neverKnownBad('scheduler')(kind)),
  },
  { name: 'a node does not restore what it replaced', caughtBy: 'I4 whole files', keepsReplaced: true },
  {
    name: 'a node says that it has undone commands, and has not',
    caughtBy: 'commands',
    on: { kubernetes: false, actors: among('changes', 'commands') },
    keepsCommands: true,
  },
  {
    name: 'a node runs commands without their check',
    caughtBy: 'commands',
    on: { kubernetes: false, actors: among('changes', 'commands', 'killed-nodes') },
    runsUnneeded: true,
  },
  {
    name: 'a node that was away during a rollback does not learn that it has to undo commands',
    caughtBy: 'commands',
    on: { kubernetes: false, actors: among('changes', 'commands', 'steering', 'killed-nodes') },
    service: misreads('scheduler', (fact) =>
      fact.type === 'node.lease.granted' ? { ...fact, undo: undefined } : fact,
    ),
  },
  {
    name: 'an applier takes a target that does not answer for one that has failed',
    caughtBy: 'unreachable is not failed',
    on: { kubernetes: false, actors: among('changes', 'unreachable-targets') },
    blamesUnreachable: true,
  },
  {
    name: 'copies of an applier write to a target without asking whether they still own it',
    caughtBy: 'one owner',
    on: { kubernetes: false, actors: among('changes', 'lost-owners'), minutes: 30 },
    fencesNothing: true,
  },
  {
    name: 'a copy of an applier takes a target over before the deadline of another one',
    caughtBy: 'one owner',
    on: { kubernetes: false, actors: among('changes', 'lost-owners'), minutes: 30 },
    takesOverAtOnce: true,
  },
  {
    name: 'a copy of an applier does not wait for late calls of the previous owner',
    caughtBy: 'one owner',
    on: { kubernetes: false, actors: among('changes', 'lost-owners'), minutes: 30 },
    expectsNoLateCalls: true,
  },
  {
    name: 'the journal of a target is overwritten, no matter which copy owns it',
    caughtBy: 'one owner',
    on: { kubernetes: false, actors: among('changes', 'lost-owners'), minutes: 30 },
    overwritesJournals: true,
  },
  {
    name: 'a copy of an applier waits long after the deadline of another one',
    caughtBy: 'targets in time',
    on: { kubernetes: false, actors: among('changes', 'killed-copies') },
    waitsTooLong: true,
  },
  {
    name: 'a node accepts an object that was changed in the object store',
    caughtBy: 'I4 whole files',
    on: { kubernetes: false, actors: among('changes', 'lost-objects') },
    takesChangedObjects: true,
  },
  {
    name: 'the drain service reports a node as drained that is not',
    caughtBy: 'I5 drained first',
    service: altering('drain', () => drainCore('none') as unknown as AnyCore),
  },
  {
    name: 'the scheduler ignores the pace of a change',
    caughtBy: 'own pace',
    on: { kubernetes: false, actors: among('changes', 'paced-changes') },
    service: misreads('scheduler', (fact) => (fact.type === 'rollout.started' ? { ...fact, maxUnavailable: 0 } : fact)),
  },
  {
    name: 'the scheduler does not notice that the first node with a config could not apply it',
    caughtBy: 'first try',
    on: { kubernetes: false, actors: among('away-together') },
    service: misreads('scheduler', (fact) =>
      fact.type === 'node.lease.settled' && fact.kind === 'corrective' && FAILURES.has(fact.because)
        ? { ...fact, because: 'unreachable' }
        : fact,
    ),
  },
  {
    name: 'the merger does not count what nodes report at the end of a lease',
    caughtBy: 'fragment counts',
    service: overlooks('merger', 'node.lease.settled'),
  },
  {
    name: 'the merger names no node that still has a deleted fragment',
    caughtBy: 'deleted fragments',
    service: showsDeleted((view, counts) => ({
      ...view,
      stillOn: [],
      counts: { ...counts, upToDate: counts.nodes },
    })),
  },
  {
    name: 'the merger names a node that has dropped a deleted fragment',
    caughtBy: 'fragment counts',
    service: showsDeleted((view, counts, [node = '']) => ({
      ...view,
      stillOn: [node],
      counts: { ...counts, upToDate: counts.nodes - 1 },
    })),
  },
  {
    name: 'the merger does not notice that a node is silent',
    caughtBy: 'fragment counts',
    on: { kubernetes: false, actors: among('changes', 'other-machines') },
    service: overlooks('merger', 'node.silent'),
  },
  {
    name: 'the merger does not notice that what a change waits for exists now',
    caughtBy: 'missing references',
    on: { kubernetes: false, actors: among('changes', 'missing-references'), minutes: 60 },
    service: misreads('merger', (fact) => (fact.type === 'config.blocked' ? { ...fact, needs: ['Nothing/x'] } : fact)),
  },
  {
    name: 'the merger renders other addresses than those that were published',
    caughtBy: 'host names',
    on: { kubernetes: false, actors: among('changes', 'host-names'), minutes: 60 },
    service: misreads('merger', (fact) =>
      fact.type === 'config.accepted' && fact.source === 'names'
        ? { ...fact, apply: fact.apply.map((one) => ({ ...one, spec: { addresses: ['203.0.113.1'] } })) }
        : fact,
    ),
  },
  {
    name: 'the merger renders values that nobody has published',
    caughtBy: 'bound values',
    on: { kubernetes: false, actors: among('changes', 'bound-values'), minutes: 60 },
    service: misreads('merger', (fact) =>
      fact.type === 'config.accepted' && fact.source === 'bindings'
        ? {
            ...fact,
            apply: fact.apply.map((one) => ({ ...one, spec: { values: [{ ...REGION, value: 'invented' }] } })),
          }
        : fact,
    ),
  },
  {
    name: 'the merger accepts values that replace others than the last ones',
    caughtBy: 'bound values',
    on: { kubernetes: false, actors: among('changes', 'bound-values'), minutes: 60 },
    service: misreads('merger', (fact) =>
      fact.type === 'config.accepted' && fact.source === 'bindings' ? { ...fact, source: 'people' } : fact,
    ),
  },
  {
    name: 'the validator never ends the wait of a change',
    caughtBy: 'missing references',
    on: { kubernetes: false, actors: among('changes', 'missing-references'), minutes: 60 },
    service: misreads('validator', (fact) => (fact.type === 'config.blocked' ? { ...fact, untilMs: 1e15 } : fact)),
  },
  {
    name: 'the validator overlooks missing references',
    caughtBy: 'missing references',
    on: { kubernetes: false, actors: among('changes', 'missing-references') },
    service: altering('validator', ({ gather }) => ({
      *gather(needs, state) {
        const found = (yield* gather?.(needs, state) ?? []) as ReadonlyMap<string, ReviewResult>;
        const present = (reasons: readonly Reason[]) => reasons.filter((reason) => reason.needs === undefined);
        return new Map(
          [...found].map(([key, result]) => [
            key,
            result.did === 'review-change' ? { ...result, reasons: present(result.reasons) } : result,
          ]),
        );
      },
    })),
  },
  {
    name: 'the validator does not say what a change waited for',
    caughtBy: 'missing references',
    on: { kubernetes: false, actors: among('changes', 'missing-references'), minutes: 30 },
    service: altering('validator', ({ decide }) => ({
      decide: (...input) => {
        const decision = decide(...input);
        const facts = decision.facts.map((fact) => (fact.type === 'config.rejected' ? { ...fact, reasons: [] } : fact));
        return { ...decision, facts };
      },
    })),
  },
  { name: 'the scheduler ignores a pause', caughtBy: 'I6 paused', service: overlooks('scheduler', 'rollout.paused') },
  {
    name: 'the scheduler continues a correction of a paused change',
    caughtBy: 'I6 paused',
    service: misreads('scheduler', (fact) =>
      fact.type === 'rollout.paused' && fact.by === 'scheduler' ? undefined : fact,
    ),
  },
  {
    name: 'the scheduler forgets that a lease was settled',
    caughtBy: 'I2 I5 lease phases',
    service: overlooks('scheduler', 'node.lease.settled'),
  },
  {
    name: 'the scheduler appends separately what belongs together',
    caughtBy: 'I4 no forward after failure',
    on: { kubernetes: false, actors: among('changes', 'parted-appends') },
    service: altering('scheduler', () => ({ separable: () => true })),
  },
  {
    name: 'the scheduler accepts old reports as new',
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
    name: 'the merger ignores that a rollout is complete',
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
  {
    name: 'the merger treats all sources as one',
    caughtBy: 'owned fragments',
    on: { kubernetes: false, actors: among('changes', 'other-sources') },
    service: misreads('merger', (fact) => (fact.type === 'config.accepted' ? { ...fact, source: 'people' } : fact)),
  },
  {
    name: 'the merger forgets the ids of changes',
    caughtBy: 'owned fragments',
    on: { kubernetes: false, actors: among('changes', 'other-sources') },
    service: misreads('merger', (fact) => (fact.type === 'config.accepted' ? { ...fact, messageId: undefined } : fact)),
  },
  {
    name: 'the merger forgets what a change replaced',
    caughtBy: 'owned fragments',
    on: { kubernetes: false, actors: among('changes', 'rollbacks') },
    service: altering('merger', (core) => ({
      evolve: (state, entry) => {
        core.evolve(state, entry);
        if (entry.fact.type !== 'config.committed') return;
        const { fragments } = state as MergerState;
        for (const [id, { replaced: _, ...rest }] of [...fragments.entries()]) fragments.set(id, rest);
      },
    })),
  },
  { name: 'a node reports actions that it has not taken', caughtBy: 'I4 running', onlySaysActed: true },
  {
    name: 'a node restarts its machine without permission',
    caughtBy: 'I5 drained first',
    // It takes many changes until one restarts a unit that does not start, without a drain.
    on: { kubernetes: false, actors: among('changes'), minutes: 60 },
    restartsUnasked: true,
  },
  { name: 'a node confirms changes although probes fail', caughtBy: 'probes', passesProbes: true },
  {
    name: 'the scheduler ignores that a node is healthy again',
    caughtBy: 'probes',
    on: { kubernetes: false, actors: among('changes', 'failing-probes') },
    service: overlooks('scheduler', 'node.healthy'),
  },
  {
    name: 'the scheduler ignores policies for unhealthy nodes',
    caughtBy: 'strict health',
    on: { kubernetes: false, actors: among('changes', 'failing-probes', 'changing-probes') },
    service: misreads('scheduler', (fact) =>
      fact.type === 'config.accepted'
        ? { ...fact, apply: fact.apply.filter(({ kind }) => kind !== 'RolloutPolicy') }
        : fact,
    ),
  },
  {
    name: 'a strict policy also keeps a node on what a failed change left',
    caughtBy: 'strict health',
    on: {
      kubernetes: false,
      actors: among('changes', 'steering', 'failing-probes', 'changing-probes', 'killed-nodes', 'partitions'),
      minutes: 60,
    },
    service: altering('scheduler', (core) => ({
      evolve: (state, entry) => {
        core.evolve(state, entry);
        const { nodes } = state as SchedulerState;
        for (const [name, node] of [...nodes.entries()])
          if (node.lastDesired !== node.report?.hash) nodes.set(name, { ...node, lastDesired: node.report?.hash });
      },
    })),
  },
  {
    name: 'the scheduler ignores that a target says that it cannot be used',
    caughtBy: 'unavailable targets',
    on: { kubernetes: false, actors: among('changes', 'unreachable-targets', 'unready-targets', 'lost-owners') },
    service: misreads('scheduler', (fact) =>
      fact.type === 'node.reported' ? { ...fact, unavailable: undefined } : fact,
    ),
  },
  {
    name: 'the guard ignores an applier that hangs',
    caughtBy: 'I4 in time',
    on: { kubernetes: false, actors: among('changes', 'hung-appliers') },
    guardSleeps: true,
  },
  {
    name: 'the guard ignores an applier that was killed',
    caughtBy: 'I4 in time',
    on: { kubernetes: false, actors: among('changes', 'killed-nodes') },
    guardSleeps: true,
  },
  { name: 'configs are deleted that nodes are to get', caughtBy: 'kept configs', forgetsNames: true },
  {
    name: 'the scheduler counts nodes that are out of service in Kubernetes as available',
    caughtBy: 'I1 budget',
    on: { kubernetes: true, actors: among('changes', 'unready-nodes') },
    service: overlooks('scheduler', 'node.unavailable'),
  },
  {
    name: 'the scheduler ignores that another tool has taken a node',
    caughtBy: 'I1 budget',
    on: { kubernetes: true, actors: among('changes', 'other-operators') },
    service: overlooks('scheduler', 'node.taken'),
  },
  {
    name: 'the inventory receives no changes of Nodes',
    caughtBy: 'I1 known nodes',
    on: { kubernetes: true, actors: among('changes', 'unready-nodes') },
    overlooksNodes: true,
  },
  {
    name: 'the inventory does not count reports as signs of life',
    caughtBy: 'signs of life',
    on: { kubernetes: false, actors: among('changes', 'lost-heartbeats') },
    overlooksReports: true,
  },
  {
    name: 'an existing cordon is marked as set by Sluice',
    caughtBy: 'I5 cordons',
    on: { kubernetes: true, actors: among('changes', 'meddling-people') },
    forgetsFound: true,
  },
  {
    name: 'Nodes are written without checking the version that was read',
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
    name: 'the drain service uncordons nodes before their lease is over',
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
    name: 'the drain service does not see that other drains need an object paused',
    caughtBy: 'I5 pauses',
    on: { kubernetes: true, actors: among('changes', 'pausing-pools') },
    overlooksPausers: true,
  },
  {
    name: 'the drain service takes every pause for its own',
    caughtBy: 'I5 pauses',
    on: { kubernetes: true, actors: among('changes', 'pausing-pools') },
    forgetsPauser: true,
  },
  {
    name: 'a node is given back without unpausing anything',
    caughtBy: 'I5 pauses',
    on: { kubernetes: true, actors: among('changes', 'pausing-pools') },
    service: altering('drain', (core) => ({
      evolve: (state, entry) => {
        core.evolve(state, entry);
        const { drains } = state as DrainState;
        const { fact } = entry;
        const drain = fact.type === 'node.lease.uncordoning' ? drains.get(fact.node) : undefined;
        if (drain !== undefined) drains.set(drain.node, { ...drain, pauses: [] });
      },
    })),
  },
  {
    name: 'a copy that takes over does not check the views',
    caughtBy: 'I7 true views',
    on: {
      kubernetes: false,
      actors: among('changes', 'killed-services', 'killed-take-overs', 'late-views', 'killed-starts'),
    },
    trustsViews: true,
  },
  {
    name: 'a copy starts from a snapshot and loses its content',
    caughtBy: 'recovery',
    on: { kubernetes: false, actors: among('changes', 'killed-starts') },
    service: altering('inventory', (core) => ({ load: () => core.initial() })),
  },
  {
    name: 'the ledger is trimmed beyond the snapshots',
    caughtBy: 'recovery',
    on: { kubernetes: false, actors: among('changes', 'killed-starts', 'killed-trims') },
    trimsAll: true,
  },
];
