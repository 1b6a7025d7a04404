import type { Fleet } from '../e2e/fleet.js';
import type { FrontedServer } from './fronted-server.js';
import type { Shape } from './shape.js';

/** What faults and people act on. */
export interface Stage {
  readonly fleet: Fleet<FrontedServer>;
  readonly shape: Shape;
  /** Which process has the applier of a node. */
  groupOf(node: string): string;
  startDrainer(): void;
  /** Ends early when the round's time of faults is over. */
  pause(ms: number): Promise<void>;
  /** For the record: what was done, by what. */
  note(what: string): void;
}
