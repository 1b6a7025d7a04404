import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import type * as common from './generated/sluice/v1/common_pb.js';
import * as config from './generated/sluice/v1/config_pb.js';
import * as lease from './generated/sluice/v1/lease_pb.js';
import * as node from './generated/sluice/v1/node_pb.js';
import * as rollout from './generated/sluice/v1/rollout_pb.js';
import {
  ROLLOUT_STATES,
  type ActionKind,
  type LeaseEndReason,
  type DrainOutcome,
  type LeaseKind,
  type LeasePhase,
  type ReportKind,
  type RolloutState,
  type Verdict,
} from './enums.js';
import type { Narrow, Plain } from './plain.js';
import type { ServiceName } from './streams.js';

export type Fragment = Plain<common.Fragment>;
export type FragmentRef = Plain<common.FragmentRef>;
export type Reason = Plain<common.Reason>;
export type Strategy = Plain<common.Strategy>;
export type Drift = Plain<common.Drift>;
export type FailingProbe = Plain<common.FailingProbe>;
export type Action = Narrow<common.Action, { kind: ActionKind }>;
export type TakenReport = Narrow<lease.TakenReport, { verdict: Verdict }>;

const fact = <D extends DescMessage>(schema: D, ...owners: readonly ServiceName[]) => ({ schema, owners });

const rolloutFacts = () =>
  Object.fromEntries(
    ROLLOUT_STATES.map((state) => [`rollout.${state}`, fact(rollout.RolloutFactSchema, 'scheduler')]),
  ) as Record<`rollout.${RolloutState}`, { schema: typeof rollout.RolloutFactSchema; owners: readonly ServiceName[] }>;

/** Every kind of fact in the stream LEDGER: the message that describes its body, and who may append it. */
export const FACTS = {
  'config.accepted': fact(config.ConfigAcceptedSchema, 'merger'),
  'config.deduplicated': fact(config.ConfigDeduplicatedSchema, 'merger'),
  'config.waiting': fact(config.ConfigWaitingSchema, 'merger'),
  'config.rendered': fact(config.ConfigRenderedSchema, 'merger'),
  'config.validated': fact(config.ConfigValidatedSchema, 'validator'),
  // schema by the merger, review by the validator; `stage` in the fact says which
  'config.blocked': fact(config.ConfigBlockedSchema, 'validator'),
  'config.rejected': fact(config.ConfigRejectedSchema, 'merger', 'validator'),
  'config.committed': fact(config.ConfigCommittedSchema, 'merger'),
  'config.ended': fact(config.ConfigEndedSchema, 'merger'),
  'config.judged': fact(config.ConfigJudgedSchema, 'validator'),
  'config.cleared': fact(config.ConfigClearedSchema, 'validator'),
  'node.joined': fact(node.NodeJoinedSchema, 'inventory'),
  'node.left': fact(node.NodeLeftSchema, 'inventory'),
  'node.changed': fact(node.NodeChangedSchema, 'inventory'),
  'node.silent': fact(node.NodeSilentSchema, 'inventory'),
  'node.heard': fact(node.NodeHeardSchema, 'inventory'),
  'node.unavailable': fact(node.NodeUnavailableSchema, 'inventory'),
  'node.available': fact(node.NodeAvailableSchema, 'inventory'),
  'node.rendered': fact(node.NodeRenderedSchema, 'merger'),
  'node.reviewed': fact(node.NodeReviewedSchema, 'validator'),
  'node.reported': fact(node.NodeReportedSchema, 'scheduler'),
  'node.unhealthy': fact(node.NodeUnhealthySchema, 'scheduler'),
  'node.healthy': fact(node.NodeHealthySchema, 'scheduler'),
  'node.unknown': fact(node.NodeUnknownSchema, 'scheduler'),
  'node.deferred': fact(node.NodeDeferredSchema, 'scheduler'),
  'node.skipped': fact(node.NodeSkippedSchema, 'scheduler'),
  'node.taken': fact(node.NodeTakenSchema, 'scheduler'),
  'node.returned': fact(node.NodeReturnedSchema, 'scheduler'),
  'node.cordoned': fact(node.NodeCordonedSchema, 'drain'),
  'node.drained': fact(node.NodeDrainedSchema, 'drain'),
  'node.uncordoned': fact(node.NodeUncordonedSchema, 'drain'),
  'node.drain.blocked': fact(node.NodeDrainBlockedSchema, 'drain'),
  'node.drain.stopped': fact(node.NodeDrainStoppedSchema, 'drain'),
  'node.lease.granted': fact(lease.LeaseGrantedSchema, 'scheduler'),
  'node.lease.amended': fact(lease.LeaseAmendedSchema, 'scheduler'),
  'node.lease.applying': fact(lease.LeaseApplyingSchema, 'scheduler'),
  'node.lease.settled': fact(lease.LeaseSettledSchema, 'scheduler'),
  'node.lease.uncordoning': fact(lease.LeaseUncordoningSchema, 'scheduler'),
  'node.lease.released': fact(lease.LeaseReleasedSchema, 'scheduler'),
  ...rolloutFacts(),
  // by a person, with the nats CLI or `sluice doctor`'s advice
  'ledger.upgraded': fact(rollout.LedgerUpgradedSchema),
  'ledger.voided': fact(rollout.LedgerVoidedSchema),
} as const satisfies Readonly<Record<string, ReturnType<typeof fact>>>;

export type FactType = keyof typeof FACTS;
export const FACT_TYPES = Object.keys(FACTS) as readonly FactType[];

/** Fields with a closed vocabulary, which the codec checks. */
interface Narrower {
  'node.reported': { report: ReportKind; verdict: Verdict };
  'node.drain.stopped': { outcome: DrainOutcome };
  'node.lease.granted': { kind: LeaseKind; phase: LeasePhase; actions: readonly Action[] };
  'node.lease.settled': { kind: LeaseKind; because: LeaseEndReason; report?: TakenReport | undefined };
  'node.lease.released': { because: LeaseEndReason };
}
type Message<T extends FactType> = MessageShape<(typeof FACTS)[T]['schema']>;
type FactBodies = {
  [T in FactType]: T extends keyof Narrower ? Narrow<Message<T>, Narrower[T]> : Plain<Message<T>>;
};

/** A fact as the cores see it: its kind and its body in one readonly object. */
export type FactOf<T extends FactType> = { [K in T]: Readonly<{ type: K }> & FactBodies[K] }[T];
export type Fact = FactOf<FactType>;
/** A fact as a core decides it: version and time are added when it is appended. */
export type NewFactOf<T extends FactType> = { [K in T]: Readonly<{ type: K }> & Omit<FactBodies[K], 'v' | 'at'> }[T];
export type NewFact = NewFactOf<FactType>;

/** A reason to refuse something. Without a fragment or a field, it is about the whole. */
export const reasonFor = (
  { fragment = '', field = '', nodes = [] }: Partial<Reason>,
  code: string,
  message: string,
): Reason => ({ fragment, field, code, message, nodes });

/** The version of facts that this code writes and the highest it understands. */
export const FACT_VERSION = 1;

/** Whether this fact releases the lease, so that its unit is free. */
export const isLeaseEnd = (fact: Fact): fact is FactOf<'node.lease.settled'> | FactOf<'node.lease.released'> =>
  fact.type === 'node.lease.released' || (fact.type === 'node.lease.settled' && fact.released);
