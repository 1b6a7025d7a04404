import { byAge, type ChangeView, type PoolView, type RolloutView } from '#libs/contracts';
import type { Colours } from './io.js';
import { changeStatus } from '../change/change-status.js';
import { present } from './fleet-tables.js';
import { failingText, statusText } from './marks.js';
import { age, count, fit, table } from './table.js';

export interface OverviewInput {
  readonly changes: ReadonlyMap<string, ChangeView>;
  readonly rollouts: ReadonlyMap<string, RolloutView>;
  readonly pools: ReadonlyMap<string, PoolView>;
  readonly now: Date;
}

const ENDED_SHOWN = 10;
const NODES_SHOWN = 5;

/** The changes that the overview shows: all open ones, then the latest that ended. */
export function shownChanges({ changes, rollouts }: Pick<OverviewInput, 'changes' | 'rollouts'>): {
  readonly open: ChangeView[];
  readonly ended: ChangeView[];
  readonly omitted: number;
} {
  const all = [...changes.values()].sort((a, b) => byAge(a.change, b.change));
  const isEnded = (change: ChangeView): boolean => changeStatus(change, rollouts.get(change.change)).isEnded;
  const ended = all.filter(isEnded).reverse();
  return {
    open: all.filter((change) => !isEnded(change)),
    ended: ended.slice(0, ENDED_SHOWN),
    omitted: Math.max(0, ended.length - ENDED_SHOWN),
  };
}

/** The fleet in one line, its pools, and its changes, open ones first. */
export function overview(input: OverviewInput, colours: Colours): string {
  const { open, ended, omitted } = shownChanges(input);
  const parts = [fleetLine(input, colours), poolTable(input)];
  const rows = [...open, ...ended].map((change) => row(change, input, colours));
  parts.push(
    rows.length === 0
      ? 'No changes yet: publish one with sluice apply -f FILE'
      : table(['CHANGE', 'STATE', 'NODES', 'AGE', 'AUTHOR', 'MESSAGE', 'WHY'], rows),
  );
  if (omitted > 0) parts.push(colours.dim(`${omitted} older changes not shown: list all with sluice get changes`));
  return parts.filter((part) => part !== '').join('\n\n');
}

/**
 * How many nodes there are, and how many are silent, unhealthy and unavailable, added up over the pools, because each
 * node is in one pool.
 */
export function fleetCounts({ pools }: Pick<OverviewInput, 'pools'>): {
  readonly total: number;
  readonly silent: number;
  readonly silentNodes: readonly string[];
  readonly unhealthy: number;
  readonly unhealthyNodes: PoolView['unhealthyNodes'];
  readonly unavailable: number;
  readonly unavailableTargets: PoolView['unavailableTargets'];
} {
  const all = [...pools.values()];
  const sum = (of: (pool: PoolView) => number): number => all.reduce((total, pool) => total + of(pool), 0);
  return {
    total: sum(({ members }) => members),
    silent: sum(({ silent }) => silent),
    silentNodes: all
      .flatMap(({ silentNodes }) => silentNodes)
      .sort()
      .slice(0, NODES_SHOWN),
    unhealthy: sum(({ unhealthy }) => unhealthy),
    unhealthyNodes: all
      .flatMap(({ unhealthyNodes }) => unhealthyNodes)
      .sort(byName)
      .slice(0, NODES_SHOWN),
    unavailable: sum(({ targetsUnavailable }) => targetsUnavailable),
    unavailableTargets: all
      .flatMap(({ unavailableTargets }) => unavailableTargets)
      .sort(byName)
      .slice(0, NODES_SHOWN),
  };
}

const byName = (a: { readonly node: string }, b: { readonly node: string }): number => (a.node < b.node ? -1 : 1);

function fleetLine(input: OverviewInput, colours: Colours): string {
  const { total, silent, silentNodes, unhealthy, unhealthyNodes, unavailable, unavailableTargets } = fleetCounts(input);
  const more = silent > silentNodes.length ? ', …' : '';
  const parts = [
    count(total, 'node'),
    ...(silent === 0 ? [] : [`${colours.yellow(`${silent} silent`)} (${silentNodes.join(', ')}${more})`]),
    ...(unavailable === 0 ? [] : [colours.yellow(`${unavailable} unavailable`)]),
    ...(unhealthy === 0 ? [] : [colours.yellow(`${unhealthy} unhealthy`)]),
  ];
  const lines = [
    ...unavailableTargets.map(({ node, reason }) => `${node} is unavailable: ${reason}`),
    ...unhealthyNodes.map(({ node, failingProbes }) => `${node} is unhealthy: ${failingText(failingProbes)}`),
  ].map((text) => `  ${colours.yellow('!')} ${text}`);
  const rest = unhealthy - unhealthyNodes.length + (unavailable - unavailableTargets.length);
  const last = rest === 0 ? [] : [colours.dim(`  ${rest} more: list all with sluice get nodes`)];
  return [parts.join(', '), ...lines, ...last].join('\n');
}

/** The pools that the overview shows, by name. */
export const shownPools = ({ pools }: Pick<OverviewInput, 'pools'>): readonly PoolView[] =>
  present('pools', pools.values());

function poolTable(input: OverviewInput): string {
  const here = shownPools(input);
  if (here.length === 0) return '';
  return table(
    ['POOL', 'NODES', 'UNAVAILABLE', 'WAITING'],
    here.map((pool) => [pool.pool, String(pool.members), `${pool.used} of ${pool.budget}`, String(pool.waiting)]),
  );
}

function row(change: ChangeView, { rollouts, now }: OverviewInput, colours: Colours): string[] {
  const rollout = rollouts.get(change.change);
  const at = changeStatus(change, rollout);
  const nodes =
    rollout === undefined
      ? change.nodes > 0
        ? String(change.nodes)
        : ''
      : rollout.nodes === 0
        ? 'none'
        : `${rollout.applied}/${rollout.nodes}`;
  return [
    change.change,
    statusText(at, colours),
    nodes,
    age(change.acceptedAt, now),
    change.author,
    oneLine(change.message, 40),
    oneLine(at.detail, 70),
  ];
}

const oneLine = (text: string, columns: number): string => fit(text.split('\n')[0] ?? '', columns);
