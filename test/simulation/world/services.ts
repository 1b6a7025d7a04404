import type { Need } from '#libs/engine';
import { drainCore } from '../../../services/drain/src/core/index.js';
import { inventoryCore, noteAnnounced, type Input } from '../../../services/inventory/src/core/index.js';
import { mergerCore, publishedInput } from '../../../services/merger/src/core/index.js';
import { schedulerCore } from '../../../services/scheduler/src/core/index.js';
import { validatorCore } from '../../../services/validator/src/core/index.js';
import type { Cluster } from '../kubernetes/cluster.js';
import { NodeObjects } from '../kubernetes/node-objects.js';
import { SimDrainer } from '../kubernetes/sim-drainer.js';
import { sha256 } from './bus.js';
import { ServiceCopy } from './service-copy.js';
import type { ServiceKind } from './service-host.js';
import type { Surroundings } from './surroundings.js';

export const SILENT_AFTER_MS = 105_000;

/** A copy can run any kind of service. It does not depend on the types of inputs and states. */
export type AnyKind = ServiceKind<unknown, object, Need, unknown>;
const service = <S, I extends object, N extends Need, G>(kind: ServiceKind<S, I, N, G>): AnyKind =>
  kind as unknown as AnyKind;

/** The five services and their inputs, as their controllers read them in production. */
const serviceKinds = (cluster: Cluster | undefined): readonly AnyKind[] => [
  service({
    core: mergerCore(sha256),
    stream: 'changes',
    read: ({ changes, trimmedChanges }, after) => changes.slice(Math.max(after, trimmedChanges)).map(publishedInput),
  }),
  service({ core: validatorCore }),
  service({
    core: schedulerCore,
    stream: 'reports',
    read: ({ reports }, after) =>
      reports.slice(after).map(({ sequence, report }) => ({ type: 'report' as const, sequence, report })),
  }),
  service({
    core: drainCore(cluster === undefined ? 'external' : 'kubernetes'),
    companion: cluster && ((copy) => new SimDrainer(copy as never, cluster)),
  }),
  service({
    core: inventoryCore({ silentAfterMs: SILENT_AFTER_MS, kubernetes: cluster !== undefined }),
    stream: 'reports',
    // In production, it starts with the last announcement of each node. Here, it reads all of them, with the same
    // result.
    read: ({ reports }, after, state) => {
      const announced = reports.slice(after).filter(({ subject }) => subject.startsWith('node.announced.'));
      noteAnnounced(
        state,
        announced.map(({ report }) => report),
      );
      return announced.map(({ report }): Input => ({ type: 'announced', report }));
    },
    companion: cluster && ((copy) => new NodeObjects(copy as never, cluster)),
  }),
];

/** The copies of each service, with the changes of a mutant. */
export const copiesOf = (
  world: Surroundings,
  copiesEach: number,
  cluster: Cluster | undefined,
  change: (kind: AnyKind) => AnyKind = (kind) => kind,
): readonly ServiceCopy[] =>
  serviceKinds(cluster)
    .map(change)
    .flatMap((kind) =>
      Array.from({ length: copiesEach }, (_, i) => new ServiceCopy(world, kind, i, world.chance.integer(0, 1_000_000))),
    );
