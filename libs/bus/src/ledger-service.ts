import { fold, FoldError, newCopy, turn, type Answer, type Copy, type Core, type Need } from '#libs/kernel';
import { monotonicMs, SILENT, type Logger } from '#libs/runtime';
import type { Bus } from './connection.js';
import { HaltedError, UnavailableError } from './errors.js';
import { LeaderTerm } from './leader-term.js';
import { isConnectionTrouble } from './ledger.js';
import { RefoldError } from './ledger-reader.js';
import { serviceTools, type LedgerParts, type LedgerServiceOptions, type ServiceTools } from './service-tools.js';
import { growingMs, pause, Signal } from './signal.js';
import { Waiters } from './waiters.js';

/** In a quiet fleet nothing else may wake a copy whose snapshot is due. */
const QUIET_MS = 3_600_000;
/** A turn that asks to be woken in the past is woken after this. */
const LEAST_WAKE_MS = 10;

/** Runs one copy of a service: follows the ledger always, decides while it leads. */
export class LedgerService<S = unknown, I extends object = object, N extends Need = Need, G = unknown> {
  private readonly bus: Bus;
  private readonly logger: Logger;
  private readonly core: Core<S, I, N, G>;
  private readonly tools: ServiceTools<S, I, N, G>;
  private readonly wake = new Signal();
  private readonly waiters = new Waiters<I, S>();
  private readonly listeners = new Set<() => void>();
  private readonly followers = new Set<(state: S | undefined) => void>();
  private copy: Copy<S, I, N, G>;
  private term: LeaderTerm<S, I, N, G> | undefined;
  private ready = false;
  private caughtUp = false;
  private asked = false;
  private terms = 0;
  private stopping = false;
  private broken = false;
  private failsAgain: string | undefined;
  private shownHalt: string | undefined;
  private shownStanding = '';
  private failures = 0;
  private quiet: NodeJS.Timeout | undefined;
  private unlisten: () => void = () => undefined;
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly parts: LedgerParts<S, I, N, G>,
    private readonly options: LedgerServiceOptions,
  ) {
    this.bus = options.bus;
    this.logger = options.logger ?? SILENT;
    this.core = parts.core;
    this.copy = newCopy(this.core);
    this.tools = serviceTools(parts, options, {
      onNews: () => this.wake.give(),
      onLead: (leading) => {
        if (!leading) this.endTerm('another copy of this service leads now');
        this.wake.give();
      },
      cursor: () => this.cursor,
    });
  }

  get name(): string {
    return this.core.name;
  }

  /** Whether this copy takes inputs: it is elected, has read the whole ledger, and its views were checked. */
  get leading(): boolean {
    return this.ready;
  }

  /** Why this copy would be of no use if it had to lead now; undefined when it would. */
  get unready(): string | undefined {
    if (!this.bus.connected) return 'there is no connection to the bus';
    if (this.halted !== undefined) return `it has stopped deciding: ${this.halted}`;
    return this.caughtUp ? undefined : 'it has not read the ledger to its end yet';
  }

  /** Counts the times that this copy led; undefined while it does not. */
  get leadingTerm(): number | undefined {
    return this.ready ? this.terms : undefined;
  }

  /** Why this copy appends no more; undefined when it does. */
  get halted(): string | undefined {
    return this.tools.reader.halted ?? this.tools.integrity.mismatch;
  }

  /** Why nothing comes of what this copy decides, though it has not stopped; undefined when something does. */
  get stuck(): string | undefined {
    return this.failsAgain;
  }

  /** Whether another copy was seen to lead. */
  get otherLeads(): boolean {
    return this.tools.election.otherLeads;
  }

  /** Sequence in the core's input stream up to which inputs were decided. */
  get cursor(): number {
    return this.core.cursor?.(this.copy.state) ?? 0;
  }

  /** Loads the newest snapshot, then follows the ledger and stands for election. */
  async start(): Promise<void> {
    await this.foldAnew(true);
    this.quiet = setInterval(() => this.wake.give(), Math.min(QUIET_MS, this.options.snapshotMs ?? QUIET_MS)).unref();
    this.unlisten = this.bus.onConnection((connected) => this.reconnected(connected));
    this.running = this.run();
    this.tools.election.start();
  }

  /** Ends cleanly: another copy leads at once, and a snapshot makes the next start quick. */
  async stop(): Promise<void> {
    const led = this.ready;
    this.stopping = true;
    clearInterval(this.quiet);
    this.unlisten();
    this.endTerm('this copy of the service ends');
    this.wake.give();
    this.tools.reader.stop();
    this.tools.integrity.stop();
    await Promise.all([this.running, this.tools.election.stop()]);
    await this.tools.keeper.end(led && !this.broken ? this.copy : undefined);
  }

  /** Gives the core an input; resolves with the core's answer when it is settled. Rejects with UnavailableError when this copy leads no more. */
  submit(input: I): Promise<Answer | undefined> {
    if (!this.ready) return Promise.reject(this.unavailable());
    const settled = this.waiters.add(input);
    this.copy.inputs.push(input);
    this.ask();
    return settled;
  }

  /** The same for several, in their order; resolves when all are settled. */
  async submitAll(inputs: readonly I[]): Promise<void> {
    await Promise.all(inputs.map((input) => this.submit(input)));
  }

  /** Lets a shell touch what is in memory only; a turn follows if `touch` returns true. */
  observe(touch: (state: S) => boolean): void {
    if (touch(this.copy.state)) this.ask();
  }

  /** Reads from a state that has seen all that was in the ledger when this was asked. */
  query<T>(read: (state: S) => T): Promise<T> {
    if (!this.ready) return Promise.reject(this.unavailable());
    const answer = this.waiters.addQuery(read);
    this.wake.give();
    return answer;
  }

  /** Calls back when this copy begins or ends to lead, or halts; returns how to stop that. */
  onStanding(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Grows whenever this copy has something to do. */
  get work(): number {
    return this.copy.folded + this.copy.inputs.length;
  }

  /** Calls back with the state after whatever this copy folded or decided while it leads, and with undefined when it leads no more. */
  follow(follower: (state: S | undefined) => void): () => void {
    this.followers.add(follower);
    return () => this.followers.delete(follower);
  }

  /** For the health line. */
  figures(): object {
    const { term } = this;
    return {
      leading: this.ready,
      halted: this.halted,
      folded: this.copy.folded,
      inputs: this.copy.inputs.length,
      appended: term?.appended ?? 0,
      refused: term?.refused ?? 0,
      viewsWritten: term?.viewsWritten ?? 0,
      snapshotAt: this.tools.keeper.at,
      connected: this.bus.connected,
    };
  }

  private ask(): void {
    this.asked = true;
    this.wake.give();
  }

  private unavailable(): UnavailableError {
    if (this.halted !== undefined) return new HaltedError(`${this.name} has stopped deciding: ${this.halted}`);
    return new UnavailableError(`this copy of ${this.name} does not lead`);
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      try {
        await this.step();
        this.failures = 0;
        this.failsAgain = undefined;
      } catch (error) {
        if (!this.stopping) await this.recover(error);
      }
      this.showStanding();
      const { wakeAtMs } = this.copy;
      if (!this.stopping)
        await this.wake.wait(
          !this.ready || wakeAtMs === undefined ? undefined : Math.max(LEAST_WAKE_MS, wakeAtMs - monotonicMs()),
        );
    }
  }

  private async step(): Promise<void> {
    if (this.broken && this.tools.reader.halted === undefined) await this.foldAnew(false);
    if (fold(this.copy, await this.tools.reader.take(this.copy.folded)) > 0) this.asked = true;
    if (this.halted !== undefined) throw new HaltedError(this.halted);
    if (!this.caughtUp) await this.catchUp();
    if (!this.tools.election.leading) return;
    if (this.term === undefined) await this.takeOver();
    const term = this.term as LeaderTerm<S, I, N, G> | undefined;
    if (term === undefined) return;
    await this.doChores();
    if (this.copy.wakeAtMs !== undefined && this.copy.wakeAtMs <= monotonicMs()) this.asked = true;
    if (this.asked) await this.lead(term);
    if (this.ready) for (const follower of this.followers) follower(this.copy.state);
  }

  /** Also a copy that does not lead: only then another may end. */
  private async catchUp(): Promise<void> {
    if (fold(this.copy, await this.tools.reader.catchUp(this.copy.folded)) > 0) this.asked = true;
    this.caughtUp = true;
  }

  /** Whatever came meanwhile was not heard. */
  private reconnected(connected: boolean): void {
    this.caughtUp = false;
    if (connected) this.wake.give();
  }

  /** What must not wait for the end of a turn, which under load is far away. */
  private async doChores(): Promise<void> {
    if (this.waiters.hasQueries) {
      await this.waiters.answerQueries(async () => {
        if (fold(this.copy, await this.tools.reader.catchUp(this.copy.folded)) > 0) this.asked = true;
        return this.copy.state;
      });
      if (this.waiters.hasQueries) this.wake.give();
    }
    this.tools.keeper.keep(this.copy);
  }

  /** The first thing in a term: read all, check and write every view, and only then take inputs. */
  private async takeOver(): Promise<void> {
    const term = new LeaderTerm<S, I, N, G>({
      bus: this.bus,
      ledger: this.tools.ledger,
      reader: this.tools.reader,
      copy: this.copy,
      gather: async (needs, state) => (this.parts.gather === undefined ? new Map() : this.parts.gather(needs, state)),
      settle: (inputs, answers) => this.waiters.settle(inputs, answers),
      logger: this.logger,
    });
    this.term = term;
    try {
      await term.writeViews(async () => {
        fold(this.copy, await this.tools.reader.catchUp(this.copy.folded));
        return this.copy.folded;
      });
      await this.tools.integrity.requireInput();
    } catch (error) {
      this.endTerm('it could not begin to lead');
      throw error;
    }
    if (term.ended) return;
    this.ready = true;
    this.terms += 1;
    this.asked = true;
    this.showStanding();
  }

  private async lead(term: LeaderTerm<S, I, N, G>): Promise<void> {
    this.asked = false;
    const steps = turn(this.copy);
    for (let next = steps.next(); next.done !== true;) {
      // Between two decisions of the turn.
      if (next.value.do === 'read') await this.doChores();
      if (term.ended) return;
      const result = await term.perform(next.value).catch((error: unknown) => {
        this.asked = true;
        throw error;
      });
      if (term.ended) return;
      next = steps.next(result);
    }
  }

  private endTerm(reason: string): void {
    this.term?.end();
    this.term = undefined;
    this.ready = false;
    this.copy.inputs.length = 0;
    this.copy.gathered.clear();
    this.waiters.reject(new UnavailableError(reason));
    for (const follower of this.followers) follower(undefined);
    this.showStanding();
  }

  private async recover(error: unknown): Promise<void> {
    this.failures += 1;
    if (error instanceof HaltedError) this.tools.integrity.take(error);
    if (error instanceof HaltedError) {
      this.endTerm(`it has stopped deciding: ${error.message}`);
      this.tools.election.stand(false);
      return;
    }
    if (error instanceof FoldError) {
      this.broken = true;
      this.tools.reader.halt(error.sequence, error.message);
      return this.wake.give();
    }
    if (error instanceof RefoldError) {
      this.logger.warn({ reason: error.message }, 'the fold begins anew');
      this.endTerm('its fold begins anew');
      this.broken = true;
      return this.wake.give();
    }
    if (isConnectionTrouble(error)) {
      this.logger.warn({ error }, 'the server did not do what was asked; trying again');
      await pause(growingMs(this.failures, 50, 3_000));
      return this.wake.give();
    }
    this.logger.error({ error }, 'a bug: what was in hand is given back');
    if (this.failures > 1)
      this.failsAgain = `its decisions fail again and again (${(error as Error).message}): a bug, or a fact that no service wrote; its log has the trace`;
    this.showStanding();
    this.copy.inputs.length = 0;
    this.waiters.reject(error as Error);
    await Promise.race([pause(growingMs(this.failures, 500, 30_000)), this.untilStopping()]);
    this.ask();
  }

  private async untilStopping(): Promise<void> {
    while (!this.stopping) await pause(100);
  }

  private async foldAnew(mayLoad: boolean): Promise<void> {
    this.caughtUp = false;
    this.copy = await this.tools.keeper.begin(mayLoad);
    this.broken = false;
  }

  private showStanding(): void {
    const { halted } = this;
    if (halted === undefined && this.shownHalt !== undefined) this.tools.election.stand(true);
    const standing = `${this.leadingTerm} ${halted ?? this.stuck ?? ''} ${this.otherLeads}`;
    this.shownHalt = halted;
    if (standing === this.shownStanding) return;
    this.shownStanding = standing;
    for (const listener of this.listeners) listener();
  }
}
