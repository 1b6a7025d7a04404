import { badForOneKind } from './bad-for-one-kind.js';
import * as conditions from './conditions.js';
import * as connections from './connections.js';
import * as deaths from './deaths.js';
import type { Fault } from './fault.js';
import { hastyPeople } from './hasty-people.js';
import { impatientPools } from './impatient-pools.js';
import { killedTrims } from './killed-trims.js';
import * as machines from './machines.js';
import { readAgain } from './read-again.js';
import * as troubles from './troubles.js';
import { meddlingPeople } from './kubernetes/meddling-people.js';
import { otherOperators } from './kubernetes/other-operators.js';
import { troubledApi } from './kubernetes/troubled-api.js';
import { troubledPods } from './kubernetes/troubled-pods.js';
import { unreadyNodes } from './kubernetes/unready-nodes.js';

/** What a seed draws some of, all at once: one more here would make other runs of all seeds that were kept. */
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

/** Each by a chance of its own, so that what is added here leaves the rest of a run as it was. */
export const LATER_FAULTS: readonly Fault[] = [
  conditions.partedAppends,
  badForOneKind,
  deaths.killedTakeOvers,
  deaths.killedStarts,
  killedTrims,
  deaths.hungAppliers,
  conditions.lostHeartbeats,
  impatientPools,
];

/** What mostly comes together with others, by itself. By chances of their own, too. */
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
];

/** The menu. A fault is an entry in a file of its sort, and one line here. */
export const FAULTS: readonly Fault[] = [...DRAWN_FAULTS, ...LATER_FAULTS, ...SINGLE_FAULTS];

/** Those of a world in which nodes are Kubernetes'. */
export const KUBERNETES_FAULTS: readonly Fault[] = [
  meddlingPeople,
  troubledPods,
  unreadyNodes,
  troubledApi,
  otherOperators,
];
