/** The closed vocabularies of the wire. A decoder refuses any other value. */
export const ACTION_KINDS = ['none', 'daemon-reload', 'reload', 'restart', 'drain', 'reboot'] as const;
export const LEASE_KINDS = ['forward', 'rollback', 'join', 'corrective', 'repair'] as const;
export const LEASE_PHASES = ['draining', 'applying', 'settled', 'uncordoning', 'released'] as const;
export const BECAUSE = [
  'applied',
  'invalid',
  'failed',
  'escalated',
  'unknown',
  'unreachable',
  'left',
  'skipped',
  'stale',
  'cancelled',
] as const;
/** How a stopped drain counts. */
export const DRAIN_OUTCOMES = ['failed', 'deferred'] as const;
export const VERDICTS = ['', 'applied', 'invalid', 'failed', 'unreachable', 'refused'] as const;
export const REPORT_KINDS = [
  'announced',
  'applied',
  'invalid',
  'failed',
  'unreachable',
  'drifted',
  'probed',
  'progress',
] as const;
export const ROLLOUT_STATES = [
  'started',
  'paused',
  'resumed',
  'aborted',
  'failed',
  'reverting',
  'reverted',
  'complete',
  'succeeded',
  'superseded',
  'stalled',
] as const;

export type ActionKind = (typeof ACTION_KINDS)[number];
export type LeaseKind = (typeof LEASE_KINDS)[number];
export type LeasePhase = (typeof LEASE_PHASES)[number];
export type LeaseEndReason = (typeof BECAUSE)[number];
export type DrainOutcome = (typeof DRAIN_OUTCOMES)[number];
export type Verdict = (typeof VERDICTS)[number];
export type ReportKind = (typeof REPORT_KINDS)[number];
export type RolloutState = (typeof ROLLOUT_STATES)[number];
