import type { ChangeView, NodeProgress, PoolProgress, PoolView, RolloutView } from '#libs/contracts';
import type { Colours } from './io.js';
import { reasonLines } from './reasons.js';
import { changeStatus, deferredText, type Tone } from '../change/change-status.js';
import { mark, rankOfState, statusText, toneOfState } from './marks.js';
import { age, count, oneLine, pad, width } from './table.js';

export interface TreeInput {
  readonly id: string;
  readonly change: ChangeView | undefined;
  readonly rollout: RolloutView | undefined;
  readonly pools: ReadonlyMap<string, PoolView>;
  readonly now: Date;
  /** Nodes that have their desired config now, whatever became of them in the rollout. */
  readonly upToDate?: ReadonlySet<string>;
  /** How many nodes of a pool are named. */
  readonly nodesPerPool?: number;
}

/** One change: a header, then a tree of its pools, with the nodes that matter most first. */
export function rolloutTree(input: TreeInput, colours: Colours): string {
  const { change, rollout } = input;
  const lines = [header(input, colours)];
  const words = [
    change?.message ? `"${change.message}"` : '',
    change?.author ? `by ${change.author}` : '',
    change?.retryOf ? `retry of ${change.retryOf}` : '',
    change?.rollbackOf === undefined ? '' : `rollback of ${change.rollbackOf}`,
  ];
  if (words.some((word) => word !== ''))
    lines.push(
      colours.dim(
        words
          .filter((word) => word !== '')
          .map(oneLine)
          .join(' '),
      ),
    );
  lines.push(...reasonLines(change?.reasons ?? [], colours), ...reasonLines(change?.warnings ?? [], colours, '!'));
  if (rollout !== undefined) lines.push(...poolLines(input, rollout, colours));
  return lines.join('\n');
}

function header({ id, change, rollout, now }: TreeInput, colours: Colours): string {
  const at = changeStatus(change, rollout);
  const nodes = rollout === undefined ? planned(change) : counts(rollout, colours);
  const detail = isInLines(at.detail, change, rollout) || isInCounts(at.detail, rollout) ? '' : at.detail;
  return [colours.bold(id), statusText(at, colours), nodes, detail, when(change, rollout, now)]
    .filter((part) => part !== '')
    .map(oneLine)
    .join('  ');
}

/** Whether the lines about reasons and nodes already contain this detail. */
export const isInLines = (detail: string, change: ChangeView | undefined, rollout: RolloutView | undefined): boolean =>
  (change?.reasons ?? []).length > 0 ||
  (rollout?.worst ?? []).some(({ node, state, reason }) => detail === `${node} is ${state}: ${reason}`);

/** Whether the counts already contain this detail. */
export const isInCounts = (detail: string, rollout: RolloutView | undefined): boolean =>
  rollout !== undefined && detail === deferredText(rollout);

const planned = (change: ChangeView | undefined): string =>
  change === undefined || change.nodes === 0 ? '' : count(change.nodes, 'node');

/** How long it has been running, or how long ago it ended. */
function when(change: ChangeView | undefined, rollout: RolloutView | undefined, now: Date): string {
  const end = rollout?.endedAt || change?.endedAt || '';
  return end === '' ? age(rollout?.startedAt || change?.acceptedAt || '', now) : `${age(end, now)} ago`;
}

/**
 * `31/48 applied  failed 1 (0 allowed)  deferred 1`; in a rollback `3/4 rolled back  1 degraded  44 untouched`: the
 * rollback failed on one node, and 44 were not changed. Zeros are left out.
 */
export function counts(rollout: RolloutView, colours: Colours): string {
  if (rollout.nodes === 0) return 'no nodes affected';
  const bad = rollout.failed + rollout.unknown;
  const pools = Object.values(rollout.pools);
  const sum = (of: (pool: PoolProgress) => number): number => pools.reduce((total, pool) => total + of(pool), 0);
  const untouched = sum((pool) => pool.untouched);
  const reached = nodesReached(rollout);
  return [
    isRollback(rollout)
      ? reached > 0
        ? `${sum(changed)}/${reached} rolled back`
        : ''
      : `${rollout.applied}/${rollout.nodes} applied`,
    ...notRolledBack({ untouched, degraded: sum(({ degraded }) => degraded) }, colours),
    rollout.failed > 0 ? colours.red(`failed ${rollout.failed}`) : '',
    rollout.unknown > 0 ? colours.red(`unknown ${rollout.unknown}`) : '',
    bad > 0 ? `(${rollout.maxFailures} allowed)` : '',
    rollout.deferred > 0 ? colours.yellow(`deferred ${rollout.deferred}`) : '',
    rollout.maxUnavailable > 0 && rollout.phase === 'rolling'
      ? `at most ${rollout.maxUnavailable} at once by its own limit`
      : '',
  ]
    .filter((part) => part !== '')
    .join('  ');
}

/** How many nodes a rollback has to put back: all but those that it knows the change has not changed. */
export const nodesReached = ({ nodes, pools }: RolloutView): number =>
  nodes - Object.values(pools).reduce((total, { untouched }) => total + untouched, 0);

/** How many nodes of a pool have the new config or, in a rollback, were put back. */
const changed = ({ done, untouched, degraded }: PoolProgress): number => done - untouched - degraded;

const notRolledBack = ({ untouched, degraded }: Pick<PoolProgress, 'untouched' | 'degraded'>, colours: Colours) => [
  degraded > 0 ? colours.red(`${degraded} degraded`) : '',
  untouched > 0 ? `${untouched} untouched` : '',
];

const isRollback = ({ phase }: RolloutView): boolean => phase === 'reverting' || phase === 'reverted';

function poolLines(input: TreeInput, rollout: RolloutView, colours: Colours): string[] {
  const names = Object.keys(rollout.pools).sort();
  const nameWidth = Math.max(0, ...names.map(width));
  return names.flatMap((name, index) => {
    const isLast = index === names.length - 1;
    const progress = rollout.pools[name] as PoolProgress;
    const nodes = rollout.worst
      .filter((node) => node.pool === name && toneOfState(node.state) !== 'good')
      .sort(worstFirst);
    const of = progress.nodes - progress.untouched;
    const units = rollout.endedAt === '' ? budget(input.pools.get(name), progress) : '';
    const parts = [of > 0 ? `${changed(progress)}/${of}` : '', ...notRolledBack(progress, colours)];
    const counted = parts.filter((part) => part !== '').join('  ');
    const head = `${isLast ? '└─' : '├─'} ${pad(name, nameWidth)}  ${mark(toneOfPool(progress, nodes, rollout), colours)} ${counted}${units}`;
    const rail = isLast ? '   ' : '│  ';
    return [
      head,
      ...nodeLines(nodes, progress, input, colours).map(
        (line, at, all) => `${rail}${at === all.length - 1 ? '└─' : '├─'} ${line}`,
      ),
    ];
  });
}

function toneOfPool(progress: PoolProgress, nodes: readonly NodeProgress[], rollout: RolloutView): Tone {
  if (progress.degraded > 0 || nodes.some(({ state }) => toneOfState(state) === 'bad')) return 'bad';
  if (progress.untouched === progress.nodes) return 'calm';
  if (progress.done >= progress.nodes) return 'good';
  if (rollout.paused && rollout.endedAt === '') return 'held';
  return progress.active > 0 ? 'busy' : 'calm';
}

function budget(pool: PoolView | undefined, progress: PoolProgress): string {
  if (pool === undefined || progress.done >= progress.nodes) return '';
  return `  ${pool.used} of ${pool.budget} unavailable${pool.waiting > 0 ? `, ${pool.waiting} waiting` : ''}`;
}

function nodeLines(
  nodes: readonly NodeProgress[],
  progress: PoolProgress,
  { now, rollout, upToDate, nodesPerPool = 8 }: TreeInput,
  colours: Colours,
): string[] {
  const shown = nodes.slice(0, nodesPerPool);
  const nameWidth = Math.max(0, ...shown.map(({ node }) => width(node)));
  const stateWidth = Math.max(0, ...shown.map(({ state }) => width(state)));
  const ageWidth = Math.max(0, ...shown.map(({ since }) => width(age(since, now))));
  const lines = shown.map(({ node, state, reason, since }) =>
    [
      pad(node, nameWidth),
      `${mark(toneOfState(state), colours)} ${pad(state, stateWidth)}`,
      pad(age(since, now), ageWidth),
      [upToDate?.has(node) === true ? 'up to date now' : '', reason.split('\n')[0]].filter(Boolean).join('; '),
    ]
      .join('  ')
      .trimEnd(),
  );
  const unsettled = rollout?.endedAt === '' ? Math.max(progress.nodes - progress.done, nodes.length) : nodes.length;
  const omitted = unsettled - shown.length;
  return shown.length === 0 || omitted <= 0 ? lines : [...lines, colours.dim(`${omitted} more`)];
}

const worstFirst = (a: NodeProgress, b: NodeProgress): number =>
  rankOfState(a.state) - rankOfState(b.state) || a.since.localeCompare(b.since) || a.node.localeCompare(b.node);
