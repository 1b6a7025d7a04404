import { randomInt } from 'node:crypto';
import { statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { isNodeName, LACKS_XATTRS } from '#libs/contracts';
import { ApplierRun, SILENT, start, type Kinds, type Log, type Notice, type Settings } from '../core/index.js';
import { changesNetwork, elementsOf, nodeNetwork, type NodeNetwork } from './backends/network/node-network.js';
import type { NetworkSettings } from './backends/network/tools.js';
import { Aliases } from './backends/paths/aliases.js';
import { wayTo } from './backends/paths/rooted-path.js';
import { BACKENDS } from './backends/registry.js';
import { bootClock, bootId } from './boot.js';
import { BusPort, type BusSource } from './bus-port.js';
import { NO_GUARD, ProcessGuard, type Guard } from './guard/guard.js';
import { fileCalls } from './file-calls.js';
import { findHost, type HostSettings } from './host/host.js';
import { Performer } from './performer.js';
import type { Backend, Clock, StatePlace, Surroundings } from './ports.js';
import { BUS_PROBE, controlPlane } from './probes/control-plane.js';
import { EMPTY_HASH } from './state/config-text.js';
import { readHang } from './state/hang-file.js';
import { StateFolder } from './state/state-folder.js';

/** One applier: which node, where, and on which bus. */
export interface ApplierOptions {
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  /** What File paths are below; default `/`. */
  readonly root?: string;
  /** Its journal; one folder per applier. */
  readonly stateDir: string;
  /** Nothing on the node serves yet, an operator says so. */
  readonly fresh?: boolean;
  /** Whether fragments of kind Exec and probes of type exec may run commands here. */
  readonly allowExec?: boolean;
  /** Whether files may have setuid, setgid or capabilities here. */
  readonly allowSetuid?: boolean;
  /**
   * A connection, which its owner closes, or how to make one, which the applier closes. It is made when it is needed
   * first.
   */
  readonly bus: BusSource;
  /** Programs and folders of the machine. */
  readonly host?: HostSettings;
  /** Whether and where it sets up a network; by default that of the machine, if the root is its own. */
  readonly network?: NetworkSettings | false;
  /** Where the bus is, as URLs. */
  readonly servers?: readonly string[];
  /**
   * What else must still be reached after a change of the network, as host:port; false: not even the bus and the
   * gateway.
   */
  readonly reach?: readonly string[] | false;
  /** What runs `runGuard` with `ID FILE` as its last word; by default this applier's own program. */
  readonly guardCommand?: readonly string[];
  /** The guard of its process, where other appliers share it; by default one of its own. */
  readonly guard?: ProcessGuard;
  /** It rolls back in place of another one, and an applier that starts meanwhile waits for it. */
  readonly asGuard?: boolean;
  readonly log?: Log;
  readonly version?: string;
  readonly heartbeatMs?: number;
  readonly driftCheckMs?: number;
  readonly readEveryMs?: number;
  /** From 0 to below 1. */
  readonly random?: () => number;
  /** Milliseconds of CLOCK_BOOTTIME, and the boot that they belong to. */
  readonly clock?: Clock;
  readonly bootId?: string;
}

export interface RunningApplier {
  readonly node: string;
  /** Announces the node with these labels. */
  relabel(labels: Readonly<Record<string, string>>): void;
  /** Ends within seconds; what is unfinished is ended by the next start. */
  stop(): Promise<void>;
}

const HEARTBEAT_MS = 10_000;
const DRIFT_CHECK_MS = 60_000;
const READ_EVERY_MS = 60_000;
/** A step under way is waited for that long; `sluice up` promises to end within 10 s. */
const STOP_MS = 5_000;
/**
 * As with the state folder: a machine whose disk is new has neither yet, and a node without a root would fail every
 * change.
 */
async function makeRoot(root: string): Promise<void> {
  try {
    await mkdir(root, { recursive: true });
  } catch (error) {
    throw new Error(`the root ${root} cannot be used: ${(error as Error).message}; name a folder with --root`, {
      cause: error,
    });
  }
}

/**
 * Starts an applier. Throws StateError when its state folder cannot be used, and TypeError for a bad name; nothing else
 * stops it.
 */
export async function runApplier(options: ApplierOptions): Promise<RunningApplier> {
  const { node, log = SILENT, random = secureRandom, allowExec = false, clock = bootClock } = options;
  if (!isNodeName(node))
    throw new TypeError(`${JSON.stringify(node)} is not the name of a node: it must be a DNS subdomain in lower case`);
  await makeRoot(options.root ?? '/');
  const state = await StateFolder.open(options.stateDir, options.asGuard);
  try {
    const { journal, fellBack } = await state.readJournal(node, EMPTY_HASH);
    if (fellBack !== undefined)
      log.warn({ node, reason: fellBack }, 'the journal is damaged; continuing from the previous one');
    const ending = new AbortController();
    const root = options.root ?? '/';
    const host = await findHost(options.host ?? {}, root, ending.signal);
    const boot = options.bootId ?? bootId();
    const aliases = await Aliases.of(root);
    const surroundings: Surroundings = {
      root,
      contents: state.contents,
      bootId: boot,
      allowExec,
      allowSetuid: options.allowSetuid ?? false,
      aliases,
      stateFolder: await placeOf(options.stateDir, root),
      host,
      ending: ending.signal,
    };
    warnWithoutXattrs(log, node);
    const network = await networkFor(options);
    const backends = new Map(
      [...network.backends, ...BACKENDS.flatMap((factory) => factory.create(surroundings) ?? [])].map((backend) => [
        backend.kind,
        backend,
      ]),
    );
    const settings: Settings = {
      kinds: kindsOf(
        backends,
        network,
        options.reach === false ? [] : controlPlane(options.servers ?? [], options.reach ?? []),
      ),
      emptyHash: EMPTY_HASH,
      readEveryMs: options.readEveryMs ?? READ_EVERY_MS,
      driftCheckMs: options.driftCheckMs ?? DRIFT_CHECK_MS,
    };
    const self = {
      labels: options.labels,
      capabilities: [
        ...capabilitiesOf(surroundings),
        ...network.capabilities,
        ...aliases.words,
        ...lackingWords(),
      ].sort(),
      version: options.version ?? '',
      fresh: options.fresh ?? false,
    };
    const outside = {
      bootId: boot,
      nowMs: clock(),
      random: Math.floor(random() * 2 ** 32),
      hang: await readHang(options.stateDir),
    };
    const bus = new BusPort(options.bus, (notice: Notice) => applier.hear(notice));
    const performer = new Performer(
      state,
      bus,
      backends,
      { ...surroundings, guard: guardOf(options, clock, log) },
      clock,
      log,
    );
    const own = { ...journal, originals: aliases.rekeyed(journal.originals) };
    const applier = new ApplierRun(start(settings, self, own, outside), clock, log, () => performer.wake());
    const running = performer.run(applier).finally(() => state.close());
    const stopHeartbeat = beat(bus, applier, options.heartbeatMs ?? HEARTBEAT_MS, random);
    return {
      node,
      relabel: (labels) => applier.hear({ heard: 'self', labels, capabilities: self.capabilities }),
      stop: async () => {
        stopHeartbeat();
        applier.stop();
        ending.abort();
        await soon(running);
        await bus.close();
      },
    };
  } catch (error) {
    await state.close();
    throw error;
  }
}

/** What a node with these settings can do, as it announces it. */
const capabilitiesOf = (surroundings: Surroundings): readonly string[] =>
  [
    ...BACKENDS.flatMap((factory) => factory.capabilities(surroundings)),
    ...surroundings.host.capabilities,
    'kind:Probe',
    ...(surroundings.allowExec ? ['probe:exec'] : []),
  ].sort();

/** Where a folder is, for who reaches it by another path. The root is found by what it is: its name may be another. */
async function placeOf(folder: string, root: string): Promise<StatePlace> {
  const [identity, top] = [identityOf(folder), identityOf(root)];
  const text = resolve(folder);
  let above = text;
  while (identityOf(above) !== top && above !== dirname(above)) above = dirname(above);
  if (identityOf(above) !== top || above === text) return { identity, path: undefined };
  const inside = `/${relative(above, text)}`;
  const way = await wayTo(root, inside).catch(() => undefined);
  if (way !== undefined && 'parent' in way) way.parent.close();
  return { identity, path: way?.real ?? inside };
}

function identityOf(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  return `${dev}:${ino}`;
}

function warnWithoutXattrs(log: Log, node: string): void {
  const calls = fileCalls();
  if (typeof calls === 'string')
    log.warn(
      { node, reason: calls },
      'extended attributes and ACLs cannot be read: files lose them when they are replaced',
    );
}

const lackingWords = (): readonly string[] => (typeof fileCalls() === 'string' ? [LACKS_XATTRS] : []);

/** A root of its own is a node of its own: the machine's network is not its business. */
const networkOf = ({ root = '/', network }: ApplierOptions): NetworkSettings | false =>
  network ?? (root === '/' ? {} : false);

function networkFor(options: ApplierOptions): Promise<NodeNetwork> {
  const settings = networkOf(options);
  return settings === false ? Promise.resolve(NO_NETWORK) : nodeNetwork(settings, options.stateDir);
}

function guardOf(options: ApplierOptions, clock: Clock, log: Log): Guard {
  const { node, root = '/', stateDir, host, guardCommand } = options;
  if (options.asGuard === true) return NO_GUARD;
  const guard = options.guard ?? processGuard(join(stateDir, WATCH), guardCommand, clock, log);
  return guard.of({ node, root, stateDir, network: networkOf(options), host });
}

/** What a process and its guard share, in the state folder of a node that has a process of its own. */
const WATCH = 'guard';

/** A guard is this program once more; `main.js` starts it. */
const processGuard = (file: string, command: readonly string[] | undefined, clock: Clock, log: Log): ProcessGuard =>
  new ProcessGuard({
    file,
    command: command ?? [process.execPath, join(__dirname, '..', 'main.js'), '--guard'],
    clock,
    log,
  });

const NO_NETWORK: NodeNetwork = { capabilities: [], backends: [] };

const kindsOf = (
  backends: ReadonlyMap<string, Backend>,
  network: NodeNetwork,
  probes: Kinds['controlPlane'],
): Kinds => ({
  order: [...backends.keys()],
  entries: network.backends.length === 0 ? (config) => config.fragments : elementsOf,
  forgotten: network.backends.map(({ kind }) => kind),
  snapshots: [...backends.values()].filter(({ snapshot }) => snapshot !== undefined).map(({ kind }) => kind),
  mayCutOff: network.backends.length === 0 ? () => false : changesNetwork,
  controlPlane: network.backends.length === 0 ? [] : probes,
  controlPlaneBefore: network.backends.length === 0 ? [] : probes.filter(({ name }) => name !== BUS_PROBE),
  resources: (entry) => backends.get(entry.kind)?.resources(entry) ?? [],
});

/** How soon the first heartbeat is tried, and tried again until it is sent. */
const FIRST_BEAT_MS = 1_000;

/**
 * The first beat comes soon: a node that restarts again and again would otherwise never live long enough to send one,
 * and be silent. The times of the first two are left to chance, so that a thousand that start together do not beat
 * together.
 */
function beat(bus: BusPort, applier: ApplierRun, ownMs: number, random: () => number): () => void {
  const firstMs = Math.min(FIRST_BEAT_MS, ownMs);
  let isFirst = true;
  let timer = setTimeout(tick, random() * firstMs);
  function tick(): void {
    const { node, incarnation, nonce } = applier.journal;
    const { pacedMs } = bus;
    const everyMs = Math.max(ownMs, pacedMs);
    const isSent = incarnation > 0 && bus.alive({ node, incarnation, nonce, everyMs, pacedMs });
    timer = setTimeout(tick, isFirst ? (isSent ? random() * everyMs : firstMs) : everyMs);
    if (isSent) isFirst = false;
  }
  return () => clearTimeout(timer);
}

async function soon(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([work, new Promise<void>((resolve) => (timer = setTimeout(resolve, STOP_MS)))]);
  clearTimeout(timer);
}

const secureRandom = (): number => randomInt(2 ** 32) / 2 ** 32;

/** Many appliers in one process. */
export interface RunningAppliers {
  readonly appliers: readonly RunningApplier[];
  /** Those whose state folder cannot be used, and why; the others run. */
  readonly refused: readonly { readonly node: string; readonly error: Error }[];
  stop(): Promise<void>;
}

/** So many start at a time: each reads its journal, and a thousand at once would need as many open files. */
const AT_A_TIME = 32;

/**
 * Starts many appliers, with one guard for all; give each a bus of its own on one shared connection. The process and
 * its guard share `watchFile`.
 */
export async function runAppliers(all: readonly ApplierOptions[], watchFile: string): Promise<RunningAppliers> {
  const [{ guardCommand, clock = bootClock, log = SILENT } = {}] = all;
  const guard = processGuard(watchFile, guardCommand, clock, log);
  const many = all.map((options) => ({ ...options, guard }));
  const appliers: RunningApplier[] = [];
  const refused: { node: string; error: Error }[] = [];
  for (let i = 0; i < many.length; i += AT_A_TIME) {
    await Promise.all(
      many.slice(i, i + AT_A_TIME).map(async (options) => {
        try {
          appliers.push(await runApplier(options));
        } catch (error) {
          options.log?.error({ node: options.node, error: (error as Error).message }, 'the applier cannot start');
          refused.push({ node: options.node, error: error as Error });
        }
      }),
    );
  }
  return { appliers, refused, stop: async () => void (await Promise.all(appliers.map((applier) => applier.stop()))) };
}
