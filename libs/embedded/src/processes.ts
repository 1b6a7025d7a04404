import type { ServiceName } from '#libs/contracts';

/**
 * Which services share a process on a single machine. The scheduler, whose decisions a rollout waits for, has its own; the others have little to do
 * for each node, and together they read the ledger once and wake less often. In a cluster each has its own, and its own rights.
 */
export const PROCESSES: readonly (readonly ServiceName[])[] = [
  ['scheduler'],
  ['merger', 'validator', 'inventory', 'drain'],
];
