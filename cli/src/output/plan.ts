import { isDriftOf, type Action, type DeferredBecause, type PlanAnswer, type PlannedNode } from '#libs/contracts';
import type { Colours } from './io.js';
import { reasonLines } from './reasons.js';
import { failingText } from './marks.js';
import { count, few, table } from './table.js';

/** Actions as text: `reload crio.service`, `drain, reboot`. */
export const actionText = (actions: readonly Action[]): string =>
  actions.map(({ kind, unit }) => (unit === undefined || unit === '' ? kind : `${kind} ${unit}`)).join(', ') || 'none';

/** The strongest action that each column of the pools' table counts. */
const CLASSES = ['none', 'reload', 'restart', 'drain', 'reboot'] as const;
type Class = (typeof CLASSES)[number];
const LINES_SHOWN = 20;
const PLACES_SHOWN = 10;
const UNHEALTHY_SHOWN = 5;
const LEFT_SHOWN = 5;

/** A plan in the style of Terraform: the pools, then the differences with their actions, then the sum. */
export function planScreen(plan: PlanAnswer, colours: Colours): string {
  if (plan.rejected.length > 0) {
    return [
      colours.red('This change would be rejected:'),
      ...reasonLines(plan.rejected, colours),
      ...reasonLines(plan.warnings, colours, '!'),
    ].join('\n');
  }
  const changing = plan.nodes.filter(({ deferred }) => deferred === undefined);
  const parts = [heading({ ...plan, nodes: changing }, colours)];
  if (changing.length > 0)
    parts.push(indent(poolTable(plan.pools, changing)), whatChanges(changing, colours).join('\n'));
  const notes = [
    ...reasonLines(plan.warnings, colours, '!'),
    ...unhealthyLines(plan, colours),
    ...driftLines(changing, colours),
    ...leftLines(plan, colours),
    ...laterLines(plan, colours),
    ...(plan.needs ?? []).map((need) => `  ${colours.yellow('⏸')} would wait for ${need}, which does not exist yet`),
    ...reasonLines(plan.missing ?? [], colours, '!'),
    ...plan.waitsFor.map((change) => `  ${colours.yellow('⏸')} would wait for ${change}`),
  ];
  if (notes.length > 0) parts.push(notes.join('\n'));
  parts.push(colours.bold(sum(plan)));
  return parts.join('\n\n');
}

/** The nodes that would change and are unhealthy now: their failing probes do not protect this change. */
function unhealthyLines({ nodes }: PlanAnswer, colours: Colours): string[] {
  const unhealthy = nodes.filter(({ failingProbes = [] }) => failingProbes.length > 0);
  const lines = unhealthy
    .slice(0, UNHEALTHY_SHOWN)
    .map(
      ({ node, failingProbes = [] }) => `  ${colours.yellow('!')} ${node} is unhealthy: ${failingText(failingProbes)}`,
    );
  const rest = unhealthy.length - lines.length;
  return rest === 0 ? lines : [...lines, colours.dim(`  ${count(rest, 'more unhealthy node')}: use -o json for all`)];
}

function driftLines(changing: readonly PlannedNode[], colours: Colours): string[] {
  const nodes = changing.filter(({ overwritesDrift = false }) => overwritesDrift);
  if (nodes.length === 0) return [];
  return [`  ${colours.yellow('!')} the change overwrites drift on ${named(nodes)}: see sluice get drift`];
}

/**
 * The drift that the nodes refuse to correct: it stays, and where the change touches it, the change may fail. It cannot
 * fail on a node that it does not reach.
 */
function leftLines({ nodes }: PlanAnswer, colours: Colours): string[] {
  const lefts = nodes.flatMap(({ node, changed, deferred, leavesDrift = [] }) =>
    leavesDrift.map((difference) => {
      const isTouched = deferred === undefined && changed.some((place) => isDriftOf(difference, place));
      return { node, difference, isTouched, key: `${isTouched} ${difference}` };
    }),
  );
  const groups = [...Map.groupBy(lefts, ({ key }) => key).values()];
  const lines = groups.slice(0, LEFT_SHOWN).map((some) => {
    const [{ difference, isTouched } = { difference: '', isTouched: false }] = some;
    const where = named(some);
    const [what, on] = [isTouched ? `the change may fail on ${where}` : `drift on ${where} stays`, some.length];
    return `  ${colours.yellow('!')} ${what}: ${difference}: undo it on the ${on === 1 ? 'node' : 'nodes'}`;
  });
  const rest = groups.length - lines.length;
  return rest === 0 ? lines : [...lines, colours.dim(`  ${count(rest, 'more difference')}: use -o json for all`)];
}

/** Why nodes are deferred, as far as no other line of the plan names them. */
const NAMED_HERE: ReadonlySet<DeferredBecause> = new Set(['silent', 'taken', 'incompatible']);

/** The nodes that change after the commit, and those that do not change now. A warning tells about those with drift. */
function laterLines({ nodes }: PlanAnswer, colours: Colours): string[] {
  const later = nodes.filter(({ afterCommit = false }) => afterCommit);
  const away = nodes.filter(({ deferred }) => deferred !== undefined && NAMED_HERE.has(deferred));
  return [
    ...(later.length === 0
      ? []
      : [`  ${colours.yellow('!')} ${named(later)} ${later.length === 1 ? 'changes' : 'change'} after the commit`]),
    ...[...Map.groupBy(away, ({ deferred }) => deferred)].map(
      ([why, some]) =>
        `  ${colours.yellow('⏸')} deferred on ${named(some)}, because ${some.length === 1 ? 'it is' : 'they are'} ${why}`,
    ),
  ];
}

const named = (nodes: readonly Pick<PlannedNode, 'node'>[]): string =>
  `${count(nodes.length, 'node')} (${few(nodes.map(({ node }) => node))})`;

function heading(plan: PlanAnswer, colours: Colours): string {
  const { nodes, pools } = plan;
  if (nodes.length === 0) return 'No nodes would change.';
  const names = Object.keys(pools).length || new Set(nodes.map(({ pool }) => pool)).size;
  return colours.bold(`${count(nodes.length, 'node')} in ${count(names, 'pool')} would change${paceText(plan)}`);
}

/** How many nodes change at once if the change has a limit of its own: the pools may allow fewer. */
function paceText({ nodes, pools, maxUnavailable }: PlanAnswer): string {
  if (maxUnavailable === undefined) return '';
  const budgets = new Map(Object.entries(pools));
  const atOnce = [...Map.groupBy(nodes, ({ pool }) => pool)].reduce(
    (sum, [pool, { length }]) => sum + Math.min(length, budgets.get(pool)?.budget ?? length),
    0,
  );
  return atOnce < maxUnavailable
    ? `, at most ${atOnce} at once over all pools: their budgets allow fewer than the ${maxUnavailable} of the change`
    : `, at most ${maxUnavailable} at once over all pools`;
}

function poolTable(pools: PlanAnswer['pools'], changing: readonly PlannedNode[]): string {
  const names = [...new Set([...Object.keys(pools), ...changing.map(({ pool }) => pool)])].sort();
  const rows = names.map((name) => {
    const nodes = changing.filter(({ pool }) => pool === name);
    const classes = nodes.map(({ actions }) => classOf(actions));
    const { budget, free = budget } = new Map(Object.entries(pools)).get(name) ?? {};
    return [
      name,
      String(nodes.length),
      ...CLASSES.map((one) => String(classes.filter((other) => other === one).length)),
      budget === undefined ? '' : free === budget ? String(budget) : `${budget}, ${free} now`,
    ];
  });
  return table(['POOL', 'NODES', ...CLASSES.map((one) => one.toUpperCase()), 'AT ONCE'], rows);
}

/** The differences and their actions, with the affected nodes: most nodes first. */
function whatChanges(changing: readonly PlannedNode[], colours: Colours): string[] {
  const groups = new Map<
    string,
    { readonly what: readonly string[]; readonly actions: string; readonly nodes: PlannedNode[] }
  >();
  for (const node of changing) {
    const elsewhere = (node.drift ?? []).filter((one) => !node.changed.some((place) => isDriftOf(one, place)));
    const repaired = elsewhere.map((difference) => `${difference.split(': ')[0]} (drift)`);
    const [what, actions] = [[...node.changed, ...repaired], actionText(node.actions)];
    const key = `${what.join(', ')}\n${actions}`;
    const group = groups.get(key) ?? { what, actions, nodes: [] };
    group.nodes.push(node);
    groups.set(key, group);
  }
  const sorted = [...groups.values()].sort(
    (a, b) => b.nodes.length - a.nodes.length || a.what.join().localeCompare(b.what.join()),
  );
  const rows = sorted
    .slice(0, LINES_SHOWN)
    .map(({ what, actions, nodes }) => [
      `${colours.yellow('~')} ${placesText(what)}`,
      actions,
      `${count(nodes.length, 'node')}: ${few(nodes.map(({ node }) => node))}`,
    ]);
  const text = table(['', '', ''], rows)
    .split('\n')
    .slice(1)
    .map((line) => `  ${line}`);
  return sorted.length > LINES_SHOWN
    ? [...text, colours.dim(`  ${sorted.length - LINES_SHOWN} more are not shown: use -o json for all`)]
    : text;
}

/** A change may touch thousands of places, and people read one line. */
function placesText(places: readonly string[]): string {
  const rest = places.length - PLACES_SHOWN;
  return rest > 0 ? `${places.slice(0, PLACES_SHOWN).join(', ')} and ${rest} more` : places.join(', ');
}

function sum({ nodes, unchanged, touched }: PlanAnswer): string {
  const changing = nodes.filter(({ deferred }) => deferred === undefined);
  const disruptive = changing.filter(({ actions }) => ['drain', 'reboot'].includes(classOf(actions))).length;
  const deferred = nodes.length - changing.length;
  const parts = [
    `${changing.length} to change (${disruptive} with a drain or reboot)`,
    ...(deferred === 0 ? [] : [`${deferred} deferred`]),
    `${unchanged} unchanged${touched > 0 ? ` of ${touched} selected` : ''}`,
  ];
  return `Plan: ${parts.join(', ')}.`;
}

function classOf(actions: readonly Action[]): Class {
  const kinds = actions.map(({ kind }) => (kind === 'daemon-reload' ? 'reload' : kind));
  return [...CLASSES].reverse().find((one) => kinds.includes(one)) ?? 'none';
}

const indent = (text: string): string =>
  text
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n');
