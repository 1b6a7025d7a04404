import type { FactType } from './facts.js';
import type { ViewBucket } from './views.js';

export type ServiceName = 'merger' | 'validator' | 'scheduler' | 'drain' | 'inventory';
export const SERVICES: readonly ServiceName[] = ['merger', 'validator', 'scheduler', 'drain', 'inventory'];

/** Services that decide nothing: they stand between Sluice and others, and an installation may do without. */
export const EDGE_SERVICES = ['gateway'] as const;

/** The streams and what they hold. */
export const CHANGES = 'CHANGES';
export const REPORTS = 'REPORTS';
export const LEDGER = 'LEDGER';

/** Who may append which kind of fact. The tests read the services' code against this table. */
export const OWNERS: Readonly<Record<FactType, readonly ServiceName[]>> = {
  'config.accepted': ['merger'],
  'config.waiting': ['merger'],
  'config.rendered': ['merger'],
  'config.validated': ['validator'],
  'config.rejected': ['merger', 'validator'], // form by the merger, review by the validator; the fact's `stage` says which
  'config.committed': ['merger'],
  'config.ended': ['merger'],
  'config.judged': ['validator'],
  'config.forgiven': ['validator'],
  'node.joined': ['inventory'],
  'node.left': ['inventory'],
  'node.changed': ['inventory'],
  'node.silent': ['inventory'],
  'node.heard': ['inventory'],
  'node.unavailable': ['inventory'],
  'node.available': ['inventory'],
  'node.rendered': ['merger'],
  'node.reviewed': ['validator'],
  'node.reported': ['scheduler'],
  'node.unknown': ['scheduler'],
  'node.owed': ['scheduler'],
  'node.skipped': ['scheduler'],
  'node.taken': ['scheduler'],
  'node.given': ['scheduler'],
  'node.cordoned': ['drain'],
  'node.drained': ['drain'],
  'node.uncordoned': ['drain'],
  'node.drain.blocked': ['drain'],
  'node.drain.stopped': ['drain'],
  'node.lease.granted': ['scheduler'],
  'node.lease.amended': ['scheduler'],
  'node.lease.ready': ['scheduler'],
  'node.lease.settled': ['scheduler'],
  'node.lease.uncordoning': ['scheduler'],
  'node.lease.released': ['scheduler'],
  'rollout.started': ['scheduler'],
  'rollout.paused': ['scheduler'],
  'rollout.resumed': ['scheduler'],
  'rollout.aborted': ['scheduler'],
  'rollout.failed': ['scheduler'],
  'rollout.reverting': ['scheduler'],
  'rollout.reverted': ['scheduler'],
  'rollout.complete': ['scheduler'],
  'rollout.succeeded': ['scheduler'],
  'rollout.superseded': ['scheduler'],
  'rollout.stalled': ['scheduler'],
  'ledger.raised': [], // a person, with the nats CLI or `sluice doctor`'s advice
  'ledger.voided': [],
};

/** Each view has one writer. */
export const VIEW_OWNERS: Readonly<Record<ViewBucket, ServiceName>> = {
  nodes: 'inventory',
  changes: 'merger',
  fragments: 'merger',
  reviews: 'validator',
  'known-bad': 'validator',
  pools: 'scheduler',
  leases: 'scheduler',
  status: 'scheduler',
  rollouts: 'scheduler',
  drains: 'drain',
};
export const VIEW_BUCKETS = Object.keys(VIEW_OWNERS) as readonly ViewBucket[];

/** Buckets of large, immutable values, written by the merger before the fact that names them. */
export const CONFIGS = 'configs';
export const TARGETS = 'targets';
/** Who may decide now, per service; only keeps the other copies quiet. */
export const LEADERS = 'leaders';
/** Object store of the services' folds. */
export const SNAPSHOTS = 'snapshots';

export const FACT_TYPES = Object.keys(OWNERS) as readonly FactType[];
