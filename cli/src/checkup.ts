import type { Inspection } from '#libs/bus';
import { SERVICES, type NodeView, type RolloutView, type StatusView } from '#libs/contracts';

/** One thing that was looked at. */
export interface Check {
  readonly what: string;
  readonly state: 'good' | 'bad' | 'note';
  readonly detail: string;
  /** What to do about it; empty when there is nothing to do. */
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
        'shows more than the ledger has: the stream LEDGER was restored from an older backup than the buckets',
        `nothing is appended until this is settled: restore the ledger and the buckets from the same backup, or delete the bucket (nats kv del ${bucket}) so that its owner writes it anew`,
      ),
    ),
    ...facts.poison.map((message): Check =>
      bad(
        `${message.stream} ${message.sequence}`,
        `${message.subject} was set aside: ${message.reason}`,
        message.stream === 'LEDGER'
          ? `look at it (nats stream get LEDGER ${message.sequence}); upgrade the service that cannot read it, or declare it void: ${voiding(message.sequence)}`
          : `look at it (nats stream get ${message.stream} ${message.sequence}); its sender has to send something else`,
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
          `is stalled by ${few(stalledBy)}`,
          `sluice why ${stalledBy[0]} says why; bring them back, or sluice skip NODE, or sluice remove NODE`,
        ),
      ),
  ];
}

function server({ server: { url, version, jetstream }, ledger }: Inspection): Check {
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  if (!jetstream)
    return bad(
      'nats-server',
      `${url} (${version}) has no JetStream`,
      'start it with -js, or with jetstream {} in its config',
    );
  if (major < 2 || (major === 2 && minor < 12))
    return bad(
      'nats-server',
      `${url} is version ${version}; Sluice needs 2.12 or newer`,
      'upgrade it: older ones have no atomic batches',
    );
  return good(
    'nats-server',
    `${version} at ${url}; the ledger has ${ledger.messages} facts, ${(ledger.bytes / 1_048_576).toFixed(1)} MiB`,
  );
}

function topology({ topology: differences }: Inspection): Check {
  if (differences.length === 0) return good('streams and buckets', 'as Sluice asks for');
  return bad(
    'streams and buckets',
    differences.join('; '),
    'start the services: they make what is missing; what is different has to be changed by hand (nats stream edit)',
  );
}

/** What the ledger is kept for unless the merger was told otherwise, and so much longer it takes at times until a snapshot is that old. */
const KEPT_DAYS = 90;
const MOST_DAYS = 2 * KEPT_DAYS;
const DAY_MS = 24 * 3_600_000;

/** A ledger that could be shorter: no harm, but it grows. */
function untrimmed({ ledger, snapshots }: Inspection): Check[] {
  const days = Math.floor(ledger.ageMs / DAY_MS);
  const without = Object.entries(snapshots)
    .filter(([, count]) => count < 2)
    .map(([name]) => name);
  if (days <= (without.length > 0 ? KEPT_DAYS : MOST_DAYS)) return [];
  const detail = `holds ${days} days, for it is trimmed behind the snapshots of every service`;
  if (without.length > 0)
    return [
      {
        what: 'ledger',
        state: 'note',
        detail: `${detail}, and ${few(without)} ${without.length === 1 ? 'has' : 'have'} fewer than two`,
        todo: 'see what their logs say of snapshots: a service writes one every day while it leads',
      },
    ];
  return [
    {
      what: 'ledger',
      state: 'note',
      detail,
      todo: 'nothing if SLUICE_LEDGER_DAYS asks for so many; else see what the log of the merger says of trimming',
    },
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
  if (found.halted !== '') return bad(name, `appends no more: ${found.halted}`, wayOn(found.halted));
  return good(name, found.copies === 1 ? '1 copy' : `${found.copies} copies`);
}

/** What is in the way of a service that has stopped, and how it goes on by itself. */
function wayOn(halted: string): string {
  const sequence = /\bsequence (\d+) of the ledger\b/.exec(halted)?.[1];
  if (sequence === undefined) return 'do what it says; it looks every few seconds, and goes on by itself';
  return `look at it (nats stream get LEDGER ${sequence}); upgrade the service if it is from a newer one, or declare it void, and it goes on by itself: ${voiding(sequence)}`;
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
      'see whether their appliers run; a node that is gone for good: sluice remove NODE',
    );
  if (here.length === 0)
    return { what: 'nodes', state: 'note', detail: 'there are none', todo: 'start one: sluice applier --node NAME' };
  return good('nodes', `${here.length}, all heard of`);
}

/** So often an applier may lose its state before somebody should look. */
const MANY_BIRTHS = 5;

/** Two appliers of one name take turns at being the newer one; an applier whose state is lost at each start looks the same. */
function doubles(nodes: readonly NodeView[], statuses: readonly StatusView[]): Check[] {
  const here = new Set(nodes.filter(({ state }) => state !== 'gone').map(({ node }) => node));
  const found = statuses
    .filter(({ node, incarnation }) => here.has(node) && incarnation >= MANY_BIRTHS)
    .map(({ node }) => node);
  if (found.length === 0) return [];
  return [
    {
      what: 'appliers',
      state: 'note',
      detail: `${found.length} began without their state ${MANY_BIRTHS} times or more: ${few(found)}`,
      todo: 'see that only one applier runs under each name, and that its --state folder survives',
    },
  ];
}

/** Nodes that are there and do not have what they shall have, or have more: shown always, though they hold nothing up. */
function behind(nodes: readonly NodeView[], statuses: readonly StatusView[]): Check[] {
  const gone = new Set(nodes.filter(({ state }) => state === 'gone').map(({ node }) => node));
  const of = (what: string, detail: string, is: (status: StatusView) => boolean): Check[] => {
    const found = statuses.filter((status) => !gone.has(status.node) && is(status)).map(({ node }) => node);
    return found.length === 0
      ? []
      : [
          {
            what,
            state: 'note',
            detail: `${found.length} ${detail}: ${few(found)}`,
            todo: `sluice why ${found[0]} says why`,
          },
        ];
  };
  return [
    ...of('owed', 'get their config as soon as they can', ({ owed }) => owed !== ''),
    ...of('not whole', 'are not back on a good config, and count as unavailable', ({ restored }) => !restored),
    ...of('unfit', 'keep what they have, for the committed state does not fit them', ({ unfit }) => unfit),
    ...of('drifted', 'differ from their config', ({ drifted }) => drifted.length > 0),
  ];
}

const good = (what: string, detail: string): Check => ({ what, state: 'good', detail, todo: '' });
const bad = (what: string, detail: string, todo: string): Check => ({ what, state: 'bad', detail, todo });
const few = (names: readonly string[]): string =>
  `${names.slice(0, 10).join(', ')}${names.length > 10 ? `, and ${names.length - 10} more` : ''}`;
