import { drainCore } from '../../services/drain/src/core/index.js';
import { inventoryCore, noteAnnounced, type Input as InventoryInput } from '../../services/inventory/src/core/index.js';
import { mergerCore, type Input as MergerInput } from '../../services/merger/src/core/index.js';
import { schedulerCore, type Input as SchedulerInput } from '../../services/scheduler/src/core/index.js';
import { validatorCore } from '../../services/validator/src/core/index.js';
import { sha256 } from './digest.js';
import { gatherForMerger, gatherForScheduler, gatherForValidator } from './gathering.js';
import type { Need } from '#libs/kernel';
import type { ServiceKind } from './service-copy.js';

export const SILENT_AFTER_MS = 105_000;

const none = () => ({ inputs: [], position: 0 });

/** A copy runs any kind of service; what its inputs and states are is its own business. */
export type AnyKind = ServiceKind<unknown, object, Need, unknown>;
const service = <S, I extends object, N extends Need, G>(kind: ServiceKind<S, I, N, G>): AnyKind =>
  kind as unknown as AnyKind;

/** The five services as the simulation runs them; where nodes are Kubernetes' they are drained by it, and known from it. */
export const serviceKinds = (kubernetes: boolean): readonly AnyKind[] => [
  service({
    core: mergerCore(sha256),
    stream: 'changes',
    gather: (world, needs, state) => gatherForMerger(world.bus, needs, state),
    inputs: (world, _state, position) => {
      const inputs = world.bus.changes.slice(position).map(({ sequence, subject, text }): MergerInput => ({
        type: 'published',
        sequence,
        source: subject.slice(15),
        text,
      }));
      return { inputs, position: world.bus.changes.length };
    },
    position: (state) => state.cursor.get(),
  }),
  service({
    core: validatorCore,
    gather: (world, needs, state) => gatherForValidator(world.bus, needs, state),
    inputs: () => none(),
    position: () => 0,
  }),
  service({
    core: schedulerCore,
    stream: 'reports',
    gather: (world, needs) => gatherForScheduler(world.bus, needs),
    inputs: (world, _state, position) => {
      const inputs = world.bus.reports
        .slice(position)
        .map(({ sequence, report }): SchedulerInput => ({ type: 'report', sequence, report }));
      return { inputs, position: world.bus.reports.length };
    },
    position: (state) => state.cursor.get(),
  }),
  service({
    core: drainCore(kubernetes ? 'kubernetes' : 'external'),
    gather: () => new Map(),
    inputs: () => none(),
    position: () => 0,
  }),
  service({
    core: inventoryCore({ silentAfterMs: SILENT_AFTER_MS, kubernetes }),
    stream: 'reports',
    gather: () => new Map(),
    inputs: (world, state, position) => {
      const reports = world.bus.reports
        .slice(position)
        .filter(({ subject }) => subject.startsWith('node.announced.'))
        .map(({ report }) => report);
      noteAnnounced(state, reports);
      const inputs = reports.map((report): InventoryInput => ({ type: 'announced', report }));
      return { inputs, position: world.bus.reports.length };
    },
    // It reads the last announcement of each node; the simulation reads them all, which comes to the same.
    position: () => 0,
  }),
];
