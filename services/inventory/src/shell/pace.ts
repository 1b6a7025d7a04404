import { pushSubject, type NodeAlive } from '#libs/contracts';
import type { Bus } from '#libs/bus';
import { paceFor, type State } from '../core/index.js';

/** Tells nodes that beat too often, or too seldom, how often to beat. What is lost is told again with their next heartbeat. */
export class Pace {
  constructor(private readonly bus: Bus, private readonly perSecond: number) {}

  tell(state: State, heard: readonly NodeAlive[]): void {
    for (const alive of heard) {
      const everyMs = paceFor(state, alive, this.perSecond);
      if (everyMs !== undefined) this.bus.broadcast(pushSubject('pace', alive.node), JSON.stringify({ everyMs }));
    }
  }
}
