import { pushSubject, type NodeAlive } from '#libs/contracts';
import type { Bus } from '#libs/nats';
import { paceFor, type State } from '../core/index.js';

/**
 * Tells nodes that beat too often, or too seldom, how often to beat. What is lost is told again with their next
 * heartbeat.
 */
export class Pace {
  constructor(
    private readonly bus: Bus,
    private readonly perSecond: number,
  ) {}

  /**
   * How far apart the heartbeats of this node may be from now on because it was asked, in milliseconds: also if its
   * next one, which would say so, is lost.
   */
  keep(state: State, alive: NodeAlive): number {
    const everyMs = paceFor(state, alive, this.perSecond);
    if (everyMs === undefined) return alive.pacedMs;
    this.bus.broadcast(pushSubject('pace', alive.node), JSON.stringify({ everyMs }));
    return Math.max(alive.pacedMs, everyMs);
  }
}
