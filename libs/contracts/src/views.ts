import type { DescMessage } from '@bufbuild/protobuf';
import type * as report from './generated/sluice/v1/report_pb.js';
import * as views from './generated/sluice/v1/views_pb.js';
import type { Action } from './facts.js';
import type { LeaseEndReason, LeaseKind, LeasePhase, ReportKind, Verdict } from './enums.js';
import type { Narrow, Plain } from './plain.js';
import type { ServiceName } from './streams.js';

export type NodeView = Narrow<views.NodeView, { state: 'ready' | 'silent' | 'gone' }>;
export type ChangeView = Narrow<
  views.ChangeView,
  {
    phase: 'accepted' | 'waiting' | 'rendered' | 'validated' | 'rolling' | 'committed' | 'rejected' | 'ended';
  }
>;
export type BoundField = Narrow<views.BoundField, { from: 'cluster' | 'hub' }>;
export type BindingsView = Omit<Plain<views.BindingsView>, 'fields'> & Readonly<{ fields: readonly BoundField[] }>;
/** What was read in a field: a value, or why there is none. */
export type BoundValue = BoundField &
  ({ readonly value: string; readonly missing?: undefined } | { readonly missing: string; readonly value?: undefined });
export type FragmentView = Plain<views.FragmentView>;
export type FragmentCounts = Plain<views.FragmentCounts>;
export type ReviewView = Narrow<views.ReviewView, { verdict: 'validated' | 'blocked' | 'rejected' }>;
export type KnownBadView = Plain<views.KnownBadView>;
export type PoolView = Plain<views.PoolView>;
export type LeaseView = Narrow<
  views.LeaseView,
  { kind: LeaseKind; phase: LeasePhase; because: LeaseEndReason | ''; actions: readonly Action[] }
>;
export type StatusView = Narrow<views.StatusView, { verdict: Verdict }>;
export type RolloutView = Narrow<
  views.RolloutView,
  {
    phase: 'rolling' | 'complete' | 'succeeded' | 'reverting' | 'reverted' | 'superseded';
  }
>;
export type NodeProgress = Plain<views.NodeProgress>;
export type PoolProgress = Plain<views.PoolProgress>;
export type DrainView = Narrow<views.DrainView, { state: 'draining' | 'drained' | 'stopped' | 'uncordoned' }>;

/** A node's report: the body, and the type from its subject. */
export type NodeReport = Narrow<report.NodeReport, { verdict: Verdict }> & Readonly<{ kind: ReportKind }>;
export type NodeAlive = Plain<report.NodeAlive>;
export type NodePace = Plain<report.NodePace>;
export type PathQuery = Plain<report.PathQuery>;
export type FoundPath = Narrow<
  report.FoundPath,
  { state: 'file' | 'directory' | 'symlink' | 'other' | 'unreachable' | 'absent' }
>;
export type PathAnswer = Readonly<{ found: readonly FoundPath[]; busy: boolean }>;
/** How many paths one request may name. */
export const MOST_PATHS_ASKED = 100;
/** The upper limit: no node is asked for a longer interval, however large the fleet is, and no applier accepts one. */
export const MOST_PACE_MS = 600_000;
/** The default for the heartbeats of the whole fleet, so that a larger fleet costs its idle control plane no more. */
export const HEARTBEATS_PER_SECOND = 400;

/** The values of each bucket that is a view of the ledger. */
export interface ViewValues {
  nodes: NodeView;
  changes: ChangeView;
  bindings: BindingsView;
  fragments: FragmentView;
  reviews: ReviewView;
  'known-bad': KnownBadView;
  pools: PoolView;
  leases: LeaseView;
  status: StatusView;
  rollouts: RolloutView;
  drains: DrainView;
}
export type ViewBucket = keyof ViewValues;

const view = (schema: DescMessage, owner: ServiceName) => ({ schema, owner });

/** The message that describes the values of each view, and its one writer. */
export const VIEWS: Readonly<Record<ViewBucket, ReturnType<typeof view>>> = {
  nodes: view(views.NodeViewSchema, 'inventory'),
  changes: view(views.ChangeViewSchema, 'merger'),
  bindings: view(views.BindingsViewSchema, 'merger'),
  fragments: view(views.FragmentViewSchema, 'merger'),
  reviews: view(views.ReviewViewSchema, 'validator'),
  'known-bad': view(views.KnownBadViewSchema, 'validator'),
  pools: view(views.PoolViewSchema, 'scheduler'),
  leases: view(views.LeaseViewSchema, 'scheduler'),
  status: view(views.StatusViewSchema, 'scheduler'),
  rollouts: view(views.RolloutViewSchema, 'scheduler'),
  drains: view(views.DrainViewSchema, 'drain'),
};
export const VIEW_BUCKETS = Object.keys(VIEWS) as readonly ViewBucket[];
