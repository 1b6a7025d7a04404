import type { Fault } from './fault.js';
import { frozenApplier } from './frozen-applier.js';
import { frozenServer } from './frozen-server.js';
import { frozenService } from './frozen-service.js';
import { killedApplier } from './killed-applier.js';
import { killedDrainer } from './killed-drainer.js';
import { killedPair } from './killed-pair.js';
import { killedServer } from './killed-server.js';
import { killedService } from './killed-service.js';
import { refusingBus } from './refusing-bus.js';

/** All faults. Each is one small file and one line here. A fault that is listed twice is drawn twice as often. */
export const FAULTS: readonly Fault[] = [
  killedService,
  killedApplier,
  killedApplier,
  killedServer,
  killedPair,
  killedDrainer,
  frozenService,
  frozenApplier,
  refusingBus,
  frozenServer,
];
export { startAgain, type ScheduledFault } from './fault.js';
