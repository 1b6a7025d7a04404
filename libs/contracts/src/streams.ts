export const SERVICES = ['merger', 'validator', 'scheduler', 'drain', 'inventory'] as const;
export type ServiceName = (typeof SERVICES)[number];

/** Services that decide nothing: they stand between Sluice and others, and an installation may do without. */
export const EDGE_SERVICES = ['gateway'] as const;

/** The streams and what they hold. */
export const CHANGES = 'CHANGES';
export const REPORTS = 'REPORTS';
export const LEDGER = 'LEDGER';

/** Buckets of large, immutable values, written by the merger before the fact that names them. */
export const CONFIGS = 'configs';
export const TARGETS = 'targets';
/** Who may decide now, per service; only keeps the other copies quiet. */
export const LEADERS = 'leaders';
/** Object store of the services' folds. */
export const SNAPSHOTS = 'snapshots';
