import {
  byAge,
  REMOTE_APPLIER,
  type ChangeView,
  type KnownBadView,
  type NodeView,
  type StatusView,
  type ViewValues,
} from '#libs/contracts';
import { durationText } from '#libs/manifests/lean';
import type { Colours } from './io.js';
import { actionText } from './plan.js';
import type { ChangeStatus } from '../change/change-status.js';
import { failingText, statusText } from './marks.js';
import { age, table, few } from './table.js';

/** What `sluice get` can list, by the names that people type. */
export const RESOURCES = ['nodes', 'pools', 'fragments', 'changes', 'known-bad', 'leases'] as const;
export type Resource = (typeof RESOURCES)[number];

/** A node, with the scheduler's view of it if there is one. */
export type NodeRow = NodeView &
  Partial<
    Pick<StatusView, 'taken' | 'restored' | 'deferred' | 'skipped' | 'incompatible' | 'drifted' | 'failingProbes'>
  > & {
    /** It did not answer by the deadline of its lease, so that nobody knows which config it has. */
    readonly unknown?: boolean;
  };
/** A change, with the view of its rollout. */
export type ChangeRow = ChangeView & { readonly status: ChangeStatus };
/** An item of a list: a value of a bucket, and the value of another bucket about the same node or change. */
export type ResourceView<G extends Resource> = G extends 'nodes'
  ? NodeRow
  : G extends 'changes'
    ? ChangeRow
    : ViewValues[G];

interface Listing<G extends Resource> {
  readonly heads: readonly string[];
  readonly row: (value: ResourceView<G>, now: Date, colours: Colours) => readonly string[];
  readonly order: (a: ResourceView<G>, b: ResourceView<G>) => number;
  /** Keys are marked as gone, not deleted. */
  readonly isGone: (value: ResourceView<G>) => boolean;
}

const short = (hash: string): string => hash.slice(0, 12);
export const labelText = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(',');

const LISTINGS: { readonly [G in Resource]: Listing<G> } = {
  nodes: {
    heads: ['NODE', 'STATE', 'DRIFT', 'SINCE', 'VERSION', 'LABELS'],
    row: (node, now, colours) => [
      node.node,
      nodeState(node) === 'ready' ? 'ready' : colours.yellow(nodeState(node)),
      driftCount(node, colours),
      age(node.since, now),
      node.version,
      labelText(node.labels),
    ],
    order: (a, b) => a.node.localeCompare(b.node, 'en', { numeric: true }),
    isGone: (node) => node.state === 'gone',
  },
  pools: {
    heads: ['POOL', 'NODES', 'MAX UNAVAILABLE', 'UNAVAILABLE', 'WAITING', 'DRIFT'],
    row: (pool) => [
      pool.pool,
      String(pool.members),
      pool.maxUnavailable,
      `${pool.used} of ${pool.budget}`,
      String(pool.waiting),
      pool.drift,
    ],
    order: (a, b) => a.pool.localeCompare(b.pool),
    isGone: (pool) => pool.gone,
  },
  fragments: {
    heads: ['KIND', 'NAME', 'CHANGE', 'SOURCE', 'UP TO DATE', 'APPLYING', 'FAILED', 'DEFERRED', 'DRIFTED', 'LABELS'],
    row: ({ fragment, change, source, counts, rolling, removing, stillOn }, _now, colours) => [
      fragment?.kind ?? '',
      fragment?.name ?? '',
      removing ? `${change} (${removalText(stillOn)})` : (rolling ?? '') === '' ? change : `${change} → ${rolling}`,
      source,
      counts === undefined ? '' : `${counts.upToDate}/${counts.nodes}`,
      countText(counts?.applying),
      colours.red(countText(counts?.failed)),
      colours.yellow(countText(counts?.deferred)),
      colours.yellow(countText(counts?.drifted)),
      labelText(fragment?.labels ?? {}),
    ],
    order: (a, b) =>
      (a.fragment?.kind ?? '').localeCompare(b.fragment?.kind ?? '') ||
      (a.fragment?.name ?? '').localeCompare(b.fragment?.name ?? ''),
    isGone: ({ gone, removing }) => gone && !removing,
  },
  changes: {
    heads: ['CHANGE', 'STATE', 'NODES', 'AGE', 'SOURCE', 'AUTHOR', 'MESSAGE'],
    row: (change, now, colours) => [
      change.change,
      statusText(change.status, colours),
      String(change.nodes),
      age(change.acceptedAt, now),
      change.source,
      change.author,
      change.message.split('\n')[0] ?? '',
    ],
    order: (a, b) => byAge(a.change, b.change),
    isGone: () => false,
  },
  'known-bad': {
    heads: ['HASH', 'RECIPE', 'CHANGE', 'NODE', 'SINCE', 'REASON'],
    row: (bad, now) => [
      bad.hash,
      short(bad.recipe),
      bad.change,
      bad.fleet === undefined ? bad.node : `${bad.node} (${bad.fleet})`,
      age(bad.since, now),
      bad.reason.split('\n')[0] ?? '',
    ],
    order: (a, b) => a.since.localeCompare(b.since),
    isGone: (bad) => bad.gone,
  },
  leases: {
    heads: ['NODE', 'POOL', 'PHASE', 'KIND', 'CHANGE', 'ACTIONS', 'HASH', 'AGE', 'OUTCOME'],
    row: (lease, now) => [
      lease.node,
      lease.pool,
      lease.phase,
      lease.kind,
      lease.change,
      actionText(lease.actions),
      short(lease.hash),
      age(lease.grantedAt, now),
      lease.because,
    ],
    order: (a, b) =>
      Number(a.phase === 'released') - Number(b.phase === 'released') ||
      a.node.localeCompare(b.node, 'en', { numeric: true }),
    isGone: () => false,
  },
};

/** The items that still exist, sorted for people. */
export function present<G extends Resource>(what: G, values: Iterable<ResourceView<G>>): ResourceView<G>[] {
  const listing: Listing<G> = LISTINGS[what];
  const there = [...values].filter((value) => !listing.isGone(value)).sort(listing.order);
  // A known-bad config has two keys in its bucket, its hash and its recipe, but it is one item.
  return what === 'known-bad'
    ? ([...new Map((there as KnownBadView[]).map((bad) => [bad.hash, bad])).values()] as ResourceView<G>[])
    : there;
}

/** A table as kubectl prints it. */
export function fleetTable<G extends Resource>(
  what: G,
  values: readonly ResourceView<G>[],
  now: Date,
  colours: Colours,
): string {
  const listing: Listing<G> = LISTINGS[what];
  return table(
    listing.heads,
    values.map((value) => listing.row(value, now, colours)),
  );
}

/** What is being removed, and which nodes still have it. */
const removalText = (nodes: readonly string[] = []): string =>
  `being removed${nodes.length === 0 ? '' : ` from ${few(nodes)}`}`;

/** Nothing for no node, so that what needs attention is easy to see. */
const countText = (count = 0): string => (count === 0 ? '' : String(count));

/** How many differences the node has from its config; empty if the scheduler does not know the node. */
const driftCount = ({ drifted }: NodeRow, colours: Colours): string =>
  drifted === undefined ? '' : drifted.length === 0 ? '0' : colours.yellow(String(drifted.length));

/** The words of Kubernetes about its Node, or what the applier of a target says. */
const unavailability = ({ unavailable, capabilities }: Pick<NodeRow, 'unavailable' | 'capabilities'>): string[] => {
  if (unavailable === '') return [];
  return [capabilities.includes(REMOTE_APPLIER) ? `unavailable: ${unavailable}` : unavailable.replaceAll(', ', ',')];
};

/** As kubectl shows it, such as `Ready,SchedulingDisabled`: the state, then everything that is wrong with the node. */
const nodeState = ({ state, taken, ...status }: NodeRow): string =>
  [
    state,
    ...unavailability(status),
    ...(taken === undefined
      ? []
      : [`taken by ${taken.owner}${taken.forMs === 0 ? '' : ` for ${durationText(taken.forMs)}`}`]),
    ...(status.restored === false ? ['degraded'] : []),
    ...(status.incompatible === true ? ['incompatible'] : []),
    ...((status.failingProbes ?? []).length > 0 ? [`unhealthy (${failingText(status.failingProbes ?? [])})`] : []),
    ...(status.unknown === true ? ['unknown'] : (status.deferred ?? '') === '' ? [] : ['deferred']),
    // What the scheduler skips is silent, and shown as such.
    ...(['', 'scheduler', undefined].includes(status.skipped) ? [] : [`skipped by ${status.skipped}`]),
  ].join(',');
