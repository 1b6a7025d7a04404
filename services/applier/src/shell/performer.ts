import { isMissingStream } from '#libs/nats/lean';
import { assertNever } from '#libs/engine';
import type { Config } from '#libs/contracts';
import { wordsFor } from '#libs/manifests/lean';
import {
  UNREACHABLE,
  type ApplierRun,
  type Difference,
  type Item,
  type Journal,
  type Log,
  type Original,
  type Originals,
  type Outcome,
  type Outcomes,
  type Refusal,
  type Step,
  type StepOf,
} from '../core/index.js';
import type { BusPort } from './bus-port.js';
import { Actor } from './host/actor.js';
import type { Guard } from './guard/guard.js';
import { refusalOf, RefusedError, type Backend, type Clock, type Surroundings } from './ports.js';
import { checkProbe, runProbes } from './probes/run-probes.js';
import { parseConfig } from './state/config-text.js';
import type { StateFolder } from './state/state-folder.js';

/** How long the services of a new installation may take to create what appliers read. */
const NEW_MS = 60_000;

/** A step of a rollback that says no other time: thousands of files are read back in one. */
const LONGEST_STEP_MS = 300_000;

/** Carries out the steps of one applier on this machine. */
export class Performer {
  private readonly actor: Actor;
  /** Ends a `wait` that is under way. */
  wake = (): void => undefined;
  /** When it first found nothing to read; 0 once it has read something. */
  private newSinceMs: number | undefined;
  /** What was last logged of something that may last. */
  private readonly warned = new Map<string, string>();

  constructor(
    private readonly state: StateFolder,
    private readonly bus: BusPort,
    private readonly backends: ReadonlyMap<string, Backend>,
    private readonly surroundings: Surroundings & { readonly guard: Guard },
    private readonly clock: Clock,
    private readonly log: Log,
  ) {
    this.actor = new Actor(surroundings.host);
  }

  /** Carries out one step after the other until the applier is stopped. */
  async run(applier: ApplierRun): Promise<void> {
    const steps = applier.steps();
    for (let next = steps.next(); next.done !== true;) {
      const step = next.value;
      this.tellGuard(applier, step);
      const outcome = step.do === 'wait' ? this.wait(step.untilMs) : this.perform(step);
      next = steps.next(await outcome.catch((error: Error) => error));
    }
    // What was begun stays guarded: if no applier comes back in time, it is rolled back.
    if (applier.journal.work === undefined) this.surroundings.guard.release();
  }

  /** Until its deadline, the time of the whole change counts. A rollback takes its time, and each of its steps ends. */
  private tellGuard({ lease, journal: { work } }: ApplierRun, step: Step): void {
    const { guard } = this.surroundings;
    const nowMs = this.clock();
    if (lease === undefined) return guard.release();
    if (work === undefined || (work.phase !== 'rolling-back' && nowMs < work.rollBackAtMs)) return guard.feed(step.do);
    guard.feed(step.do, 'untilMs' in step ? step.untilMs : nowMs + LONGEST_STEP_MS);
  }

  private wait(untilMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.wake(), Math.max(1, untilMs - this.clock()));
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** The outcome of the step. */
  async perform(step: Exclude<Step, { do: 'wait' }>): Promise<Outcome | typeof UNREACHABLE> {
    switch (step.do) {
      case 'write-journal':
        return refused('', () => this.writeJournal(step.journal));
      case 'guard':
        return refused('guard', () => this.surroundings.guard.set(step.lease, step.atMs, step.applyMs));
      case 'load-config':
        return this.load(step.hash);
      case 'tidy':
        return this.tidy(step);
      case 'check':
        return this.check(step);
      case 'read-before':
        return this.readBefore(step);
      case 'snapshot':
        return this.snapshot(step);
      case 'run-probes':
        return runProbes(step.probes, this.surroundings, step.untilMs, this.clock);
      case 'apply':
        return this.apply(step);
      case 'restore':
        return this.restore(step);
      case 'act':
        return refused('', () => this.actor.act(step.action, step.items, Math.max(0, step.untilMs - this.clock())));
      case 'read-unit':
        return refused('', () => this.actor.readUnit(step.unit));
      case 'settle':
        return this.surroundings.host.systemd?.settled(Math.max(0, step.untilMs - this.clock()));
      case 'compare':
        return this.compare(step.items);
      case 'fetch-config':
      case 'read-status':
      case 'read-lease':
      case 'report':
        return this.ask(step);
      default:
        return assertNever(step);
    }
  }

  private async writeJournal(journal: Journal): Promise<void> {
    await this.state.writeJournal(journal);
    if (journal.work === undefined) this.surroundings.guard.release();
  }

  /** A config that cannot be used is as good as absent: it is fetched again. */
  private async load(hash: string): Promise<Config | undefined> {
    const config = await this.state.readConfig(hash);
    if (typeof config !== 'string') return config;
    this.warnOnce('load-config', config, 'a config in the state folder cannot be used; fetching it again');
    return undefined;
  }

  private async tidy({ configs, journal }: StepOf<'tidy'>): Promise<void> {
    const troubles = await this.state.tidy(configs, journal);
    this.warnOnce('tidy', troubles.join('; '), 'the state folder cannot be tidied; nothing else depends on it');
  }

  /** What lasts is logged once. */
  private warnOnce(about: string, error: string, message: string): void {
    if (this.warned.get(about) === error) return;
    this.warned.set(about, error);
    if (error !== '') this.log.warn({ error }, message);
  }

  private async ask(
    step: StepOf<'fetch-config' | 'read-status' | 'read-lease' | 'report'>,
  ): Promise<Outcome | typeof UNREACHABLE> {
    try {
      const answer = await this.asked(step);
      this.newSinceMs = 0;
      return answer;
    } catch (error) {
      if (!this.isNew(error))
        this.log.warn({ step: step.do, error: (error as Error).message }, 'NATS cannot be used; trying again');
      return UNREACHABLE;
    }
  }

  private asked(step: StepOf<'fetch-config' | 'read-status' | 'read-lease' | 'report'>): Promise<Outcome> {
    switch (step.do) {
      case 'fetch-config':
        return this.fetch(step);
      case 'read-status':
        return this.bus.call('status', (bus) => bus.status());
      case 'read-lease':
        return this.bus.call('lease', (bus) => bus.lease());
      case 'report':
        return this.bus.call('report', (bus) => bus.report({ ...step.report, at: new Date().toISOString() }));
    }
  }

  /**
   * Whether there is nothing to read because nobody has made it yet: that is logged once, and is no trouble unless it
   * lasts.
   */
  private isNew(error: unknown): boolean {
    if (!isMissingStream(error) || this.newSinceMs === 0) return false;
    if (this.newSinceMs === undefined)
      this.log.info({}, 'NATS has no streams yet; waiting for the services to create them');
    this.newSinceMs ??= this.clock();
    return this.clock() - this.newSinceMs < NEW_MS;
  }

  private async fetch({ hash, mustKeep }: StepOf<'fetch-config'>): Promise<Outcomes['fetch-config']> {
    const text = await this.bus.call('config', (bus) => bus.config(hash));
    if (text === undefined) return { fault: 'node', reason: `the bucket configs has no config ${hash} for this node` };
    const config = parseConfig(text, hash);
    if (typeof config === 'string') return { fault: 'node', reason: config };
    try {
      await this.state.keepConfig(hash, text);
    } catch (error) {
      const reason = `the config cannot be kept: ${(error as Error).message}`;
      if (mustKeep) return { fault: 'node', reason };
      this.warnOnce('keep-config', reason, 'a config cannot be kept in the state folder; going on from memory');
    }
    return config;
  }

  private async check({ config, entries, actions, taken }: StepOf<'check'>): Promise<readonly Refusal[]> {
    const refusals = [...(await this.actor.refusals(actions, config))];
    const checked = { config, taken: new Set(taken), places: new Map() };
    for (const entry of entries) {
      const refusal = await refused(wordsFor(entry), async () => {
        if (entry.kind === 'Probe') return checkProbe(entry, this.surroundings);
        return this.backendOf(entry.kind).check(entry, checked);
      });
      if (refusal !== undefined) refusals.push(refusal);
    }
    return refusals;
  }

  private async readBefore({ entries, known }: StepOf<'read-before'>): Promise<Originals | Refusal> {
    const originals: Record<string, Original> = {};
    for (const entry of entries) {
      const refusal = await refused(wordsFor(entry), async () => {
        const backend = this.backendOf(entry.kind);
        for (const key of backend.resources(entry)) {
          if (known[key] === undefined) originals[key] = await backend.original(key, known, entry);
        }
      });
      if (refusal !== undefined) return refusal;
    }
    return originals;
  }

  private async snapshot({ entries }: StepOf<'snapshot'>): Promise<Originals | Refusal> {
    const originals: Record<string, Original> = {};
    for (const entry of entries) {
      const refusal = await refused(
        wordsFor(entry),
        async () => void Object.assign(originals, await this.backendOf(entry.kind).snapshot?.(entry)),
      );
      if (refusal !== undefined) return { ...refusal, fault: 'node' };
    }
    return originals;
  }

  private async apply({ entry, untilMs, isRollback }: StepOf<'apply'>): Promise<Refusal | undefined> {
    const { path } = entry.spec;
    const where = `${wordsFor(entry)}${typeof path === 'string' ? ` (${path})` : ''}`;
    const work = () => this.backendOf(entry.kind).apply(entry, () => Math.max(0, untilMs - this.clock()));
    return refused(where, () => (isRollback === true ? this.state.rollBackWith(work) : work()));
  }

  /** What keeps an original from coming back is never the fault of the config that does without it. */
  private async restore({ key, original, isRollback }: StepOf<'restore'>): Promise<Refusal | undefined> {
    const work = () => this.backendOf(original.kind).restore(key, original);
    const refusal = await refused(key, () => (isRollback === true ? this.state.rollBackWith(work) : work()));
    return refusal === undefined ? undefined : { ...refusal, fault: 'node' };
  }

  private async compare(items: readonly Item[]): Promise<readonly Difference[]> {
    const differences: Difference[] = [];
    for (const item of items) {
      const [what, how] = await this.differenceOf(item);
      if (how !== undefined)
        differences.push({
          what,
          how,
          ...(item.do === 'apply' ? { entry: item.entry } : {}),
          ...((await this.isForgotten(item)) ? { forgotten: true } : {}),
        });
    }
    return differences;
  }

  private async differenceOf(item: Item): Promise<readonly [string, string | undefined]> {
    const what =
      item.do === 'apply'
        ? (this.backends.get(item.entry.kind)?.title(item.entry) ?? item.entry.kind)
        : item.key.slice(item.key.indexOf(':') + 1);
    try {
      const how =
        item.do === 'apply'
          ? await this.backendOf(item.entry.kind).differs(item.entry)
          : await this.backendOf(item.original.kind).differsFromOriginal(item.key, item.original.was);
      return [what, how];
    } catch (error) {
      return [what, `cannot be read: ${(error as Error).message}`];
    }
  }

  private async isForgotten(item: Item): Promise<boolean> {
    return (
      item.do === 'apply' &&
      (await this.backends
        .get(item.entry.kind)
        ?.isForgotten?.(item.entry)
        .catch(() => false)) === true
    );
  }

  private backendOf(kind: string): Backend {
    const backend = this.backends.get(kind);
    if (backend === undefined) throw new RefusedError('node', `this node does not support kind ${kind}`);
    return backend;
  }
}

async function refused(where: string, work: () => Promise<void>): Promise<Refusal | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return refusalOf(error, where);
  }
}
