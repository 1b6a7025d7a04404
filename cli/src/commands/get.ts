import { type FragmentView, type ViewValues } from '#libs/contracts';
import type { FleetClient } from '#libs/bus';
import { EXIT, UsageError, type ExitCode } from '../exit.js';
import { fleetTable, GETTABLE, present, type Gettable } from '../screens/fleet-tables.js';
import type { Session } from '../session.js';

/** What kubectl's habit types. */
const ALIASES: Readonly<Record<string, Gettable>> = { node: 'nodes', pool: 'pools', fragment: 'fragments', change: 'changes', lease: 'leases', knownbad: 'known-bad', 'known-bads': 'known-bad' };

/** Not a bucket's values but what they come to for one node. */
const POLICY: readonly string[] = ['disruption-policy', 'disruption-policies', 'disruptionpolicy'];

/** `sluice get nodes|pools|fragments|changes|known-bad|leases [NAME]`, and `sluice get disruption-policy NODE`. */
export async function get(session: Session, word: string, name: string | undefined): Promise<ExitCode> {
  if (POLICY.includes(word)) return (await import('./get-disruption-policy.js')).getDisruptionPolicy(session, name);
  const what = GETTABLE.find((one) => one === word) ?? ALIASES[word];
  if (what === undefined) throw new UsageError(`there are no ${JSON.stringify(word)} to get; there are ${[...GETTABLE, POLICY[0]].join(', ')}`);
  return show(session, what, name);
}

async function show<G extends Gettable>(session: Session, what: G, name: string | undefined): Promise<ExitCode> {
  const { io, flags } = session;
  const values = await find(await session.fleet(), what, name);
  if (name !== undefined && values.length === 0) throw new Error(`there is no ${name} among the ${what}: sluice get ${what} lists them`);
  if (flags.output === 'yaml') io.out(await toYaml(what, values));
  else if (session.isJson) io.out(JSON.stringify(name === undefined || values.length > 1 ? values : values[0]));
  else if (values.length === 0) io.say(`no ${what}`);
  else io.out(fleetTable(what, values, io.now(), io.colours));
  return EXIT.done;
}

/** All, or those that the name means: a fragment by name or Kind/name, a known-bad config also by a part of its hash. */
async function find<G extends Gettable>(fleet: FleetClient, what: G, name: string | undefined): Promise<ViewValues[G][]> {
  if (name === undefined) return present(what, (await fleet.list(what)).values());
  if (what === 'fragments' || what === 'known-bad') {
    const all = await fleet.list(what);
    const isMeant = (key: string): boolean =>
      what === 'fragments' ? [key, key.replace('.', '/'), key.slice(key.indexOf('.') + 1)].includes(name) : key === name || key.slice(key.indexOf('.') + 1).startsWith(name);
    return present(what, [...all].filter(([key]) => isMeant(key)).map(([, value]) => value));
  }
  const value = await fleet.get(what, name);
  return value === undefined ? [] : present(what, [value]);
}

/** Fragments as the manifests that they were; everything else as it stands. */
async function toYaml<G extends Gettable>(what: G, values: readonly ViewValues[G][]): Promise<string> {
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
