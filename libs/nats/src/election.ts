import { nuid } from '@nats-io/nats-core';
import { LEADERS } from '#libs/contracts';
import type { Logger } from '#libs/process';
import type { Bus } from './connection.js';
import { isNoResponders } from './errors.js';
import { headersOf, isDeletion, isStoredDeletion } from './messages.js';
import { growingMs, pause, Signal } from './signal.js';
import { kvStream, kvSubject } from './topology.js';

/** How often a copy that does not lead checks whether another one does. */
const LOOK_MS = 500;
const SURE_MS = 200;

export interface ElectionOptions {
  readonly bus: Bus;
  /** The name of the service: each has one leader. */
  readonly name: string;
  readonly ttlMs: number;
  readonly logger: Logger;
  /** Called whenever this copy begins or ends to lead. */
  readonly onChange: (leading: boolean) => void;
  /**
   * Leads on until it has read that another copy leads, although its key could not be renewed in time. For work that
   * takes long to begin, and that another copy can take from this one. Default: it ends to lead.
   */
  readonly leadsUntilReplaced?: boolean;
}

/**
 * Elects the copy that decides, with a key that expires soon and is refreshed by compare-and-set. This only keeps the
 * other copies idle: if two copies believe that they lead, the ledger refuses one of them.
 */
export class Election {
  /** Identifies the key of this copy, even after a lost answer. */
  private readonly id = nuid.next();
  private readonly signal = new Signal();
  private revision: number | undefined;
  private stopped = false;
  private done: Promise<void> = Promise.resolve();
  private unsubscribe: () => void = () => undefined;
  /** Whether this copy may lead. A halted copy does not run for election. */
  private stands = true;
  /** Whether another copy had the key when this one last checked. */
  otherLeads = false;

  constructor(private readonly options: ElectionOptions) {}

  get leading(): boolean {
    return this.revision !== undefined;
  }

  start(): void {
    // Only a hint: the key was deleted, so try at once.
    const hints = this.options.bus.nc.subscribe(kvSubject(LEADERS, this.options.name), {
      callback: (error, message) => {
        if (error === null && isDeletion(message)) this.signal.give();
      },
    });
    const life = this.options.bus.nc.subscribe(this.lifeSubject(this.id), {
      callback: (error, message) => void (error === null && message.respond()),
    });
    this.unsubscribe = () => {
      hints.unsubscribe();
      life.unsubscribe();
    };
    this.done = this.run();
  }

  /** Runs for election, or gives up the key and stops running. */
  stand(stands: boolean): void {
    if (this.stands === stands) return;
    this.stands = stands;
    this.signal.give();
  }

  /** Stops, and deletes the key, so that another copy leads at once. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.signal.give();
    this.unsubscribe();
    await this.done;
    await this.resign();
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      if (!this.stands && this.leading) await this.resign();
      else if (this.leading) await this.refresh();
      else await this.compete();
      await this.signal.wait(this.leading ? this.options.ttlMs / 3 : growingMs(0, LOOK_MS, LOOK_MS));
    }
  }

  private async compete(): Promise<void> {
    try {
      const { id, sequence } = await this.key();
      this.otherLeads = id !== undefined && id !== this.id;
      if (!this.stands || this.stopped || (id !== undefined && this.otherLeads && !(await this.isGone(id)))) return;
      this.become(await this.write(sequence));
    } catch (error) {
      this.options.logger.debug({ error, service: this.options.name }, 'not elected');
    }
  }

  /**
   * Whether the leader has lost its connection: its subject has no subscriber. After a kill -9, the server knows that
   * at once. Asks twice, because a new subscription takes a moment to spread in a cluster.
   */
  private async isGone(id: string): Promise<boolean> {
    for (let times = 0; times < 2; times += 1) {
      if (times > 0) await pause(SURE_MS);
      const isHeard = await this.options.bus.request(this.lifeSubject(id), '', { timeout: LOOK_MS }).then(
        () => true,
        (error: unknown) => !isNoResponders(error),
      );
      if (isHeard) return false;
    }
    return true;
  }

  private lifeSubject(id: string): string {
    return `lead.${this.options.name}.${id}`;
  }

  private async refresh(): Promise<void> {
    try {
      this.revision = await this.write(this.revision as number);
    } catch (error) {
      if (this.options.leadsUntilReplaced === true && (await this.renewLate())) return;
      this.options.logger.warn(
        { error, service: this.options.name },
        'the leader key could not be renewed: stepping down',
      );
      this.become(undefined);
      this.signal.give();
    }
  }

  /**
   * Takes the key again, unless another copy has it. Returns whether this one leads on. That the key could not be
   * renewed in time is no proof of another leader: a process that gets too little CPU finds that it has expired, or
   * that the time for the answer is over before it has read it.
   */
  private async renewLate(): Promise<boolean> {
    const { bus, logger, name } = this.options;
    try {
      const key = await this.key();
      if (key.id !== undefined && key.id !== this.id) return false;
      this.revision = await this.write(key.sequence);
      logger.warn({ service: name }, 'the leader key was renewed late; no other copy leads');
    } catch (error) {
      logger.debug(
        { error, service: name, connected: bus.connected },
        'the leader key cannot be renewed; trying again',
      );
    }
    return true;
  }

  /** Who has the key, and the sequence that the next write of it names: that of the key, even if deleted, or 0. */
  private async key(): Promise<{ readonly id: string | undefined; readonly sequence: number }> {
    const message = await this.options.bus.stored(kvStream(LEADERS), { last_by_subj: this.subject });
    const id = message === null || isStoredDeletion(message) ? undefined : message.string();
    return { id, sequence: message?.seq ?? 0 };
  }

  private async resign(): Promise<void> {
    if (this.revision === undefined) return;
    const revision = this.revision;
    this.become(undefined);
    await this.options.bus
      .publish(this.subject, '', {
        headers: headersOf({ 'KV-Operation': 'DEL' }),
        expect: { lastSubjectSequence: revision },
        timeout: this.requestMs,
      })
      .catch((error: unknown) => this.options.logger.debug({ error }, 'the leader key expires on its own'));
  }

  private become(revision: number | undefined): void {
    const changed = (this.revision === undefined) !== (revision === undefined);
    this.revision = revision;
    if (!changed) return;
    this.options.logger.info({ service: this.options.name }, revision === undefined ? 'no longer the leader' : 'leads');
    this.options.onChange(revision !== undefined);
  }

  private async write(expected: number): Promise<number> {
    const ack = await this.options.bus.publish(this.subject, this.id, {
      expect: { lastSubjectSequence: expected },
      timeout: this.requestMs,
    });
    return ack.seq;
  }

  private get subject(): string {
    return kvSubject(LEADERS, this.options.name);
  }

  /** So that a failed refresh ends the leadership before the key expires, unless it leads until it is replaced. */
  private get requestMs(): number {
    return Math.max(250, this.options.ttlMs / 3);
  }
}
