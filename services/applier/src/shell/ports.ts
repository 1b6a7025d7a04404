import { durationMs } from '#libs/manifests/lean';
import type { Config, ConfigEntry } from '#libs/contracts';
import type { Json, Original, Originals, Refusal } from '../core/index.js';
import type { Host } from './host/host.js';
import type { OriginalStore } from './state/original-store.js';

/** What a backend may use. One per applier. */
export interface Surroundings {
  /** No path of a config leads outside of it. */
  readonly root: string;
  readonly contents: OriginalStore;
  /** Another one after each boot. */
  readonly bootId: string;
  readonly allowExec: boolean;
  /** Whether files may have setuid, setgid or capabilities. */
  readonly allowSetuid: boolean;
  readonly aliases: PathKeys;
  readonly stateFolder: StatePlace;
  /** The machine apart from its files. */
  readonly host: Host;
  /** Ends commands that still run when the applier is stopped. */
  readonly ending: AbortSignal;
}

/** The keys of resources that are paths, the same for all paths that lead to one place. */
export interface PathKeys {
  /** `follow`: also a link at the end of the path is followed. */
  key(path: unknown, follow?: boolean): string;
}

/** Where the applier keeps its state: `device:inode`, and the path if it is inside the root. */
export interface StatePlace {
  readonly identity: string;
  readonly path: string | undefined;
}

/** What is known about a config while one of its entries is checked. */
export interface CheckContext {
  readonly config: Config;
  /** Resources that Sluice manages already: their originals are kept, so they may be replaced by anything. */
  readonly taken: ReadonlySet<string>;
  /** Where the paths of the entries that were checked lead, by place. */
  readonly places: Map<string, { readonly id: string; readonly path: string }>;
}

/** Everything the applier has to know of one kind of fragment. Refuses by throwing Refused. */
export interface Backend {
  readonly kind: string;
  /** What an entry manages; pure; nothing for what cannot be undone. */
  resources(entry: ConfigEntry): readonly string[];
  /** Throws Refused when this node can or may not carry the entry out. Changes nothing. */
  check(entry: ConfigEntry, checked: CheckContext): Promise<void>;
  /** The present state of a resource of the entry, to which `restore` returns it. */
  original(key: string, known: Originals, entry: ConfigEntry): Promise<Original>;
  /** Its resources before a lease changes them; only for kinds that can tell more than their entries say. */
  snapshot?(entry: ConfigEntry): Promise<Originals>;
  restore(key: string, original: Original): Promise<void>;
  /** How the resource differs from its original; undefined when it does not. */
  differsFromOriginal(key: string, was: Json): Promise<string | undefined>;
  /** Makes it so, if it is not so already. What takes its time asks before each of its parts what time is left. */
  apply(entry: ConfigEntry, leftMs: () => number): Promise<void>;
  /** How the node differs from the entry; undefined when it does not. */
  differs(entry: ConfigEntry): Promise<string | undefined>;
  /** Whether what keeps it was restarted since it was made, and so has forgotten it. */
  isForgotten?(entry: ConfigEntry): Promise<boolean>;
  /** The entry's name for people: a path, or `Kind/name`. */
  title(entry: ConfigEntry): string;
}

/** A line in the registry of backends. */
export interface BackendFactory {
  /** Words for `capabilities`; none when the settings of this node do not allow it. */
  capabilities(surroundings: Surroundings): readonly string[];
  /** Undefined where this machine has not what it needs. */
  create(surroundings: Surroundings): Backend | undefined;
}

/** Why something was not done; anything else that is thrown is the node's fault. */
export class RefusedError extends Error {
  override readonly name = 'Refused';
  constructor(
    readonly fault: Refusal['fault'],
    message: string,
  ) {
    super(message);
  }
}

/** The milliseconds of a duration in a config, such as `5s`; throws Refused when it is none. */
export function durationOr(otherwiseMs: number, value: unknown): number {
  if (value === undefined) return otherwiseMs;
  const ms = typeof value === 'string' ? durationMs(value) : undefined;
  if (ms === undefined) throw new RefusedError('content', `${JSON.stringify(value)} is not a duration such as 5s`);
  return ms;
}

/** The argv at this place of a spec. Throws Refused when it is none. */
export function argvOf(value: unknown, where: string): readonly string[] {
  const argv = (value as { readonly argv?: unknown } | undefined)?.argv;
  if (
    !Array.isArray(argv) ||
    argv.length === 0 ||
    !argv.every((text) => typeof text === 'string' && !text.includes('\0'))
  ) {
    throw new RefusedError('content', `${where}.argv must be a list of strings`);
  }
  return argv as readonly string[];
}

export const refusalOf = (error: unknown, where: string): Refusal => ({
  fault: error instanceof RefusedError ? error.fault : 'node',
  reason: `${where === '' ? '' : `${where}: `}${error instanceof Error ? messageOf(error) : String(error)}`,
});

/** The path of an open folder says nothing to anybody. */
const OF_A_FOLDER = /, \w+ '\/proc\/self\/fd\/\d+\/[^']*'(?: -> '[^']*')?$/;

function messageOf(error: Error): string {
  const message = error.message.replace(OF_A_FOLDER, '');
  if ((error as NodeJS.ErrnoException).code !== 'EROFS') return message;
  return `${message} (if the applier runs as a systemd unit, check its ProtectSystem, ProtectHome and ReadWritePaths)`;
}

/** Milliseconds of CLOCK_BOOTTIME. */
export type Clock = () => number;
