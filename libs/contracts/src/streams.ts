export const SERVICES = ['merger', 'validator', 'scheduler', 'drain', 'inventory'] as const;
export type ServiceName = (typeof SERVICES)[number];

/** Services that decide nothing. They connect Sluice to other systems, and an installation may omit them. */
export const EDGE_SERVICES = ['gateway'] as const;

/** The streams and their subjects. */
export const CHANGES = 'CHANGES';
export const REPORTS = 'REPORTS';
export const LEDGER = 'LEDGER';

/** The header of a change that makes it safe to publish the change again. */
export const ID_HEADER = 'Sluice-Id';

/** Buckets of large, immutable values, written by the merger before the fact that names them. */
export const CONFIGS = 'configs';
export const TARGETS = 'targets';
/** The journals of appliers that work for targets elsewhere, so that another copy can go on with them. */
export const JOURNALS = 'journals';
/** Which hub publishes in this fleet as which source. */
export const HUBS = 'hubs';
/** What appliers have read for the bindings of their nodes. Written by compare-and-set. */
export const BOUND_VALUES_BUCKET = 'bound-values';
/** What targets elsewhere say about themselves. No decision depends on it. */
export const TARGET_STATUS = 'target-status';
/** Which copy may decide now, per service. This only keeps the other copies idle. */
export const LEADERS = 'leaders';
/** Object store of the services' folds. */
export const SNAPSHOTS = 'snapshots';
/** Stream of large and binary content: the object store. */
export const OBJECTS = 'OBJECTS';
