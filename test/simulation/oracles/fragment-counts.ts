import { nodeToken, type Fragment, type FragmentView } from '#libs/contracts';
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
  if (gone) return checkGone(world, fragment, counts.nodes - counts.upToDate);
  const fail = (text: string): never => {
    throw new Violation(`${fragment.kind}/${fragment.name} ${text}: ${JSON.stringify({ ...counts, rolling, inSync })}`);
  };
  const { nodes, upToDate, applying, failed, deferred, waiting } = counts;
  if (upToDate + applying + failed + deferred + waiting !== nodes) fail('has counts that do not add up');
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
  if (upToDate < done.length) fail(`is on ${done.length} nodes that have all of their config`);
  const lacking = selected.find((node) => !isAlive(node) || !hasIt(world, node, fragment));
  if (inSync && lacking !== undefined) fail(`is not on ${lacking}`);
}

function checkGone(world: World, { kind, name: of }: Fragment, left: number): void {
  const holders = [...world.nodes.values()].filter((node) => {
    const isHere = node.alive && world.bus.view('nodes', nodeToken(node.name))?.state !== 'gone';
    // A rollout that has not ended may give it to the node again.
    if ((world.bus.view('status', nodeToken(node.name))?.change ?? '') !== '') return false;
    const entries = world.bus.everConfig({ node: node.name, hash: node.journal.inForce })?.fragments ?? [];
    return isHere && entries.some((entry) => entry.kind === kind && entry.name === of);
  });
  if (left < holders.length)
    throw new Violation(
      `${kind}/${of} is deleted, and is on ${holders.map(({ name }) => name).join()}, not on ${left}`,
    );
}

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
