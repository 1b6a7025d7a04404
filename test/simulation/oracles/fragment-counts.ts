import { fragmentId, nodeToken, type Fragment, type FragmentView } from '#libs/contracts';
import { Violation, type Oracle, type World } from '../world/world.js';

/**
 * When nothing is in progress, the counts of a fragment are those of the machines that have its content, and it is in
 * sync only if all of them do. A machine that has a deleted fragment is counted, also if it was relabelled since.
 */
export const fragmentCounts: Oracle = {
  name: 'fragment counts',
  atEnd(world) {
    for (const view of world.bus.views('fragments')) check(world, view);
  },
};

function check(world: World, view: FragmentView): void {
  const { fragment, gone, counts, rolling, inSync } = view;
  if (fragment === undefined || counts === undefined) return;
  if (gone) return checkGone(world, view, fragment);
  const fail = (text: string): never => {
    throw new Violation(`${fragment.kind}/${fragment.name} ${text}: ${JSON.stringify({ ...counts, rolling, inSync })}`);
  };
  const { nodes, upToDate, applying, failed, deferred, waiting, drifted } = counts;
  if (upToDate + applying + failed + deferred + waiting + drifted !== nodes) fail('has counts that do not add up');
  if (rolling !== '') return;
  const selected = world.bus
    .views('nodes')
    .filter(({ state, labels }) => state !== 'gone' && isFor(fragment, labels))
    .map(({ node }) => node);
  if (selected.length !== nodes) fail(`selects ${selected.length} nodes`);
  const isAlive = (node: string): boolean => world.nodes.get(node)?.alive === true;
  // Nobody can know what became of a machine that was switched off.
  const mayHave = selected.filter((node) => !isAlive(node) || hasIt(world, node, fragment));
  if (upToDate > mayHave.length) fail(`is on ${mayHave.length} nodes`);
  const done = selected.filter((node) => {
    const status = world.bus.view('status', nodeToken(node));
    const isDone = status !== undefined && !status.incompatible && status.hash !== '' && status.hash === status.desired;
    return isDone && hasIt(world, node, fragment);
  });
  if (upToDate + drifted < done.length) fail(`is on ${done.length} nodes that have all of their config`);
  // It counts as drifted only if it says so.
  const differing = selected.filter((node) => (world.bus.view('status', nodeToken(node))?.drifted ?? []).length > 0);
  if (drifted > differing.length) fail(`differs on ${differing.length} nodes`);
  const lacking = selected.find((node) => !isAlive(node) || !hasIt(world, node, fragment));
  if (inSync && lacking !== undefined) fail(`is not on ${lacking}`);
}

function checkGone(world: World, { counts, stillOn }: FragmentView, { kind, name: of }: Fragment): void {
  const fail = (text: string): never => {
    throw new Violation(`${kind}/${of} is deleted, and ${text}`);
  };
  const left = (counts?.nodes ?? 0) - (counts?.upToDate ?? 0);
  if (Math.min(left, MOST_NAMED) !== stillOn.length) fail(`names ${stillOn.join()} of ${left}`);
  const has = (node: string): boolean => {
    const hash = world.nodes.get(node)?.journal.inForce ?? '';
    const entries = world.bus.everConfig({ node, hash })?.fragments ?? [];
    // A composite is there as the objects that it has become.
    return entries.some((entry) => (entry.origin ?? fragmentId(entry)) === `${kind}/${of}`);
  };
  const status = (node: string) => world.bus.view('status', nodeToken(node));
  // Also on a machine that is switched off: it may come back. A rollout that has not ended may give it to a node again.
  const holders = [...world.nodes.keys()].filter((node) => {
    const isHere = world.bus.view('nodes', nodeToken(node))?.state !== 'gone';
    return isHere && (status(node)?.change ?? '') === '' && has(node);
  });
  const missed = left <= MOST_NAMED ? holders.filter((node) => !stillOn.includes(node)) : [];
  if (left < holders.length || missed.length > 0) fail(`is on ${holders.join()}, not on ${stillOn.join()} (${left})`);
  // What a node has that is known to have all of its config is known.
  const free = stillOn.find((node) => {
    const { hash, desired, restored, change, unsure = false } = status(node) ?? {};
    const isKnown = hash === world.nodes.get(node)?.journal.inForce && restored === true && !unsure && change === '';
    return isKnown && hash === desired && !has(node);
  });
  if (free !== undefined) fail(`is not on ${free}, which has all of its config`);
}

/** How many nodes a view names. */
const MOST_NAMED = 10;

const isFor = ({ spec }: Fragment, labels: Readonly<Record<string, string>>): boolean => {
  const { matchLabels = {} } = (spec?.['nodeSelector'] ?? {}) as { readonly matchLabels?: Record<string, string> };
  return Object.entries(matchLabels).every(([key, value]) => labels[key] === value);
};

/** Whether the config in force on the machine has the content of the fragment. */
function hasIt(world: World, name: string, { kind, name: of, spec }: Fragment): boolean {
  const node = world.nodes.get(name);
  if (node === undefined) return false;
  const entries = world.bus.everConfig({ node: name, hash: node.journal.inForce })?.fragments ?? [];
  if (kind === 'CNFService')
    return entries.some((entry) => entry.origin === `${kind}/${of}` && entry.spec['dest_port'] === spec?.['port']);
  return entries.some(
    (entry) =>
      entry.kind === kind &&
      entry.name === of &&
      ['path', 'content', 'contentFrom'].every(
        (field) => isTemplate(spec?.[field]) || JSON.stringify(entry.spec[field]) === JSON.stringify(spec?.[field]),
      ),
  );
}

const isTemplate = (value: unknown): boolean => typeof value === 'string' && value.includes('{{');
