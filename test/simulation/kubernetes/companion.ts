import type { ServiceCopy } from '../service-copy.js';
import { NodeObjects } from './node-objects.js';
import { SimDrainer } from './sim-drainer.js';

/** What a copy of a service does beside its cycle, as its shell does in production. */
export interface Companion {
  /** After whatever this copy folded or decided while it leads; `ended` when it leads no more. */
  follow(): void;
  ended(): void;
}

/** What stands beside a copy where nodes are Kubernetes'. */
export function companionOf(copy: ServiceCopy): Companion | undefined {
  switch (copy.kind.core.name) {
    case 'drain':
      return new SimDrainer(copy as never);
    case 'inventory':
      return new NodeObjects(copy as never);
    default:
      return undefined;
  }
}
