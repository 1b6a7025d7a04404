import { randomInt } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isNodeName, LACKS_XATTRS } from '#libs/contracts';
import { ApplierRun, SILENT, start, type Kinds, type Log, type Notice, type Settings } from '../core/index.js';
import { changesNetwork, elementsOf, nodeNetwork, type NodeNetwork } from './backends/network/node-network.js';
import type { NetworkSettings } from './backends/network/tools.js';
import { Aliases } from './backends/paths/aliases.js';
import { ProbeNetworks } from './probes/probe-networks.js';
import { statePlaceOf } from './backends/paths/state-place.js';
import { BACKENDS } from './backends/registry.js';
import { bootClock, bootId } from './boot.js';
import { BusPort, type BusSource } from './bus-port.js';
import { NO_GUARD, ProcessGuard, type Guard } from './guard/guard.js';
import { fileCalls } from './file-calls.js';
import { sendHeartbeats } from './heartbeats.js';
import { findHost, type HostSettings } from './host/host.js';
import { FileSystems } from './backends/paths/file-systems.js';
import { look } from './look.js';
import { machineSite } from './machine-site.js';
import { Performer } from './performer.js';
import type { Backend, Clock, Surroundings } from './ports.js';
import { BUS_PROBE, controlPlane } from './probes/control-plane.js';
import { EMPTY_HASH } from './state/config-text.js';
import { readHang } from './state/hang-file.js';
import { StateFolder } from './state/state-folder.js';

/** One applier: its node, its folders and its bus. */
export interface ApplierOptions {
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The root of File paths; default `/`. */
  readonly root?: string;
  /** The folder of its journal. Each applier has its own. */
  readonly stateDir: string;
  /** An operator declared that nothing on the node is in use yet. */
  readonly fresh?: boolean;
  /** Whether fragments of kind Exec and probes of type exec may run commands here. */
  readonly allowExec?: boolean;
  /** Whether files may have setuid, setgid or capabilities here. */
  readonly allowSetuid?: boolean;
  /** Networks that tcp and http probes may reach, such as `10.0.0.0/8`; all but link-local ones if absent or empty. */
  readonly probeNetworks?: readonly string[];
  /**
   * A connection, which its owner closes, or a function that makes one, which the applier closes. It connects when it
   * first needs to.
   */
  readonly bus: BusSource;
  /** Programs and folders of the machine. */
  readonly host?: HostSettings;
  /** Whether and where it configures a network. Default: the machine's network, if the root is the machine's own. */
  readonly network?: NetworkSettings | false;
  /** The URLs of the NATS servers. */
  readonly servers?: readonly string[];
  /**
   * Further addresses that must be reachable after a change of the network, as host:port; false: not even NATS and the
   * gateway are checked.
   */
  readonly reach?: readonly string[] | false;
  /** The command that runs `runGuard` with `ID FILE` as its last argument. Default: this applier's own program. */
  readonly guardCommand?: readonly string[];
  /** The guard of the process, if other appliers share it. Default: its own guard. */
  readonly guard?: ProcessGuard;
  /** It rolls back in place of another applier, and an applier that starts during that waits for it. */
  readonly asGuard?: boolean;
  readonly log?: Log;
  readonly version?: string;
  readonly heartbeatMs?: number;
  readonly driftCheckMs?: number;
  readonly readEveryMs?: number;
  /** At least 0 and below 1. */
  readonly random?: () => number;
  /** Milliseconds of CLOCK_BOOTTIME, and the boot to which they belong. */
  readonly clock?: Clock;
  readonly bootId?: string;
}

export interface RunningApplier {
  readonly node: string;
  /** Announces the node with these labels. */
  relabel(labels: Readonly<Record<string, string>>): void;
  /** Ends within seconds. The next start continues unfinished work. */
  stop(): Promise<void>;
}

const HEARTBEAT_MS = 10_000;
const DRIFT_CHECK_MS = 60_000;
const READ_EVERY_MS = 60_000;
/** How long to wait for the current step. `sluice up` promises to end within 10 s. */
const STOP_MS = 5_000;
/**
 * A misspelt root, or a disk that is not mounted yet, must not become an empty folder that gets all files and that
 * nobody uses.
 */
async function requireRoot(root: string): Promise<void> {
  const wayOut = 'check --root (or SLUICE_ROOT), or create the folder first';
  try {
    if (!(await stat(root)).isDirectory()) throw new Error('it is not a folder');
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const why = isMissing ? 'it does not exist' : (error as Error).message;
    throw new Error(`the root ${root} cannot be used: ${why}: ${wayOut}`, { cause: error });
  }
}

/**
 * Starts an applier. Throws StateError if its state folder cannot be used, and TypeError for a bad name. Nothing else
 * stops it.
 */
export async function runApplier(options: ApplierOptions): Promise<RunningApplier> {
  const { node, log = SILENT, random = secureRandom, allowExec = false, clock = bootClock } = options;
  if (!isNodeName(node))
    throw new TypeError(`${JSON.stringify(node)} is not the name of a node: it must be a DNS subdomain in lower case`);
  await requireRoot(options.root ?? '/');
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
      probeNetworks: new ProbeNetworks(options.probeNetworks),
      aliases,
      stateFolder: statePlaceOf(options.stateDir),
      fileSystems: new FileSystems(root),
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
      isGuard: options.asGuard ?? false,
      ownUnit: host.ownUnit,
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
      hang: readHang(options.stateDir),
    };
    const bus = new BusPort(
      options.bus,
      (notice: Notice) => applier.hear(notice),
      (query) => look(query, { applier, storage: state, resources: site.resources, surroundings }),
    );
    const guard = guardOf(options, clock, log);
    const site = machineSite({ storage: state, backends, surroundings, guard, bus, clock, log });
    const performer = new Performer(state, bus, site, clock, log);
    const own = { ...journal, originals: aliases.rekeyed(journal.originals) };
    const applier = new ApplierRun(start(settings, self, own, outside), clock, log, () => performer.wake());
    const running = performer.run(applier).finally(() => state.close());
    const stopHeartbeat = sendHeartbeats(bus, applier, { ownMs: options.heartbeatMs ?? HEARTBEAT_MS, random });
    return {
      node,
      relabel: (labels) => applier.hear({ kind: 'self', labels, capabilities: self.capabilities }),
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

/** What a node with these settings can do, for its announcement. */
const capabilitiesOf = (surroundings: Surroundings): readonly string[] =>
  [
    ...BACKENDS.flatMap((factory) => factory.capabilities(surroundings)),
    ...surroundings.host.capabilities,
    'kind:Probe',
    ...(surroundings.allowExec ? ['probe:exec'] : []),
  ].sort();

function warnWithoutXattrs(log: Log, node: string): void {
  const calls = fileCalls();
  if (typeof calls === 'string')
    log.warn(
      { node, reason: calls },
      'extended attributes and ACLs cannot be read: files lose them when they are replaced',
    );
}

const lackingWords = (): readonly string[] => (typeof fileCalls() === 'string' ? [LACKS_XATTRS] : []);

/** A node with a separate root must not change the machine's network. */
const networkOf = ({ root = '/', network }: ApplierOptions): NetworkSettings | false =>
  network ?? (root === '/' ? {} : false);

function networkFor(options: ApplierOptions): Promise<NodeNetwork> {
  const settings = networkOf(options);
  return settings === false ? Promise.resolve(NO_NETWORK) : nodeNetwork(settings, options.stateDir);
}

function guardOf(options: ApplierOptions, clock: Clock, log: Log): Guard {
  const { node, root = '/', stateDir, host, guardCommand, allowExec = false, allowSetuid = false } = options;
  if (options.asGuard === true) return NO_GUARD;
  const guard = options.guard ?? processGuard(join(stateDir, WATCH), guardCommand, clock, log);
  return guard.of({ node, root, stateDir, network: networkOf(options), host, allowExec, allowSetuid });
}

/** The file that a process and its guard share, in the state folder of a node that has its own process. */
const WATCH = 'guard';

/** A guard is this program again; `main.js` starts it. */
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
  independent: [...backends.values()].filter(({ isIndependent }) => isIndependent).map(({ kind }) => kind),
  mayCutOff: network.backends.length === 0 ? () => false : changesNetwork,
  controlPlane: network.backends.length === 0 ? [] : probes,
  controlPlaneBefore: network.backends.length === 0 ? [] : probes.filter(({ name }) => name !== BUS_PROBE),
  resources: (entry) => backends.get(entry.kind)?.resources(entry) ?? [],
});

async function soon(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([work, new Promise<void>((resolve) => (timer = setTimeout(resolve, STOP_MS)))]);
  clearTimeout(timer);
}

const secureRandom = (): number => randomInt(2 ** 32) / 2 ** 32;

/** Many appliers in one process. */
export interface RunningAppliers {
  readonly appliers: readonly RunningApplier[];
  /** Those whose state folder cannot be used, and why. The others run. */
  readonly refused: readonly { readonly node: string; readonly error: Error }[];
  stop(): Promise<void>;
}

/** How many start at a time. Each reads its journal, and a thousand at once would need that many open files. */
const AT_A_TIME = 32;

/**
 * Starts many appliers with one guard for all. Give each its own bus on one shared connection. The process and its
 * guard share `watchFile`.
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
