import type { Fault } from './fault.js';
import { badForOneKind } from './bad-for-one-kind.js';
import { badPost } from './bad-post.js';
import { busAway } from './bus-away.js';
import { doubledReports } from './doubled-reports.js';
import { flappingProbes } from './flapping-probes.js';
import { fullDisks } from './full-disks.js';
import { hastyPeople } from './hasty-people.js';
import { killedNodes } from './killed-nodes.js';
import { killedServices } from './killed-services.js';
import { laggingReads } from './lagging-reads.js';
import { latePushes } from './late-pushes.js';
import { lateReports } from './late-reports.js';
import { lateViews } from './late-views.js';
import { lostAnswers } from './lost-answers.js';
import { lostDisks } from './lost-disks.js';
import { lostPushes } from './lost-pushes.js';
import { lostReports } from './lost-reports.js';
import { newMachines } from './new-machines.js';
import { oldDisks } from './old-disks.js';
import { otherMachines } from './other-machines.js';
import { partedAppends } from './parted-appends.js';
import { partitions } from './partitions.js';
import { readAgain } from './read-again.js';
import { readOnlyFiles } from './read-only-files.js';
import { scrappedMachines } from './scrapped-machines.js';
import { slowSteps } from './slow-steps.js';
import { staleLeaders } from './stale-leaders.js';
import { tornJournals } from './torn-journals.js';
import { wrongClocks } from './wrong-clocks.js';
import { meddlingPeople } from './kubernetes/meddling-people.js';
import { otherOperators } from './kubernetes/other-operators.js';
import { troubledApi } from './kubernetes/troubled-api.js';
import { troubledPods } from './kubernetes/troubled-pods.js';
import { unreadyNodes } from './kubernetes/unready-nodes.js';

/** What a seed draws some of, all at once: one more here would make other runs of all seeds that were kept. */
export const DRAWN_FAULTS: readonly Fault[] = [
  killedServices,
  staleLeaders,
  readAgain,
  killedNodes,
  tornJournals,
  fullDisks,
  readOnlyFiles,
  flappingProbes,
  otherMachines,
  badPost,
  lateViews,
  lostAnswers,
  slowSteps,
  partitions,
  busAway,
  wrongClocks,
  hastyPeople,
];

/** Each by a chance of its own, so that whoever is added here leaves the rest of a run as it was. */
export const LATER_FAULTS: readonly Fault[] = [partedAppends, badForOneKind];

/** What mostly comes together with others, by itself. By chances of their own, too. */
export const SINGLE_FAULTS: readonly Fault[] = [
  lostReports,
  doubledReports,
  lateReports,
  lostPushes,
  latePushes,
  laggingReads,
  newMachines,
  scrappedMachines,
  lostDisks,
  oldDisks,
];

/** The menu. A fault is one small file and one line here. */
export const FAULTS: readonly Fault[] = [...DRAWN_FAULTS, ...LATER_FAULTS, ...SINGLE_FAULTS];

/** Those of a world in which nodes are Kubernetes'. */
export const KUBERNETES_FAULTS: readonly Fault[] = [
  meddlingPeople,
  troubledPods,
  unreadyNodes,
  troubledApi,
  otherOperators,
];
