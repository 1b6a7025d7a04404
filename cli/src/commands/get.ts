import type { FragmentView, NodeView, StatusView } from '#libs/contracts';
import type { FleetClient } from '#libs/bus';
import { EXIT, UsageError, type ExitCode } from '../exit.js';
import { fleetTable, GETTABLE, present, type Gettable, type Listed } from '../screens/fleet-tables.js';
import type { Session } from '../session.js';

/** What kubectl's habit types. */
const ALIASES: Readonly<Record<string, Gettable>> = {
  node: 'nodes',
  pool: 'pools',
  fragment: 'fragments',
  change: 'changes',
  lease: 'leases',
  knownbad: 'known-bad',
  'known-bads': 'known-bad',
};

/** Not a bucket's values but what they come to for one node. */
const POLICY: readonly string[] = ['disruption-policy', 'disruption-policies', 'disruptionpolicy'];

/** `sluice get nodes|pools|fragments|changes|known-bad|leases [NAME]`, and `sluice get disruption-policy NODE`. */
export async function get(session: Session, word: string, name: string | undefined): Promise<ExitCode> {
  if (POLICY.includes(word)) return (await import('./get-disruption-policy.js')).getDisruptionPolicy(session, name);
  const what = GETTABLE.find((one) => one === word) ?? ALIASES[word];
  if (what === undefined)
    throw new UsageError(
      `there are no ${JSON.stringify(word)} to get; there are ${[...GETTABLE, POLICY[0]].join(', ')}`,
    );
  return show(session, what, name);
}

async function show<G extends Gettable>(session: Session, what: G, name: string | undefined): Promise<ExitCode> {
  const { io, flags } = session;
  const values = await find(await session.fleet(), what, name);
  if (name !== undefined && values.length === 0)
    throw new Error(`there is no ${name} among the ${what}: sluice get ${what} lists them`);
  if (flags.output === 'yaml') io.out(await toYaml(what, values));
  else if (session.isJson) io.out(JSON.stringify(name === undefined || values.length > 1 ? values : values[0]));
  else if (values.length === 0) io.say(`no ${what}`);
  else io.out(fleetTable(what, values, io.now(), io.colours));
  return EXIT.done;
}

/** All, or those that the name means: a fragment by name or Kind/name, a known-bad config also by a part of its hash. */
async function find<G extends Gettable>(fleet: FleetClient, what: G, name: string | undefined): Promise<Listed<G>[]> {
  if (what === 'nodes') return present('nodes', await nodesOf(fleet, name)) as Listed<G>[];
  if (name === undefined) return present(what, (await fleet.list(what)).values() as Iterable<Listed<G>>);
  if (what === 'fragments' || what === 'known-bad') {
    const all = await fleet.list(what);
    const isMeant = (key: string): boolean =>
      what === 'fragments'
        ? [key, key.replace('.', '/'), key.slice(key.indexOf('.') + 1)].includes(name)
        : key === name || key.slice(key.indexOf('.') + 1).startsWith(name);
    return present(
      what,
      [...all].filter(([key]) => isMeant(key)).map(([, value]) => value as Listed<G>),
    );
  }
  const value = await fleet.get(what, name);
  return value === undefined ? [] : present(what, [value as Listed<G>]);
}

/** The nodes that the inventory knows, with what only the scheduler does. */
async function nodesOf(fleet: FleetClient, name: string | undefined): Promise<Listed<'nodes'>[]> {
  const both = (node: NodeView, status: StatusView | undefined): Listed<'nodes'> =>
    status?.taken === undefined ? node : { ...node, taken: status.taken };
  if (name === undefined) {
    const [nodes, statuses] = await Promise.all([fleet.list('nodes'), fleet.list('status')]);
    return [...nodes].map(([key, node]) => both(node, statuses.get(key)));
  }
  const [node, status] = await Promise.all([fleet.get('nodes', name), fleet.get('status', name)]);
  return node === undefined ? [] : [both(node, status)];
}

/** Fragments as the manifests that they were; everything else as it stands. */
async function toYaml<G extends Gettable>(what: G, values: readonly Listed<G>[]): Promise<string> {
  const { stringify } = await import('yaml');
  const documents = what === 'fragments' ? (values as readonly FragmentView[]).map(manifestOf) : values;
  return documents.map((document) => stringify(document).trimEnd()).join('\n---\n');
}

function manifestOf({ fragment }: FragmentView): object {
  const labels = fragment?.labels ?? {};
  return {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: fragment?.kind,
    metadata: { name: fragment?.name, ...(Object.keys(labels).length === 0 ? {} : { labels }) },
    spec: fragment?.spec,
  };
}
