import type * as common from './generated/sluice/v1/common_pb.js';
import type * as config from './generated/sluice/v1/config_pb.js';
import type * as lease from './generated/sluice/v1/lease_pb.js';
import type * as node from './generated/sluice/v1/node_pb.js';
import type * as rollout from './generated/sluice/v1/rollout_pb.js';
import type {
  ActionKind,
  Because,
  DrainOutcome,
  LeaseKind,
  LeasePhase,
  ReportKind,
  RolloutState,
  Verdict,
} from './enums.js';
import type { Plain } from './plain.js';

export type Fragment = Plain<common.Fragment>;
export type FragmentRef = Plain<common.FragmentRef>;
export type Reason = Plain<common.Reason>;
export type Strategy = Plain<common.Strategy>;
export type Action = Omit<Plain<common.Action>, 'kind'> & { readonly kind: ActionKind };

export type TakenReport = Narrow<lease.TakenReport, { verdict: Verdict }>;

/** Replaces fields of a generated shape by narrower ones that the codec checks. */
type Narrow<T, N> = Omit<Plain<T>, keyof N> & Readonly<N>;
type RolloutFacts = { [S in RolloutState as `rollout.${S}`]: Plain<rollout.RolloutFact> };

/** Every kind of fact in the stream LEDGER, and the shape of its body. */
export interface FactBodies extends RolloutFacts {
  'config.accepted': Plain<config.ConfigAccepted>;
  'config.waiting': Plain<config.ConfigWaiting>;
  'config.rendered': Plain<config.ConfigRendered>;
  'config.validated': Plain<config.ConfigValidated>;
  'config.rejected': Plain<config.ConfigRejected>;
  'config.committed': Plain<config.ConfigCommitted>;
  'config.ended': Plain<config.ConfigEnded>;
  'config.judged': Plain<config.ConfigJudged>;
  'config.forgiven': Plain<config.ConfigForgiven>;
  'node.joined': Plain<node.NodeJoined>;
  'node.left': Plain<node.NodeLeft>;
  'node.changed': Plain<node.NodeChanged>;
  'node.silent': Plain<node.NodeSilent>;
  'node.heard': Plain<node.NodeHeard>;
  'node.unavailable': Plain<node.NodeUnavailable>;
  'node.available': Plain<node.NodeAvailable>;
  'node.rendered': Plain<node.NodeRendered>;
  'node.reviewed': Plain<node.NodeReviewed>;
  'node.reported': Narrow<node.NodeReported, { report: ReportKind; verdict: Verdict }>;
  'node.unknown': Plain<node.NodeUnknown>;
  'node.owed': Plain<node.NodeOwed>;
  'node.skipped': Plain<node.NodeSkipped>;
  'node.taken': Plain<node.NodeTaken>;
  'node.given': Plain<node.NodeGiven>;
  'node.cordoned': Plain<node.NodeCordoned>;
  'node.drained': Plain<node.NodeDrained>;
  'node.uncordoned': Plain<node.NodeUncordoned>;
  'node.drain.blocked': Plain<node.NodeDrainBlocked>;
  'node.drain.stopped': Narrow<node.NodeDrainStopped, { outcome: DrainOutcome }>;
  'node.lease.granted': Narrow<lease.LeaseGranted, { kind: LeaseKind; phase: LeasePhase; actions: readonly Action[] }>;
  'node.lease.amended': Plain<lease.LeaseAmended>;
  'node.lease.ready': Plain<lease.LeaseReady>;
  'node.lease.settled': Narrow<
    lease.LeaseSettled,
    { kind: LeaseKind; because: Because; report?: TakenReport | undefined }
  >;
  'node.lease.uncordoning': Plain<lease.LeaseUncordoning>;
  'node.lease.released': Narrow<lease.LeaseReleased, { because: Because }>;
  'ledger.raised': Plain<rollout.LedgerRaised>;
  'ledger.voided': Plain<rollout.LedgerVoided>;
}

export type FactType = keyof FactBodies;
/** A fact as the cores see it: its kind and its body in one readonly object. */
export type FactOf<T extends FactType> = { [K in T]: Readonly<{ type: K }> & FactBodies[K] }[T];
export type Fact = FactOf<FactType>;
/** A fact as a core decides it: version and time are added when it is appended. */
export type NewFactOf<T extends FactType> = { [K in T]: Readonly<{ type: K }> & Omit<FactBodies[K], 'v' | 'at'> }[T];
export type NewFact = NewFactOf<FactType>;

/** The version of facts that this code writes and the highest it understands. */
export const FACT_VERSION = 1;
