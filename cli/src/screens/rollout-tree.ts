import type { ChangeView, NodeProgress, PoolProgress, PoolView, RolloutView } from '#libs/contracts';
import { age } from '../duration.js';
import type { Colours } from '../io.js';
import { reasonLines } from '../reasons.js';
import { standing } from '../standing.js';
import { mark, standingText, toneOfState } from './marks.js';
import { pad, width } from './table.js';

export interface TreeInput {
  readonly id: string;
  readonly change: ChangeView | undefined;
  readonly rollout: RolloutView | undefined;
  readonly pools: ReadonlyMap<string, PoolView>;
  readonly now: Date;
  /** How many nodes of a pool are named. */
  readonly nodesPerPool?: number;
}

/** Worst first. */
const RANKS = [
  'invalid',
  'failed',
  'escalated',
  'unknown',
  'owed',
  'draining',
  'ready',
  'settled',
  'uncordoning',
  'pending',
  'applied',
  'back',
];

/** One change: a header, then a tree of its pools with the nodes that a person wants to see first. */
export function rolloutTree(input: TreeInput, colours: Colours): string {
  const { change, rollout } = input;
  const lines = [header(input, colours)];
  const words = [
    change?.message ? `"${change.message}"` : '',
    change?.author ? `by ${change.author}` : '',
    change?.retryOf ? `retry of ${change.retryOf}` : '',
  ];
  if (words.some((word) => word !== '')) lines.push(colours.dim(words.filter((word) => word !== '').join(' ')));
  lines.push(...reasonLines(change?.reasons ?? [], colours), ...reasonLines(change?.warnings ?? [], colours, '!'));
  if (rollout !== undefined) lines.push(...poolLines(input, rollout, colours));
  return lines.join('\n');
}

function header({ id, change, rollout, now }: TreeInput, colours: Colours): string {
  const at = standing(change, rollout);
  const nodes = rollout === undefined ? planned(change) : counts(rollout, colours);
  const detail = (change?.reasons ?? []).length === 0 ? at.detail : '';
  return [colours.bold(id), standingText(at, colours), nodes, detail, when(change, rollout, now)]
    .filter((part) => part !== '')
    .join('  ');
}

const planned = (change: ChangeView | undefined): string =>
  change === undefined || change.nodes === 0 ? '' : `${change.nodes} nodes`;

/** How long it has been going, or how long it has been over. */
function when(change: ChangeView | undefined, rollout: RolloutView | undefined, now: Date): string {
  const end = rollout?.endedAt || change?.endedAt || '';
  return end === '' ? age(rollout?.startedAt || change?.acceptedAt || '', now) : `${age(end, now)} ago`;
}

/** `31/48 applied  failed 1 (0 allowed)  owed 1`, or `48/48 back` on the way back: zeros are left out. */
export function counts(rollout: RolloutView, colours: Colours): string {
  if (rollout.nodes === 0) return 'touches no node';
  const bad = rollout.failed + rollout.unknown;
  const goesBack = rollout.phase === 'reverting' || rollout.phase === 'reverted';
  const back = Object.values(rollout.pools).reduce((sum, pool) => sum + pool.done, 0);
  return [
    goesBack ? `${back}/${rollout.nodes} back` : `${rollout.applied}/${rollout.nodes} applied`,
    rollout.failed > 0 ? colours.red(`failed ${rollout.failed}`) : '',
    rollout.unknown > 0 ? colours.red(`unknown ${rollout.unknown}`) : '',
    bad > 0 ? `(${rollout.maxFailures} allowed)` : '',
    rollout.owed > 0 ? colours.yellow(`owed ${rollout.owed}`) : '',
  ]
    .filter((part) => part !== '')
    .join('  ');
}

function poolLines(input: TreeInput, rollout: RolloutView, colours: Colours): string[] {
  const names = Object.keys(rollout.pools).sort();
  const nameWidth = Math.max(0, ...names.map(width));
  return names.flatMap((name, index) => {
    const isLast = index === names.length - 1;
    const progress = rollout.pools[name] as PoolProgress;
    const nodes = rollout.worst
      .filter((node) => node.pool === name && node.state !== 'applied' && node.state !== 'back')
      .sort(worstFirst);
    const tone = nodes.some(({ state }) => toneOfState(state) === 'bad')
      ? 'bad'
      : progress.done >= progress.nodes
        ? 'good'
        : rollout.paused && rollout.endedAt === ''
          ? 'held'
          : progress.active > 0
            ? 'busy'
            : 'calm';
    const head = `${isLast ? '└─' : '├─'} ${pad(name, nameWidth)}  ${mark(tone, colours)} ${progress.done}/${progress.nodes}${rollout.endedAt === '' ? budget(input.pools.get(name), progress) : ''}`;
    const rail = isLast ? '   ' : '│  ';
    return [
      head,
      ...nodeLines(nodes, progress, input, colours).map(
        (line, at, all) => `${rail}${at === all.length - 1 ? '└─' : '├─'} ${line}`,
      ),
    ];
  });
}

function budget(pool: PoolView | undefined, progress: PoolProgress): string {
  if (pool === undefined || progress.done >= progress.nodes) return '';
  return `  ${pool.used} of ${pool.budget} unavailable${pool.waiting > 0 ? `, ${pool.waiting} waiting` : ''}`;
}

function nodeLines(
  nodes: readonly NodeProgress[],
  progress: PoolProgress,
  { now, rollout, nodesPerPool = 8 }: TreeInput,
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
      reason.split('\n')[0] ?? '',
    ]
      .join('  ')
      .trimEnd(),
  );
  const unsettled = rollout?.endedAt === '' ? Math.max(progress.nodes - progress.done, nodes.length) : nodes.length;
  const omitted = unsettled - shown.length;
  return shown.length === 0 || omitted <= 0 ? lines : [...lines, colours.dim(`${omitted} more omitted`)];
}

const worstFirst = (a: NodeProgress, b: NodeProgress): number =>
  RANKS.indexOf(a.state) - RANKS.indexOf(b.state) || a.since.localeCompare(b.since) || a.node.localeCompare(b.node);
