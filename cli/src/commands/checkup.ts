import type { Inspection } from '#libs/client';
import {
  byAge,
  holdersOf,
  isUnread,
  SERVICES,
  type ChangeView,
  type Fragment,
  type FragmentView,
  type NodeView,
  type PoolView,
  type RolloutView,
  type StatusView,
} from '#libs/contracts';
import { failingEverywhere } from '#libs/rules';
import { unreadText } from '../change/change-not-found.js';
import { failingText } from '../output/marks.js';
import { count } from '../output/table.js';

/** The result of one check. */
export interface Check {
  readonly what: string;
  readonly state: 'good' | 'bad' | 'note';
  readonly detail: string;
  /** How to fix it; empty if there is nothing to do. */
  readonly todo: string;
}

/** What only some checks need. */
interface RarelyRead {
  /** Changes that were rejected because their source exceeded its quota. */
  readonly overQuota?: readonly ChangeView[];
  readonly pools?: readonly PoolView[];
}

/** What is wrong with an installation, and how to fix it. */
export function checkUp(
  facts: Inspection,
  nodes: readonly NodeView[],
  rollouts: readonly RolloutView[],
  statuses: readonly StatusView[] = [],
  fragments: readonly FragmentView[] = [],
  { overQuota = [], pools = [] }: RarelyRead = {},
): Check[] {
  return [
    server(facts),
    ...topology(facts),
    ...untrimmed(facts),
    ...full(facts),
    ...unread(facts),
    ...overQuotas(overQuota),
    ...objectStore(facts),
    ...SERVICES.map((name) => service(name, facts)),
    ...facts.services.flatMap(({ name, notes }) =>
      notes.map(({ state, words, todo }): Check => ({ what: name, state, detail: words, todo })),
    ),
    ...facts.viewsAhead.map((bucket): Check =>
      bad(
        `bucket ${bucket}`,
        'is ahead of the ledger: the stream LEDGER was restored from an older backup than the bucket',
        `restore both from the same backup, or delete the bucket (nats kv del ${bucket}) and restart the services, which write it again; until then nothing is appended`,
      ),
    ),
    ...facts.poison.map((message): Check =>
      bad(
        `${message.stream} ${message.sequence}`,
        `${message.subject} was set aside: ${message.reason}`,
        message.stream === 'LEDGER'
          ? `inspect it (nats stream get LEDGER ${message.sequence}); upgrade the service that cannot read it, or void it: ${voiding(message.sequence)}`
          : `inspect it (nats stream get ${message.stream} ${message.sequence}) and fix its sender`,
      ),
    ),
    fleet(nodes),
    ...doubles(nodes, statuses),
    ...behind(nodes, statuses),
    ...hopeless(nodes, statuses, fragments),
    ...rollouts
      .filter(({ phase, stalledBy }) => (phase === 'rolling' || phase === 'reverting') && stalledBy.length > 0)
      .map(({ change, stalledBy }): Check => {
        const { text, wayOut } = holdersOf(stalledBy, pools);
        return bad(`rollout ${change}`, `is stalled: waits for ${text}`, `see sluice why ${stalledBy[0]}; ${wayOut}`);
      }),
  ];
}

function server({ server: { url, version, lacksJetStream }, ledger }: Inspection): Check {
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  if (lacksJetStream === 'account')
    return bad(
      'nats-server',
      `${url} (${version}) has no JetStream for the account of this user`,
      "set jetstream: enabled in that account in the server's config, or connect as a user of another account",
    );
  if (lacksJetStream === 'server')
    return bad(
      'nats-server',
      `${url} (${version}) runs without JetStream`,
      'start it with -js, or add jetstream {} to its config; if it is a leaf node, check its link to the hub',
    );
  if (major < 2 || (major === 2 && minor < 12))
    return bad(
      'nats-server',
      `${url} is version ${version}; Sluice needs 2.12 or newer`,
      'upgrade it: older versions have no atomic batches',
    );
  return good(
    'nats-server',
    `${version} at ${url}; the ledger has ${ledger.messages} facts, ${(ledger.bytes / 1_048_576).toFixed(1)} MiB`,
  );
}

/** Nothing without JetStream, which is the problem then. */
function topology({ server: { lacksJetStream }, topology: differences }: Inspection): Check[] {
  if (lacksJetStream !== undefined) return [];
  if (differences.length === 0) return [good('streams and buckets', 'as expected')];
  return [
    bad(
      'streams and buckets',
      differences.join('; '),
      'start the services, or restart them: they create what is missing when they start; fix other differences yourself (nats stream edit)',
    ),
  ];
}

/** How long the ledger is kept by default; it can take twice as long until a snapshot is that old. */
const KEPT_DAYS = 90;
const MOST_DAYS = 2 * KEPT_DAYS;
const DAY_MS = 24 * 3_600_000;

/** A ledger that should have been trimmed: harmless, but it grows. */
function untrimmed({ ledger, snapshots }: Inspection): Check[] {
  const days = Math.floor(ledger.ageMs / DAY_MS);
  const without = Object.entries(snapshots)
    .filter(([, count]) => count < 2)
    .map(([name]) => name);
  if (days <= (without.length > 0 ? KEPT_DAYS : MOST_DAYS)) return [];
  const detail = `holds ${days} days of facts: it is trimmed once every service has two snapshots`;
  return [
    without.length > 0
      ? note(
          'ledger',
          `${detail}, and ${few(without)} ${without.length === 1 ? 'has' : 'have'} fewer than two`,
          'look for snapshots in their logs: a service writes one every day while it leads',
        )
      : note(
          'ledger',
          detail,
          'ignore this if SLUICE_LEDGER_DAYS is set to this many days; otherwise look for trimming in the log of the merger',
        ),
  ];
}

/** From here on a stream counts as nearly full. */
const NEARLY_FULL = 0.8;
const MIB = 2 ** 20;

/** How full a stream is; undefined if that is no trouble. */
const fullnessText = (bytes: number, maxBytes: number): string | undefined =>
  maxBytes <= 0 || bytes < maxBytes * NEARLY_FULL
    ? undefined
    : `is ${Math.floor((100 * bytes) / maxBytes)} % full (${Math.round(bytes / MIB)} of ${Math.round(maxBytes / MIB)} MiB)`;

function full({ changes: { bytes, maxBytes } }: Inspection): Check[] {
  const fullness = fullnessText(bytes, maxBytes);
  if (fullness === undefined) return [];
  return [
    bad(
      'stream CHANGES',
      `${fullness}; when it is full, nobody can publish changes`,
      'start the merger if it is not running: within minutes, it deletes what it has read; to see who publishes so much, run sluice events --since 1h --subject "config.desired.>"',
    ),
  ];
}

/** While the merger runs, these are changes that were published just now. */
function unread({ unread: changes }: Inspection): Check[] {
  if (changes.length === 0) return [];
  return [note('changes', unreadText(changes), 'they wait until the merger runs: do not publish them again')];
}

/** Anyone can make up names. */
const NAMED_SOURCES = 5;

/** The changes that were rejected on this day because of the quota of their source. */
export const overQuotaOn = (now: Date, changes: readonly ChangeView[]): readonly ChangeView[] =>
  changes.filter(
    ({ reasons, endedAt }) =>
      reasons.some(({ code }) => code === 'over-quota') && endedAt.slice(0, 10) === now.toISOString().slice(0, 10),
  );

/** Sources that go on publishing after their quota is used up, as the changes show it that are still kept. */
function overQuotas(rejected: readonly ChangeView[]): Check[] {
  const bySource = Map.groupBy(
    [...rejected].sort((a, b) => byAge(a.change, b.change)),
    ({ source }) => source,
  );
  const most = [...bySource].sort(([, a], [, b]) => b.length - a.length).slice(0, NAMED_SOURCES);
  return most.map(([source, changes]) =>
    bad(
      `source ${source}`,
      `publishes more than its quota: at least ${changes.length} of its changes were rejected today, ${changes.at(-1)?.change} was the last`,
      `make it publish less: sluice events --since 1h --subject "config.desired.${source}" shows what; its quota is free again at 00:00 UTC, and SLUICE_SOURCE_QUOTA_MB of the merger raises it`,
    ),
  );
}

/** The next upload may be refused. */
function objectStore({ objects: { bytes, maxBytes } }: Inspection): Check[] {
  const fullness = fullnessText(bytes, maxBytes);
  if (fullness === undefined) return [];
  return [
    note(
      'object store',
      fullness,
      'objects that nothing refers to are deleted after some days; to raise the limit: nats stream edit OBJECTS --max-bytes=SIZE',
    ),
  ];
}

function service(name: string, { services }: Inspection): Check {
  const status = services.find((one) => one.name === name);
  if (status === undefined || status.copies === 0)
    return bad(
      name,
      'does not answer',
      `start it: sluice service ${name} (or sluice up for everything on this machine)`,
    );
  if (status.halted !== '') return bad(name, `has stopped appending: ${status.halted}`, remedyFor(status.halted));
  return good(name, count(status.copies, 'copy', 'copies'));
}

/** How to fix what stops a service. */
function remedyFor(halted: string): string {
  const sequence = /\bsequence (\d+) of the ledger\b/.exec(halted)?.[1];
  if (sequence === undefined) return 'fix the cause; the service retries every few seconds and continues on its own';
  return `inspect it (nats stream get LEDGER ${sequence}); if a newer version wrote it, upgrade the service; otherwise void it: ${voiding(sequence)}; the service then continues on its own`;
}

const voiding = (sequence: number | string): string =>
  `nats pub ledger.voided.${sequence} '{"v":1,"at":"…","sequence":${sequence},"by":"…","reason":"…"}'`;

function fleet(nodes: readonly NodeView[]): Check {
  const here = nodes.filter(({ state }) => state !== 'gone');
  const silent = here.filter(({ state }) => state === 'silent').map(({ node }) => node);
  if (silent.length > 0)
    return bad(
      'nodes',
      `${silent.length} of ${here.length} are silent: ${few(silent)}`,
      'check that their appliers run; remove a node that is gone for good with sluice remove NODE',
    );
  if (here.length === 0) return note('nodes', 'no nodes have joined', 'start an applier: sluice applier --node NAME');
  return good('nodes', `${here.length}, all reporting`);
}

/** How often an applier may lose its state before a note is shown. */
const MANY_BIRTHS = 5;

/**
 * Two appliers with the same name start new incarnations in turn. An applier that loses its state at every start looks
 * the same.
 */
function doubles(nodes: readonly NodeView[], statuses: readonly StatusView[]): Check[] {
  const here = new Set(nodes.filter(({ state }) => state !== 'gone').map(({ node }) => node));
  const found = statuses
    .filter(({ node, incarnation }) => here.has(node) && incarnation >= MANY_BIRTHS)
    .map(({ node }) => node);
  if (found.length === 0) return [];
  return [
    note(
      'appliers',
      `${found.length} started without their state ${MANY_BIRTHS} times or more: ${few(found)}`,
      'make sure that only one applier runs under each name, and that its --state folder survives restarts',
    ),
  ];
}

/**
 * Nodes that differ from their config. A failed rollback or drift is a problem. The others will be updated, or keep
 * their config, as designed.
 */
function behind(nodes: readonly NodeView[], statuses: readonly StatusView[]): Check[] {
  const gone = new Set(nodes.filter(({ state }) => state === 'gone').map(({ node }) => node));
  const of = (state: typeof bad, what: string, detail: string, is: (status: StatusView) => boolean): Check[] => {
    const found = statuses.filter((status) => !gone.has(status.node) && is(status)).map(({ node }) => node);
    if (found.length === 0) return [];
    return [
      state(
        what,
        `${detail.replace('NODES', count(found.length, 'node'))}: ${few(found)}`,
        `see sluice why ${found[0]}`,
      ),
    ];
  };
  return [
    ...of(bad, 'degraded', 'rollback failed on NODES', ({ restored }) => !restored),
    ...of(bad, 'drifted', 'drift found on NODES', ({ drifted }) => drifted.length > 0),
    ...unreadable(statuses.filter(({ node }) => !gone.has(node))),
    ...unavailable(statuses.filter(({ node }) => !gone.has(node))),
    ...unhealthy(statuses.filter(({ node }) => !gone.has(node))),
    ...notUndone(statuses.filter(({ node }) => !gone.has(node))),
    ...of(note, 'left over', 'what was deleted is still there on NODES', ({ leftovers }) => leftovers.length > 0),
    ...of(note, 'deferred', 'NODES will get the config later', ({ deferred }) => deferred !== ''),
    ...of(note, 'incompatible', 'the committed config is incompatible with NODES', (status) => status.incompatible),
  ];
}

/** Nodes that cannot read what they manage: nobody knows whether it has drifted, and changes of them fail. */
function unreadable(statuses: readonly StatusView[]): Check[] {
  const entries = statuses.flatMap(({ node, drifted }) => {
    const places = drifted.filter(isUnread);
    return places.length === 0 ? [] : [`${node} (${few(places)})`];
  });
  if (entries.length === 0) return [];
  const nodes =
    entries.length === 1
      ? '1 node cannot read what it manages'
      : `${entries.length} nodes cannot read what they manage`;
  return [bad('unreadable', `${nodes}: ${few(entries)}`, 'fix this on the node')];
}

/** Targets that their appliers, which run elsewhere, cannot use now. */
function unavailable(statuses: readonly StatusView[]): Check[] {
  const entries = statuses.flatMap(({ node, unavailable: reason }) =>
    reason === undefined ? [] : [`${node} (${reason})`],
  );
  if (entries.length === 0) return [];
  const targets = count(entries.length, 'target');
  return [bad('unavailable', `${targets} cannot be used: ${few(entries)}`, 'they get their config when that is over')];
}

function unhealthy(statuses: readonly StatusView[]): Check[] {
  const found = statuses.filter(({ failingProbes }) => failingProbes.length > 0);
  const [first] = found;
  if (first === undefined) return [];
  const nodes = count(found.length, 'node');
  const entries = found.map(({ node, failingProbes }) => `${node} (${failingText(failingProbes)})`);
  return [bad('unhealthy', `probes fail on ${nodes}: ${few(entries)}`, `see sluice why ${first.node}`)];
}

/** Nodes on which a rollback could not undo what commands had done. */
function notUndone(statuses: readonly StatusView[]): Check[] {
  const found = statuses.filter((status) => status.notUndone.length > 0);
  if (found.length === 0) return [];
  const nodes = count(found.length, 'node was', 'nodes were');
  const entries = found.map((status) => `${status.node} (except ${few(status.notUndone)})`);
  return [
    bad(
      'partly rolled back',
      `${nodes} rolled back, except for commands that were not undone: ${few(entries)}`,
      'undo on the node what these commands did, and give each Exec an undo; this message ends when the node applies its next change',
    ),
  ];
}

/** Probes that pass on no node. */
function hopeless(
  nodes: readonly NodeView[],
  statuses: readonly StatusView[],
  fragments: readonly FragmentView[],
): Check[] {
  const failing = new Map(statuses.map(({ node, failingProbes }) => [node, failingProbes]));
  const probed = nodes
    .filter(({ state }) => state !== 'gone')
    .map(({ node, labels }) => ({ node, labels, failingProbes: failing.get(node) ?? [] }));
  return fragments.flatMap(({ fragment, gone }) => {
    const warning = fragment?.kind === 'Probe' && !gone ? failingEverywhere(fragment as Fragment, probed) : undefined;
    return warning === undefined ? [] : [note(warning.fragment, warning.message, '')];
  });
}

const good = (what: string, detail: string): Check => ({ what, state: 'good', detail, todo: '' });
const note = (what: string, detail: string, todo: string): Check => ({ what, state: 'note', detail, todo });
const bad = (what: string, detail: string, todo: string): Check => ({ what, state: 'bad', detail, todo });
const few = (names: readonly string[]): string =>
  `${names.slice(0, 10).join(', ')}${names.length > 10 ? `, and ${names.length - 10} more` : ''}`;
