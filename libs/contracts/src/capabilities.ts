/**
 * The capability of a node whose applier runs elsewhere: a cluster, a network function, or another fleet. Its applier
 * survives whatever a change does to it, and sends no heartbeat while it does not answer.
 */
export const REMOTE_APPLIER = 'applier:remote';

/** The capability of a node whose applier reads the objects that bindings of its fragments refer to. */
export const READS_OBJECTS = 'bindings:objects';
