import type { Oracle } from '../world/world.js';
import { boundValues } from './bound-values.js';
import { budget } from './budget.js';
import { commands } from './commands.js';
import { knownBad } from './known-bad.js';
import { cordons, knownNodes, podBudgets } from './cordons.js';
import { deletedFragments } from './deleted-fragments.js';
import { drainedFirst } from './drained-first.js';
import { firstTry } from './first-try.js';
import { fragmentCounts } from './fragment-counts.js';
import { inTime } from './in-time.js';
import { ended } from './ended.js';
import { keptConfigs } from './kept-configs.js';
import { leasePhases } from './lease-phases.js';
import { hostNames } from './host-names.js';
import { missingReferences } from './missing-references.js';
import { noOldLeases } from './no-old-leases.js';
import { oneLease } from './one-lease.js';
import { oneOwner } from './one-owner.js';
import { ownedFragments } from './owned-fragments.js';
import { ownPace } from './own-pace.js';
import { paused } from './paused.js';
import { pauses } from './pauses.js';
import { probes } from './probes.js';
import { recovery } from './recovery.js';
import { running } from './running.js';
import { signsOfLife } from './signs-of-life.js';
import { strictHealth } from './strict-health.js';
import { takenOnce } from './taken-once.js';
import { targetsInTime } from './targets-in-time.js';
import { trueViews } from './true-views.js';
import { turnedRound } from './turned-round.js';
import { unavailableTargets } from './unavailable-targets.js';
import { unreachable } from './unreachable.js';
import { wholeFiles } from './whole-files.js';

/** One oracle per invariant. Each run gets new ones, because some have state. */
export const newOracles = (): readonly Oracle[] => [
  budget(),
  oneLease(),
  noOldLeases(),
  knownBad(),
  turnedRound(),
  wholeFiles(),
  commands(),
  probes(),
  strictHealth(),
  unreachable(),
  unavailableTargets(),
  running(),
  inTime(),
  oneOwner(),
  targetsInTime(),
  drainedFirst(),
  cordons(),
  podBudgets(),
  pauses(),
  knownNodes,
  signsOfLife,
  leasePhases(),
  ownPace(),
  firstTry(),
  missingReferences(),
  hostNames(),
  boundValues(),
  paused(),
  takenOnce(),
  ownedFragments(),
  keptConfigs,
  ended(),
  fragmentCounts,
  deletedFragments(),
  trueViews,
  recovery,
];
