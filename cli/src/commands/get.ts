import type { ChangeView, Fragment, FragmentView, LeaseView, NodeView, RolloutView, StatusView } from '#libs/contracts';
import type { FleetClient } from '#libs/client';
import { knownWords } from '#libs/manifests';
import { effectivePolicy, policyRows, type PolicyRow } from '#libs/rules';
import { changeNotFound } from '../change/change-not-found.js';
import { changeStatus, type ChangeStatus } from '../change/change-status.js';
import { getDrift } from './get-drift.js';
import { getObjects } from './get-objects.js';
import { getTargetStatus } from './get-target-status.js';
import { warningOfMissing } from '../connection/missing-services.js';
import { nodeNameOf } from '../input/arguments.js';
import { EXIT, UsageError, type ExitCode } from '../output/exit.js';
import {
  fleetTable,
  RESOURCES,
  present,
  type ChangeRow,
  type Resource,
  type ResourceView,
} from '../output/fleet-tables.js';
import { actionText } from '../output/plan.js';
import { table } from '../output/table.js';
import type { Session } from '../connection/session.js';

/** The forms that users of kubectl type. */
const ALIASES: ReadonlyMap<string, Resource> = new Map(
  Object.entries({
    node: 'nodes',
    pool: 'pools',
    fragment: 'fragments',
    change: 'changes',
    lease: 'leases',
    knownbad: 'known-bad',
    'known-bads': 'known-bad',
  }),
);

/** In the object store, not in a bucket. */
const OBJECTS: readonly string[] = ['objects', 'object'];
/** Written by the appliers of targets, and no view of the ledger. */
const TARGET_STATUS: readonly string[] = ['target-status', 'target-statuses', 'cnfstatus'];
/** Computed for one node, not read from a bucket. */
const POLICY: readonly string[] = ['disruption-policy', 'disruption-policies', 'disruptionpolicy'];

/**
 * `sluice get nodes|pools|fragments|changes|known-bad|leases|objects [NAME]`, `sluice get drift|target-status [NODE]`,
 * and `sluice get disruption-policy NODE`.
 */
export async function get(session: Session, word: string, name: string | undefined): Promise<ExitCode> {
  if (word === 'drift') return warningOfMissing(session, () => getDrift(session, name));
  if (OBJECTS.includes(word)) return getObjects(session, name);
  if (TARGET_STATUS.includes(word)) return getTargetStatus(session, name);
  if (POLICY.includes(word)) return warningOfMissing(session, () => getDisruptionPolicy(session, name));
  const what = RESOURCES.find((one) => one === word) ?? ALIASES.get(word);
  if (what === undefined)
    throw new UsageError(
      `unknown resource ${JSON.stringify(word)}; ${knownWords(word, 'resources', [...RESOURCES, 'drift', 'objects', 'target-status', POLICY[0] as string])}`,
    );
  return warningOfMissing(session, () => show(session, what, name));
}

async function show<G extends Resource>(session: Session, what: G, name: string | undefined): Promise<ExitCode> {
  const { io, flags } = session;
  const fleet = await session.fleet();
  const values = await find(fleet, what, name);
  if (name !== undefined && values.length === 0 && what === 'changes')
    throw changeNotFound(name, await fleet.unreadChanges());
  if (name !== undefined && values.length === 0)
    throw new Error(`${JSON.stringify(name)} not found in ${what}: list them with sluice get ${what}`);
  const data = values.map(asData);
  if (flags.output === 'yaml') io.out(await toYaml(what, data));
  else if (session.isJson) io.out(JSON.stringify(name === undefined || data.length > 1 ? data : data[0]));
  else if (values.length === 0) io.say(`no ${what} found`);
  else io.out(fleetTable(what, values, io.now(), io.colours));
  return EXIT.done;
}

/**
 * All, or those with the given name: a fragment by name or Kind/name, a known-bad config also by a part of its hash.
 */
async function find<G extends Resource>(
  fleet: FleetClient,
  what: G,
  name: string | undefined,
): Promise<ResourceView<G>[]> {
  if (what === 'nodes') return present('nodes', await nodesOf(fleet, name)) as ResourceView<G>[];
  if (what === 'changes') return present('changes', await changesOf(fleet, name)) as ResourceView<G>[];
  if (name === undefined) return present(what, (await fleet.list(what)).values() as Iterable<ResourceView<G>>);
  if (what === 'fragments' || what === 'known-bad') {
    const all = await fleet.list(what);
    const isMeant = (key: string): boolean =>
      what === 'fragments'
        ? [key, key.replace('.', '/'), key.slice(key.indexOf('.') + 1)].includes(name)
        : key === name || key.slice(key.indexOf('.') + 1).startsWith(name);
    return present(
      what,
      [...all].filter(([key]) => isMeant(key)).map(([, value]) => value as ResourceView<G>),
    );
  }
  const value = await fleet.get(what, name);
  return value === undefined ? [] : present(what, [value as ResourceView<G>]);
}

/** The nodes of the inventory, with the scheduler's views of them. */
async function nodesOf(fleet: FleetClient, name: string | undefined): Promise<ResourceView<'nodes'>[]> {
  if (name === undefined) {
    const [nodes, statuses, leases] = await Promise.all([
      fleet.list('nodes'),
      fleet.list('status'),
      fleet.list('leases'),
    ]);
    return [...nodes].map(([key, node]) => nodeRow(node, statuses.get(key), leases.get(key)));
  }
  const [node, status, lease] = await Promise.all([
    fleet.get('nodes', name),
    fleet.get('status', name),
    fleet.get('leases', name),
  ]);
  return node === undefined ? [] : [nodeRow(node, status, lease)];
}

function nodeRow(node: NodeView, status: StatusView | undefined, lease: LeaseView | undefined): ResourceView<'nodes'> {
  if (status === undefined) return node;
  const { taken, restored, deferred, skipped, incompatible, drifted, failingProbes } = status;
  const unknown = lease?.because === 'unknown' && lease.phase !== 'released';
  const fields = { restored, deferred, unknown, skipped, incompatible, drifted, failingProbes };
  // The inventory knows this of Kubernetes Nodes, and the scheduler of targets.
  const unavailable = status.unavailable ?? node.unavailable;
  return { ...node, unavailable, ...(taken === undefined ? {} : { taken }), ...fields };
}

/** The changes of the merger, with the scheduler's view of their rollouts. */
async function changesOf(fleet: FleetClient, name: string | undefined): Promise<ChangeRow[]> {
  const row = (change: ChangeView, rollout: RolloutView | undefined): ChangeRow => ({
    ...change,
    status: changeStatus(change, rollout),
  });
  if (name === undefined) {
    const [changes, rollouts] = await Promise.all([fleet.list('changes'), fleet.list('rollouts')]);
    return [...changes].map(([id, change]) => row(change, rollouts.get(id)));
  }
  const [change, rollout] = await Promise.all([fleet.get('changes', name), fleet.get('rollouts', name)]);
  return change === undefined ? [] : [row(change, rollout)];
}

/** For programs: the status of a change as one word, as in `sluice status -o json`. */
const asData = (value: object): object => {
  const { status, ...view } = value as { readonly status?: ChangeStatus };
  return status === undefined ? value : { ...view, state: status.word };
};

/** Fragments as the manifests that they were. Everything else as it is stored. */
async function toYaml(what: Resource, values: readonly object[]): Promise<string> {
  const { stringify } = await import('yaml');
  if (values.length === 0) return '[]';
  const documents = what === 'fragments' ? (values as readonly FragmentView[]).map(manifestOf) : values;
  // `yes` as a text is quoted: kubectl, and Sluice in the manifests of Kubernetes, would read a boolean.
  return documents.map((document) => stringify(document, { compat: 'yaml-1.1' }).trimEnd()).join('\n---\n');
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

/**
 * `sluice get disruption-policy NODE`: what each kind of change needs on that node, and which rule of which policy says
 * so.
 */
async function getDisruptionPolicy(session: Session, name: string | undefined): Promise<ExitCode> {
  if (name === undefined) throw new UsageError('the node is missing: sluice get disruption-policy NODE');
  const node = nodeNameOf(name);
  const fleet = await session.fleet();
  const [view, fragments] = await Promise.all([fleet.get('nodes', node), fleet.list('fragments')]);
  if (view === undefined || view.state === 'gone')
    throw new Error(`node ${node} not found: list nodes with sluice get nodes`);
  const committed = [...fragments.values()].flatMap(({ fragment, gone }) =>
    fragment === undefined || gone ? [] : [fragment as Fragment],
  );
  const rules = policyRows(effectivePolicy(committed, view.labels));
  if (session.flags.output === 'yaml') session.io.out((await import('yaml')).stringify({ node, rules }).trimEnd());
  else if (session.isJson) session.io.out(JSON.stringify({ node, rules }));
  else
    session.io.out(
      table(
        ['CHANGE OF', 'NEEDS', 'POLICY', 'BY RULE'],
        rules.map((row) => [subjectOf(row), actionText(row.actions), row.policies.join(', '), row.rule]),
      ),
    );
  return EXIT.done;
}

/** What a rule applies to, in the terms of the policy. */
function subjectOf({ target, match }: PolicyRow): string {
  switch (target) {
    case 'kind':
      return `any ${match}`;
    case 'default':
      return 'anything else';
    case 'sshKeys':
      return 'SSH keys';
    default:
      return `${target} ${match}`;
  }
}
