import { pushSubject, type NodeAlive } from '#libs/contracts';
import type { Bus } from '#libs/nats';
import { paceFor, type State } from '../core/index.js';

/**
 * Asks nodes that send heartbeats too often, or too rarely, for another interval. A lost request is repeated at their
 * next heartbeat.
 */
export class Pace {
  constructor(
    private readonly bus: Bus,
    private readonly perSecond: number,
  ) {}

  /**
   * The interval between heartbeats that this node may use from now on because it was asked, in milliseconds. It counts
   * even if the next heartbeat, which would contain it, is lost.
   */
  keep(state: State, alive: NodeAlive): number {
    const everyMs = paceFor(state, alive, this.perSecond);
    if (everyMs === undefined) return alive.pacedMs;
    this.bus.broadcast(pushSubject('pace', alive.node), JSON.stringify({ everyMs }));
    return Math.max(alive.pacedMs, everyMs);
  }
}
