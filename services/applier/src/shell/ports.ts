import { durationMs } from '#libs/manifests/lean';
import { withoutPath, type Config, type ConfigEntry } from '#libs/contracts';
import type { Item, Journal, Json, Original, Originals, Outcomes, Refusal } from '../core/index.js';
import type { FileSystems } from './backends/paths/file-systems.js';
import type { Host } from './host/host.js';
import type { ProbeNetworks } from './probes/probe-networks.js';
import type { OriginalStore } from './state/original-store.js';

/** What a backend may use. Each applier has its own. */
export interface Surroundings {
  /** No path of a config leads outside this folder. */
  readonly root: string;
  readonly contents: OriginalStore;
  /** Changes with each boot. */
  readonly bootId: string;
  readonly allowExec: boolean;
  /** Whether files may have setuid, setgid or capabilities. */
  readonly allowSetuid: boolean;
  readonly probeNetworks: ProbeNetworks;
  readonly aliases: PathKeys;
  readonly stateFolder: StatePlace;
  readonly fileSystems: FileSystems;
  /** Everything on the machine except files. */
  readonly host: Host;
  /** Ends running commands when the applier is stopped. */
  readonly ending: AbortSignal;
}

/** Keys of resources that are paths. All paths that lead to one place have the same key. */
export interface PathKeys {
  /** With `follow`, a link at the end of the path is followed too. */
  key(path: unknown, follow?: boolean): string;
  /** Why the key of this path is no longer right; undefined if it is. */
  moved(path: unknown): Promise<string | undefined>;
}

/** The location of the applier's state, independent of the path by which it is reached. */
export interface StatePlace {
  /** `device:inode` of the state folder and of the folders in it. */
  readonly folders: ReadonlySet<string>;
  /** The symbolic links that lead to it: `device:inode` of the folder that has the link, and its name. */
  readonly links: ReadonlySet<string>;
}

/** What is known about a config while one of its entries is checked. */
export interface CheckContext {
  readonly config: Config;
  /** The config in force. */
  readonly from: Config;
  /** Resources that Sluice already manages. Their originals are saved, so anything may replace them. */
  readonly taken: ReadonlySet<string>;
  /** The places to which the paths of the checked entries lead. */
  readonly places: Map<string, ManagedPlace>;
  /** The remaining time. A check that waits for a program ends with an error when it is over. */
  readonly leftMs: () => number;
  /** Ends the check, and the commands that it runs. */
  readonly ending?: AbortSignal;
}

/** A place that an entry manages. */
export interface ManagedPlace {
  /** The entry, as `Kind/name`. */
  readonly id: string;
  readonly path: string;
  /** A link on the way to it. */
  readonly link: string | undefined;
}

/** What is known while originals are saved. */
export interface SaveContext {
  /** The originals that were saved before. */
  readonly originals: Originals;
  /** The resources of all entries, and of the known originals. */
  readonly managed: ReadonlySet<string>;
  /** The remaining time. Saving a large file ends with an error when it is over. */
  readonly leftMs: () => number;
}

/** Everything the applier needs to know about one kind of fragment. Refuses by throwing Refused. */
export interface Backend {
  readonly kind: string;
  /** Whether its resources depend on nothing else in a config. */
  readonly isIndependent?: boolean;
  /** The resources that an entry manages. Empty if it cannot be rolled back. Pure. */
  resources(entry: ConfigEntry): readonly string[];
  /** The folder of a resource that is in a file, but whose key is not a path. Undefined if there is none. */
  folderOf?(key: string): Promise<string | undefined>;
  /** Throws Refused if this node cannot or may not apply the entry. Changes nothing. */
  check(entry: ConfigEntry, checked: CheckContext): Promise<void>;
  /** The current state of a resource of the entry, which `restore` restores. */
  original(key: string, entry: ConfigEntry, saving: SaveContext): Promise<Original>;
  /**
   * The state of its resources before a lease changes them. Only for kinds whose resources have more properties than
   * their entries.
   */
  snapshot?(entry: ConfigEntry, leftMs: () => number): Promise<Originals>;
  /**
   * Why a resource that no entry manages any more is not restored: what is there belongs to another one. Undefined if
   * it can be restored. Throws Refused if it cannot, for example because something is mounted there. Changes nothing.
   */
  whyShared?(key: string, original: Original, checked: CheckContext): Promise<string | undefined>;
  restore(key: string, original: Original): Promise<void>;
  /** How the resource differs from its original. Undefined if it does not. */
  differsFromOriginal(key: string, was: Json): Promise<string | undefined>;
  /**
   * Applies the entry unless that is already done. A slow backend asks for the remaining time before each of its parts.
   * `isRollback`: the entry was applied before, and what others have changed since is overwritten.
   */
  apply(entry: ConfigEntry, leftMs: () => number, isRollback?: boolean): Promise<void>;
  /**
   * Which of these entries are not ready yet, and why. Returns after a moment, or sooner if all are. Throws Refused if
   * one has failed. Only for kinds whose resources take time.
   */
  notReady?(entries: readonly ConfigEntry[], leftMs: () => number): Promise<readonly string[]>;
  /**
   * What another program has not done yet of its part of these items, and whether waiting for it is of no use. Returns
   * after a moment, or sooner. Only for kinds that another program carries out.
   */
  leftToOthers?(items: readonly Item[], leftMs: () => number): Promise<Outcomes['await-others']>;
  /** Whether `apply` would do nothing. Only for entries that cannot be restored. */
  isUnneeded?(entry: ConfigEntry, leftMs: () => number): Promise<boolean>;
  /** Undoes what `apply` did. Only for entries that cannot be restored. */
  undo?(entry: ConfigEntry, leftMs: () => number): Promise<void>;
  /**
   * Called before these entries are compared: what is known of them from before this time must not be used. Without
   * entries if only originals of the kind are compared. Only for kinds that remember what they have read.
   */
  forgetBefore?(entries: readonly ConfigEntry[], sinceMs: number): Promise<void>;
  /**
   * How the node differs from the entry. Undefined if it does not. A slow backend asks for the remaining time, and
   * `ending` ends the commands that it runs.
   */
  differs(entry: ConfigEntry, leftMs?: () => number, ending?: AbortSignal): Promise<string | undefined>;
  /** Whether the daemon that holds it was restarted since it was created, so that it is lost. */
  isForgotten?(entry: ConfigEntry): Promise<boolean>;
  /** The name of the entry for people: a path, or `Kind/name`. */
  title(entry: ConfigEntry): string;
  /** Nobody has written its entries, so messages do not name them. */
  readonly isInternal?: true;
}

/** A line in the registry of backends. */
export interface BackendFactory {
  /** The entries in `capabilities`. Empty if the settings of this node do not allow it. */
  capabilities(surroundings: Surroundings): readonly string[];
  /** Undefined if this machine lacks what it needs. */
  create(surroundings: Surroundings): Backend | undefined;
}

/** Where an applier keeps its journal and its configs. */
export interface Storage {
  /** Throws if it cannot be written. Then the previous journal still counts. */
  writeJournal(journal: Journal): Promise<void>;
  /** The config with this hash; undefined if it does not exist; a text that says why, if it cannot be used. */
  readConfig(hash: string): Promise<Config | string | undefined>;
  keepConfig(hash: string, text: string): Promise<void>;
  /** A config that the bucket `configs` does not have any more, but that was kept with the journal. */
  keptConfig?(hash: string): Promise<string | undefined>;
  /** Removes what nothing refers to any more. Returns what failed. No step depends on it. */
  tidy(configs: readonly string[], journal: Journal): Promise<readonly string[]>;
  /** Restores one item during a rollback. It may use what was set aside for that. */
  rollBackWith<T>(work: () => Promise<T>): Promise<T>;
}

/** Why something was not done. Any other error counts as the node's fault. */
export class RefusedError extends Error {
  override readonly name = 'Refused';
  constructor(
    readonly fault: Refusal['fault'],
    message: string,
  ) {
    super(message);
  }
}

/** The target does not answer, or not in time: nothing is known of what it did. */
export class UnreachableError extends RefusedError {
  constructor(message: string) {
    super('unreachable', message);
  }
}

/** The target answers, but not as it should, so what it has cannot be known either. */
export class BadAnswerError extends UnreachableError {}

/** A command could not be started, so it has changed nothing. */
export class NeverRanError extends Error {}

/** The milliseconds of a duration in a config, such as `5s`. Throws Refused if it is invalid. */
export function durationOr(otherwiseMs: number, value: unknown): number {
  if (value === undefined) return otherwiseMs;
  const ms = typeof value === 'string' ? durationMs(value) : undefined;
  if (ms === undefined) throw new RefusedError('content', `${JSON.stringify(value)} is not a duration such as 5s`);
  return ms;
}

/** The argv in this field of a spec. Throws Refused if it is invalid. */
export function argvOf(value: unknown, where: string): readonly string[] {
  const argv = (value as { readonly argv?: unknown } | undefined)?.argv;
  if (
    !Array.isArray(argv) ||
    argv.length === 0 ||
    argv[0] === '' ||
    !argv.every((text) => typeof text === 'string' && !text.includes('\0'))
  ) {
    throw new RefusedError('content', `${where}.argv must be a list of strings that begins with a program`);
  }
  return argv as readonly string[];
}

export const refusalOf = (error: unknown, where: string): Refusal => ({
  fault: error instanceof RefusedError ? error.fault : 'node',
  reason: reasonAt(where, error instanceof Error ? messageOf(error) : String(error)),
});

/** `where` is a path, ends with one in brackets, or names no path. The message may begin with that path. */
function reasonAt(where: string, message: string): string {
  if (where === '') return message;
  const path = where.startsWith('/') ? where : / \((\/.*)\)$/.exec(where)?.[1];
  return `${where}: ${path === undefined ? message : withoutPath(path, message)}`;
}

/** The path of an open folder, which is meaningless in a message. */
const OF_A_FOLDER = /, \w+ '\/proc\/self\/fd\/\d+\/[^']*'(?: -> '[^']*')?$/;

function messageOf(error: Error): string {
  const message = error.message.replace(OF_A_FOLDER, '');
  if ((error as NodeJS.ErrnoException).code !== 'EROFS') return message;
  return `${message} (if the applier runs as a systemd unit, check its ProtectSystem, ProtectHome and ReadWritePaths)`;
}

/** The time in milliseconds of CLOCK_BOOTTIME. */
export type Clock = () => number;
