import { badForOneKind } from './bad-for-one-kind.js';
import { changingProbes } from './changing-probes.js';
import { commands } from './commands.js';
import * as conditions from './conditions.js';
import * as connections from './connections.js';
import * as deaths from './deaths.js';
import type { Fault } from './fault.js';
import { hastyPeople } from './hasty-people.js';
import { impatientPools } from './impatient-pools.js';
import { killedTrims } from './killed-trims.js';
import { lostObjects } from './lost-objects.js';
import * as owners from './lost-owners.js';
import * as machines from './machines.js';
import { boundValues, hostNames, missingReferences, otherSources, pacedChanges, rollbacks } from './other-changes.js';
import { readAgain } from './read-again.js';
import * as troubles from './troubles.js';
import { pausedTargets, unreachableTargets } from './unreachable-targets.js';
import { unreadyTargets } from './unready-targets.js';
import { meddlingPeople } from './kubernetes/meddling-people.js';
import { otherOperators } from './kubernetes/other-operators.js';
import { pausingPools } from './kubernetes/pausing-pools.js';
import { troubledApi } from './kubernetes/troubled-api.js';
import { troubledPods } from './kubernetes/troubled-pods.js';
import { unreadyNodes } from './kubernetes/unready-nodes.js';

/** Faults of which a seed draws some, all at once. Adding one here changes the runs of all kept seeds. */
export const DRAWN_FAULTS: readonly Fault[] = [
  deaths.killedServices,
  connections.staleLeaders,
  readAgain,
  deaths.killedNodes,
  deaths.tornJournals,
  troubles.fullDisks,
  troubles.readOnlyFiles,
  troubles.flappingProbes,
  machines.otherMachines,
  conditions.badPost,
  conditions.lateViews,
  conditions.lostAnswers,
  conditions.slowSteps,
  connections.partitions,
  connections.busAway,
  connections.wrongClocks,
  hastyPeople,
];

/** Each is drawn with its own random numbers, so that adding one leaves the rest of a run unchanged. */
export const LATER_FAULTS: readonly Fault[] = [
  conditions.partedAppends,
  badForOneKind,
  deaths.killedTakeOvers,
  deaths.killedStarts,
  killedTrims,
  deaths.hungAppliers,
  conditions.lostHeartbeats,
  impatientPools,
  otherSources,
  lostObjects,
  rollbacks,
  troubles.failingProbes,
  changingProbes,
  pacedChanges,
  missingReferences,
  unreachableTargets,
  pausedTargets,
  owners.lostOwners,
  hostNames,
  connections.awayTogether,
  boundValues,
  unreadyTargets,
  connections.laggingServers,
  commands,
];

/**
 * Faults that mostly occur together with others, each on its own. They are also drawn with their own random numbers.
 */
export const SINGLE_FAULTS: readonly Fault[] = [
  conditions.lostReports,
  conditions.doubledReports,
  conditions.lateReports,
  conditions.lostPushes,
  conditions.latePushes,
  conditions.laggingReads,
  machines.newMachines,
  machines.scrappedMachines,
  machines.lostDisks,
  machines.oldDisks,
  owners.pausedCopies,
  owners.killedCopies,
  owners.cutOffCopies,
  owners.twoOwners,
  owners.movedTargets,
  owners.shakyTargets,
  owners.laggingJournals,
  owners.lateCalls,
];

/** All faults. A fault is an entry in a file of its category, and one line here. */
export const FAULTS: readonly Fault[] = [...DRAWN_FAULTS, ...LATER_FAULTS, ...SINGLE_FAULTS];

/** The faults of a world whose nodes are Kubernetes nodes. */
export const KUBERNETES_FAULTS: readonly Fault[] = [
  meddlingPeople,
  troubledPods,
  unreadyNodes,
  troubledApi,
  otherOperators,
  pausingPools,
];
