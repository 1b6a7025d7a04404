import type { Target, Timing } from '../../../services/applier/src/shell/targets/index.js';

/** Where the targets of an applier are listed. */
export interface Inventory {
  /**
   * Calls back with all targets as soon as they are known, and again whenever they may have changed. While the list
   * cannot be used, the last good one is kept, and the log says why. Returns a function that stops it.
   */
  start(timing: Timing, onChange: (targets: readonly Target[]) => void): () => void;
}
