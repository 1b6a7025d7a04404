import type { Oracle } from '../world/world.js';
import { budget } from './budget.js';
import { knownBad } from './known-bad.js';
import { cordons, knownNodes, podBudgets } from './cordons.js';
import { drainedFirst } from './drained-first.js';
import { inTime } from './in-time.js';
import { ended } from './ended.js';
import { keptConfigs } from './kept-configs.js';
import { leasePhases } from './lease-phases.js';
import { oneLease } from './one-lease.js';
import { paused } from './paused.js';
import { recovery } from './recovery.js';
import { running } from './running.js';
import { signsOfLife } from './signs-of-life.js';
import { takenOnce } from './taken-once.js';
import { trueViews } from './true-views.js';
import { turnedRound } from './turned-round.js';
import { wholeFiles } from './whole-files.js';

/** One per invariant; new ones for each run, for some remember. */
export const newOracles = (): readonly Oracle[] => [
  budget(),
  oneLease(),
  knownBad(),
  turnedRound(),
  wholeFiles,
  running(),
  inTime(),
  drainedFirst(),
  cordons(),
  podBudgets(),
  knownNodes,
  signsOfLife,
  leasePhases(),
  paused(),
  takenOnce(),
  keptConfigs,
  ended(),
  trueViews,
  recovery,
];
