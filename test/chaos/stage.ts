import type { Fleet } from '../e2e/fleet.js';
import type { FrontedServer } from './fronted-server.js';
import type { Shape } from './shape.js';

/** What faults and people act on. */
export interface Stage {
  readonly fleet: Fleet<FrontedServer>;
  readonly shape: Shape;
  /** The process that runs the applier of a node. */
  groupOf(node: string): string;
  startDrainer(): void;
  /** Ends early when the time for faults in this round is over. */
  pause(ms: number): Promise<void>;
  /** Records what was done. */
  note(what: string): void;
}
