import type { FleetClient } from '#libs/client';
import {
  fragmentId,
  MOST_PATHS_ASKED,
  reasonFor,
  withoutPath,
  type ConfigEntry,
  type FoundPath,
  type Fragment,
  type NodeView,
  type PathQuery,
  type Reason,
} from '#libs/contracts';
import { ownsPath } from '#libs/manifests';
import { canonicalJson, compileFragments, mergeReasons, renderNode } from '#libs/rules';
import type { Session } from '../connection/session.js';

/** At most so many nodes are asked, and so many of those that get the same fragments. */
export const MOST_ASKED = 50;
const MOST_ALIKE = 10;
const ANSWER_MS = 2_000;

interface NodePaths {
  readonly node: string;
  readonly entries: readonly ConfigEntry[];
}

/**
 * Asks some of the nodes that get these fragments what exists at their paths, where Sluice does not manage it yet. Only
 * a node knows its disk. `found`: what the change would replace, or what keeps it from being applied. `unknown`: the
 * nodes that did not answer.
 */
export async function lookFirst(
  session: Session,
  fragments: readonly Fragment[],
): Promise<{ readonly found: readonly Reason[]; readonly unknown: readonly Reason[] }> {
  const own = fragments.filter(({ kind }) => ownsPath(kind));
  if (own.length === 0) return { found: [], unknown: [] };
  const fleet = await session.fleet();
  const files = await withoutCommitted(fleet, own);
  if (files.length === 0) return { found: [], unknown: [] };
  const { nodes, of } = await chooseNodes(fleet, files);
  const more = nodes.length < of ? `; ${nodes.length} of ${of} nodes were asked` : '';
  const found: Reason[] = [];
  const silent: string[] = [];
  await Promise.all(
    nodes.map(async ({ node, entries }) => {
      const answer = await askNode(fleet, node, entries);
      if (answer === undefined) return void silent.push(node);
      for (const one of answer) {
        const entry = entries.find((each) => pathOf(each) === one.path);
        const reason = entry && reasonOf(entry, one, more);
        if (reason !== undefined) found.push({ ...reason, nodes: [node] });
      }
    }),
  );
  return { found: mergeReasons(sorted(found)), unknown: mergeReasons(silent.sort().map(noAnswer)) };
}

/**
 * People publish whole manifests. The nodes have what is committed, and a change of the rest does not touch it. The
 * plan says what happens where that has drifted.
 */
async function withoutCommitted(fleet: FleetClient, fragments: readonly Fragment[]): Promise<readonly Fragment[]> {
  const views = [...(await fleet.list('fragments')).values()];
  const kept = views.flatMap(({ fragment, gone }) => (gone || fragment === undefined ? [] : [fragment]));
  const committed = new Map(kept.map((fragment) => [fragmentId(fragment), canonicalJson(fragment.spec)]));
  return fragments.filter((fragment) => committed.get(fragmentId(fragment)) !== canonicalJson(fragment.spec));
}

/** Undefined if the node does not answer, or works on a lease. */
export async function askNode(
  fleet: FleetClient,
  node: string,
  entries: readonly ConfigEntry[],
): Promise<readonly FoundPath[] | undefined> {
  const found: FoundPath[] = [];
  for (let i = 0; i < entries.length; i += MOST_PATHS_ASKED) {
    const part = entries.slice(i, i + MOST_PATHS_ASKED);
    const query = { paths: part.map(pathOf), entries: part.map(withoutContent) };
    const answer = await fleet.look(node, query, ANSWER_MS);
    if (answer === undefined || answer.busy) return undefined;
    found.push(...answer.found);
  }
  return found;
}

/** A large file would not fit into the request. */
function withoutContent({ kind, name, spec }: ConfigEntry): PathQuery['entries'][number] {
  const { content: _, contentFrom: __, encoding: ___, ...rest } = spec;
  return { kind, name, labels: {}, spec: rest as Fragment['spec'] };
}

export const pathOf = ({ spec }: ConfigEntry): string => String(spec['path']);

async function chooseNodes(
  fleet: FleetClient,
  fragments: readonly Fragment[],
): Promise<{ readonly nodes: readonly NodePaths[]; readonly of: number }> {
  const index = compileFragments(fragments);
  const [nodes, statuses] = await Promise.all([fleet.list('nodes'), fleet.list('status')]);
  const ready = [...nodes.values()].filter(({ state }) => state === 'ready');
  const hasDrift = ({ node }: NodeView): boolean => (statuses.get(node)?.drifted ?? []).length > 0;
  // The index gives the same array to all nodes that get the same fragments.
  const alike = Map.groupBy(ready, ({ labels }) => index.forNode(labels));
  const paths: NodePaths[] = [];
  let of = 0;
  for (const [set, some] of alike) {
    if (set.length === 0) continue;
    of += some.length;
    const most = Math.min(MOST_ALIKE, MOST_ASKED - paths.length);
    for (const { node, labels } of withDriftFirst(some, hasDrift, most))
      paths.push({ node, entries: renderNode(set, { name: node, labels }, () => '').config.fragments });
  }
  return { nodes: paths, of };
}

/** Where somebody has changed something by hand, something is most likely in the way. */
function withDriftFirst(
  nodes: readonly NodeView[],
  hasDrift: (node: NodeView) => boolean,
  most: number,
): readonly NodeView[] {
  const first = spread(nodes.filter(hasDrift), most);
  const others = nodes.filter((node) => !hasDrift(node));
  return [...first, ...spread(others, most - first.length)];
}

/** So many of them, from the whole list. */
const spread = <T>(items: readonly T[], most: number): readonly T[] =>
  items.length <= most
    ? items
    : Array.from({ length: most }, (_, i) => items[Math.floor((i * items.length) / most)] as T);

/** Undefined where the entry and what exists go together. */
function reasonOf(
  { kind, name }: ConfigEntry,
  { path, state, what, refused }: FoundPath,
  more: string,
): Reason | undefined {
  const place = { fragment: `${kind}/${name}`, field: 'spec.path' };
  const reason = state === 'unreachable' ? what : refused;
  if (reason !== '') {
    const rest = withoutPath(path, reason);
    const why = rest === reason ? reason : `it ${rest}`;
    return reasonFor(place, 'path-blocked', `${path} cannot be used: ${why}${more}`);
  }
  // A Directory leaves a directory in place, and follows a link to one.
  if (kind === 'Directory') return undefined;
  const message = `${path} exists already: ${what}; Sluice replaces it, and restores it when the fragment is deleted${more}`;
  return reasonFor(place, 'path-exists', message);
}

const noAnswer = (node: string): Reason => ({
  ...reasonFor(
    {},
    'no-answer',
    'the paths of this change could not be checked: no answer within 2 s, or a lease is in progress',
  ),
  nodes: [node],
});

const sorted = (reasons: readonly Reason[]): readonly Reason[] =>
  [...reasons].sort((a, b) => (`${a.fragment}\n${a.nodes[0]}` < `${b.fragment}\n${b.nodes[0]}` ? -1 : 1));
