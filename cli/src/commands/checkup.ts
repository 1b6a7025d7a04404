import type { Inspection } from '#libs/client';
import { SERVICES, type NodeView, type RolloutView, type StatusView } from '#libs/contracts';

/** The result of one check. */
export interface Check {
  readonly what: string;
  readonly state: 'good' | 'bad' | 'note';
  readonly detail: string;
  /** How to fix it; empty when there is nothing to do. */
  readonly todo: string;
}

/** What is wrong with an installation, and what to do about each. */
export function checkUp(
  facts: Inspection,
  nodes: readonly NodeView[],
  rollouts: readonly RolloutView[],
  statuses: readonly StatusView[] = [],
): Check[] {
  return [
    server(facts),
    topology(facts),
    ...untrimmed(facts),
    ...SERVICES.map((name) => service(name, facts)),
    ...facts.services.flatMap(({ name, notes }) =>
      notes.map(({ state, words, todo }): Check => ({ what: name, state, detail: words, todo })),
    ),
    ...facts.viewsAhead.map((bucket): Check =>
      bad(
        `bucket ${bucket}`,
        'is ahead of the ledger: the stream LEDGER was restored from an older backup than the bucket',
        `restore both from the same backup, or delete the bucket (nats kv del ${bucket}) so that its service recreates it; until then nothing is appended`,
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
    ...rollouts
      .filter(({ phase, stalledBy }) => (phase === 'rolling' || phase === 'reverting') && stalledBy.length > 0)
      .map(({ change, stalledBy }): Check =>
        bad(
          `rollout ${change}`,
          `is stalled: no report from ${few(stalledBy)}`,
          `see sluice why ${stalledBy[0]}; bring the nodes back, or continue without them: sluice skip NODE or sluice remove NODE`,
        ),
      ),
  ];
}

function server({ server: { url, version, jetstream }, ledger }: Inspection): Check {
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  if (!jetstream)
    return bad(
      'nats-server',
      `${url} (${version}) runs without JetStream`,
      'start it with -js, or add jetstream {} to its config',
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

function topology({ topology: differences }: Inspection): Check {
  if (differences.length === 0) return good('streams and buckets', 'as expected');
  return bad(
    'streams and buckets',
    differences.join('; '),
    'start the services: they create what is missing; fix other differences yourself (nats stream edit)',
  );
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

function service(name: string, { services }: Inspection): Check {
  const found = services.find((one) => one.name === name);
  if (found === undefined || found.copies === 0)
    return bad(
      name,
      'does not answer',
      `start it: sluice service ${name} (or sluice up for everything on this machine)`,
    );
  if (found.halted !== '') return bad(name, `has stopped appending: ${found.halted}`, wayOn(found.halted));
  return good(name, found.copies === 1 ? '1 copy' : `${found.copies} copies`);
}

/** How to fix what stops a service. */
function wayOn(halted: string): string {
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

/** How often an applier may lose its state before it is worth a note. */
const MANY_BIRTHS = 5;

/**
 * Two appliers with one name take turns at being the newer one; an applier that loses its state at every start looks
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
 * Nodes that are not as their config says. One whose rollback failed, or that differs from its config, is a problem;
 * the others catch up, or keep what they have, as designed.
 */
function behind(nodes: readonly NodeView[], statuses: readonly StatusView[]): Check[] {
  const gone = new Set(nodes.filter(({ state }) => state === 'gone').map(({ node }) => node));
  const of = (state: typeof bad, what: string, detail: string, is: (status: StatusView) => boolean): Check[] => {
    const found = statuses.filter((status) => !gone.has(status.node) && is(status)).map(({ node }) => node);
    if (found.length === 0) return [];
    const counted = found.length === 1 ? '1 node' : `${found.length} nodes`;
    return [state(what, `${detail.replace('NODES', counted)}: ${few(found)}`, `see sluice why ${found[0]}`)];
  };
  return [
    ...of(bad, 'degraded', 'rollback failed on NODES', ({ restored }) => !restored),
    ...of(bad, 'drifted', 'drift found on NODES', ({ drifted }) => drifted.length > 0),
    ...of(note, 'deferred', 'NODES will get the config later', ({ deferred }) => deferred !== ''),
    ...of(note, 'incompatible', 'the committed config is incompatible with NODES', (status) => status.incompatible),
  ];
}

const good = (what: string, detail: string): Check => ({ what, state: 'good', detail, todo: '' });
const note = (what: string, detail: string, todo: string): Check => ({ what, state: 'note', detail, todo });
const bad = (what: string, detail: string, todo: string): Check => ({ what, state: 'bad', detail, todo });
const few = (names: readonly string[]): string =>
  `${names.slice(0, 10).join(', ')}${names.length > 10 ? `, and ${names.length - 10} more` : ''}`;
