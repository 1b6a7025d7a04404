import { REMOTE_APPLIER } from '#libs/contracts';
import { ApplierRun, start, type Kinds, type Log, type Notice, type Self, type Settings } from '../../core/index.js';
import { BusPort, type BusSource } from '../bus-port.js';
import { sendHeartbeats } from '../heartbeats.js';
import { Performer } from '../performer.js';
import type { Clock } from '../ports.js';
import type { Site } from '../site.js';
import { EMPTY_HASH } from '../state/config-text.js';
import type { OnReachChange, Reach } from './reach.js';
import { BindingReader, type ObjectSource, type ValueBucket } from './binding-reader.js';
import type { WantedFields } from './binding-feed.js';
import { TargetStorage, type JournalBucket } from './target-storage.js';

/** A target elsewhere, as its kind (a network function, a cluster) makes it. */
export interface Target {
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  /** All settings but its labels, as text: if it differs, the target is opened again. */
  readonly settings: string;
  /** What it can do, without the capabilities that all targets have. */
  readonly capabilities: readonly string[];
  readonly kinds: Kinds;
  /** How long one step of a rollback may take there. Default: 30 seconds. */
  readonly rollbackStepMs?: number;
  /** Whatever is done there may be done again, so that another copy need not wait for the end of a lease. */
  readonly isRepeatable?: boolean;
  /**
   * Why the inventory knows that it cannot be used now. It then does not join, or its reports say so and it gets no
   * lease. It also sends no heartbeat, so it becomes silent. What it has begun, it finishes.
   */
  readonly unavailable?: string | undefined;
  /**
   * Connects. Calls `onChange` whenever the target begins or ceases to answer, and `onDrift` when something on it may
   * have been changed by hand.
   */
  open(storage: TargetStorage, onChange: OnReachChange, onDrift: () => void): Promise<OpenTarget>;
}

export interface OpenTarget {
  readonly site: Site;
  readonly reach: Reach;
  /** Objects that bindings may refer to. Undefined if this kind of target has none. */
  readonly objects?: ObjectSource;
  /** What it does now, and why that takes so long; empty if there is nothing to say. */
  explain?(): Promise<string>;
  /** Ends a step that may take long. The applier is being stopped. */
  interrupt?(): void;
  close(): Promise<void>;
}

export interface TargetOptions {
  readonly target: Target;
  readonly bus: BusSource;
  readonly journals: JournalBucket;
  /** Undefined: bindings are not read. */
  readonly bindings?: { readonly wanted: WantedFields; readonly bucket: ValueBucket };
  /** Identifies this copy, and no earlier run of it. */
  readonly owner: string;
  /** The folder for configs. Other targets of this copy share it. */
  readonly folder: string;
  /** The time of the NATS server. */
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly version: string;
  readonly heartbeatMs: number;
  readonly driftCheckMs: number;
  readonly readEveryMs: number;
  /** Ends the wait for another copy. */
  readonly ending: AbortSignal;
  /** Waits. Default: in real time, until `ending`. */
  readonly sleep?: (ms: number) => Promise<void>;
  /** Why it does not join, which the caller then logs; undefined as soon as it does. */
  readonly onTrouble?: (reason: string | undefined) => void;
  /** Another copy has taken over, and this one has stopped. */
  readonly onLost: () => void;
}

export interface RunningTarget {
  readonly node: string;
  /** Resolves when it is known whether the target answers. */
  readonly looked: Promise<unknown>;
  relabel(labels: Readonly<Record<string, string>>): void;
  /** Why it cannot be used now; undefined if it can. */
  setUnavailable(reason: string | undefined): void;
  /**
   * Stops, and hands the target over to the next owner. A lease that has begun is finished, or rolled back, before:
   * another copy could do that only after its deadline. Not if `atOnce` is aborted.
   */
  stop(atOnce: AbortSignal): Promise<void>;
}

/** The times in a journal are those of the NATS server, whichever copy has written them: they never start over. */
const BOOT = 'nats-server';

/** Claims a target and runs its applier here, until it is stopped or another copy takes over. */
export async function runTarget(options: TargetOptions): Promise<RunningTarget> {
  const { target, clock, log, random, ending } = options;
  const { node } = target;
  const storage = await TargetStorage.claim({
    node,
    bucket: options.journals,
    owner: options.owner,
    isRepeatable: target.isRepeatable,
    folder: options.folder,
    clock,
    sleep: options.sleep ?? ((ms) => sleep(ms, ending)),
    onLost: () => {
      log.warn({ node }, 'another copy has taken over this target; stopping');
      applier.stop();
      options.onLost();
    },
  });
  let { unavailable } = target;
  /** Why it does not answer; undefined if it does, or was not asked yet. */
  let noAnswer: string | undefined;
  let running: Promise<void> | undefined;
  const onReach: OnReachChange = (answers, reason) => {
    noAnswer = answers ? undefined : (reason ?? '');
    tell();
    if (!answers && running === undefined && options.onTrouble !== undefined) return options.onTrouble(reason);
    if (!answers) return log.warn({ node, reason }, 'the target cannot be used; asking again');
    log.info({ node }, 'the target answers again');
    reader?.soon();
  };
  /** Its reports say from now on whether it can be used. There are none before it is opened. */
  let tell = (): void => undefined;
  let reader: BindingReader | undefined;
  const opened = await target.open(storage, onReach, () => applier.hear({ kind: 'changed' }));
  const settings = settingsOf(options);
  const self = selfOf(options);
  const outside = { bootId: BOOT, nowMs: clock(), random: Math.floor(random() * 2 ** 32) };
  const bus = new BusPort(
    options.bus,
    (notice: Notice) => applier.hear(notice),
    () => Promise.resolve({ found: [], busy: false }),
    () => opened.explain?.() ?? Promise.resolve(''),
  );
  const performer = new Performer(storage, bus, opened.site, clock, log);
  const applier = new ApplierRun(start(settings, self, storage.journal, outside), clock, log, () => performer.wake());
  const stopReading = readBindings(options, opened, (made) => (reader = made));
  const begin = (): void => {
    if (running === undefined) options.onTrouble?.(undefined);
    running ??= performer.run(applier);
  };
  tell = () => {
    const reason = unavailable ?? noAnswer;
    if (reason !== undefined) return applier.hear({ kind: 'unavailable', reason });
    begin();
    applier.hear({ kind: 'answers' });
  };
  if ((unavailable ?? noAnswer) !== undefined) tell();
  // One that never answered does not join: its address may be wrong. Any other may have work to finish.
  if (storage.journal.incarnation > 0) begin();
  const stopHeartbeats = sendHeartbeats(bus, applier, {
    ownMs: options.heartbeatMs,
    random,
    isAlive: () => opened.reach.answers && unavailable === undefined,
  });
  const looked = opened.reach.look().then((answers) => {
    if (!answers || unavailable !== undefined) return;
    begin();
    // The last report is that of an earlier owner, or of before a restart.
    if (applier.journal.report?.unavailable !== undefined) applier.hear({ kind: 'answers' });
  });
  return {
    node,
    looked,
    relabel: (labels) => applier.hear({ kind: 'self', labels, capabilities: self.capabilities }),
    setUnavailable: (reason) => {
      if (reason === unavailable) return;
      const was = unavailable;
      unavailable = reason;
      tell();
      if (reason !== undefined) return log.warn({ node, reason }, 'the target is unavailable');
      log.info({ node, was }, 'the target is available again');
    },
    stop: async (atOnce) => {
      const halt = (): void => {
        applier.stop();
        opened.interrupt?.();
      };
      atOnce.addEventListener('abort', halt);
      if (atOnce.aborted) halt();
      else applier.retire();
      await running;
      atOnce.removeEventListener('abort', halt);
      stopHeartbeats();
      options.onTrouble?.(undefined);
      stopReading();
      opened.reach.stop();
      await storage
        .handOver(applier.journal)
        .catch((error: Error) => log.warn({ node, error: error.message }, 'the target could not be handed over'));
      await opened.close();
      await bus.close();
    },
  };
}

function selfOf({ target, version }: TargetOptions): Self {
  const capabilities = [...target.capabilities, REMOTE_APPLIER].sort();
  return { labels: target.labels, capabilities, version, fresh: false };
}

function settingsOf(options: TargetOptions): Settings {
  const { target } = options;
  return {
    kinds: target.kinds,
    emptyHash: EMPTY_HASH,
    readEveryMs: options.readEveryMs,
    driftCheckMs: options.driftCheckMs,
    rollbackStepMs: target.rollbackStepMs,
    isGuard: false,
  };
}

/** Reads what the bindings of the node refer to, until the returned function is called. */
function readBindings(
  { target: { node }, bindings, log }: TargetOptions,
  { objects }: OpenTarget,
  take: (reader: BindingReader) => void,
): () => void {
  if (bindings === undefined || objects === undefined) return () => objects?.stop();
  const reader = new BindingReader({ node, objects, bucket: bindings.bucket, log });
  take(reader);
  const forget = bindings.wanted.listen(node, (fields) => reader.want(fields));
  return () => {
    forget();
    reader.stop();
  };
}

/** Rejects when the signal aborts. */
function sleep(ms: number, ending: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(new Error('the applier was stopped'));
    };
    if (ending.aborted) return void reject(new Error('the applier was stopped'));
    const timer = setTimeout(() => {
      ending.removeEventListener('abort', end);
      resolve();
    }, ms);
    ending.addEventListener('abort', end, { once: true });
  });
}
