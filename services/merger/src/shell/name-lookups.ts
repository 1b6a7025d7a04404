import { createHash } from 'node:crypto';
import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { manifestOf, resolvedName } from '#libs/manifests';
import { Bus, LedgerService, publishChange, ServiceNotes } from '#libs/nats';
import { LOGGER, SETTINGS } from '#libs/nest';
import { monotonicMs, type Logger, type Settings } from '#libs/process';
import { NAMES_SOURCE, wantedNames, type Input, type State, type WantedName } from '../core/index.js';
import { NameServer } from './name-server.js';

/** How soon a name that nobody has asked for yet is looked up. */
const LOOK_MS = 1_000;
/** How many names are asked for at once, and in one round: names that nobody answers must not hold up the others. */
const AT_ONCE = 16;
const PER_ROUND = 256;
/** How many names a note lists. */
const NAMED = 5;

type Tuning = Pick<Settings, 'lookupMs' | 'dnsServers'>;

/** The last answer for a name. */
interface Answered {
  readonly askedMs: number;
  /** Empty if there is an answer. */
  readonly failure: string;
  /** The id of what this copy published last, or found to be as it was. */
  readonly id: string;
}

/**
 * Looks up the host names that fragments refer to, while this copy leads. An answer that differs from the last one is
 * published as a change of its own. A look-up that fails changes nothing: what was published stays in use. If two
 * copies believe that they lead, both publish the same change with the same id.
 */
@Injectable()
export class NameLookups implements OnModuleInit, OnModuleDestroy {
  private server: NameServer;
  private readonly answered = new Map<string, Answered>();
  private timer: NodeJS.Timeout | undefined;
  private unlisten: () => void = () => undefined;
  private isStopped = false;

  constructor(
    @Inject(Bus) private readonly bus: Bus,
    @Inject(LedgerService) private readonly ledger: LedgerService<State, Input>,
    @Inject(SETTINGS) private readonly settings: Tuning,
    @Inject(LOGGER) private readonly logger: Logger,
    @Inject(ServiceNotes) private readonly notes: ServiceNotes,
  ) {
    this.server = new NameServer(settings.dnsServers);
  }

  onModuleInit(): void {
    this.unlisten = this.ledger.onLeadershipChange(() => this.follow());
  }

  onModuleDestroy(): void {
    this.isStopped = true;
    this.unlisten();
    clearTimeout(this.timer);
    this.server.cancel();
  }

  private follow(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.ledger.leading && !this.isStopped) return this.next();
    this.answered.clear();
    this.notes.set(NOTE, undefined);
  }

  private next(): void {
    const timer = setTimeout(() => {
      void this.look().finally(() => {
        // It may no longer lead, or lead again.
        if (this.timer === timer) this.next();
      });
    }, LOOK_MS).unref();
    this.timer = timer;
  }

  private async look(): Promise<void> {
    try {
      const { wanted, unused } = await this.ledger.query(wantedNames);
      const names = new Set([...wanted, ...unused].map(({ name }) => name));
      for (const name of this.answered.keys()) if (!names.has(name)) this.answered.delete(name);
      // The name servers of the machine may have changed.
      this.server = new NameServer(this.settings.dnsServers);
      const due = this.oldestFirst(wanted.filter(({ name }) => this.isDue(name)));
      for (let i = 0; i < Math.min(due.length, PER_ROUND); i += AT_ONCE)
        await Promise.all(due.slice(i, i + AT_ONCE).map((one) => this.lookUp(one)));
      for (const one of unused) await this.publish(one, []);
      this.noteFailures();
    } catch (error) {
      this.logger.warn({ error }, 'host names could not be looked up; trying again');
    }
  }

  private isDue(name: string): boolean {
    const last = this.answered.get(name);
    return last === undefined || monotonicMs() - last.askedMs >= this.settings.lookupMs;
  }

  private oldestFirst(wanted: readonly WantedName[]): readonly WantedName[] {
    const askedMs = ({ name }: WantedName): number => this.answered.get(name)?.askedMs ?? 0;
    return wanted.toSorted((a, b) => askedMs(a) - askedMs(b));
  }

  private async lookUp(wanted: WantedName): Promise<void> {
    const { name } = wanted;
    const answer = await this.server.ask(name);
    if (this.isStopped) return;
    const before = this.answered.get(name);
    const failure = answer.ok ? '' : answer.reason;
    if (failure !== (before?.failure ?? ''))
      this.logger[answer.ok ? 'info' : 'warn']({ name, failure }, 'the look-up of a host name succeeds or fails again');
    this.answered.set(name, { askedMs: monotonicMs(), failure, id: before?.id ?? '' });
    if (answer.ok && answer.addresses.join() !== wanted.published?.addresses.join())
      await this.publish(wanted, answer.addresses);
  }

  /** Without addresses, publishes that nobody needs the name any more. Does not repeat what the merger has not read. */
  private async publish({ name, published }: WantedName, addresses: readonly string[]): Promise<void> {
    const before = published?.addresses ?? [];
    const id = sha256(JSON.stringify([name, addresses, published?.change ?? '']));
    const last = this.answered.get(name);
    if (last?.id === id) return;
    const content =
      addresses.length === 0
        ? { delete: [{ kind: resolvedName.name, name }] }
        : { apply: [manifestOf({ kind: resolvedName.name, name, labels: {}, spec: { addresses } })] };
    const message = `${name}: ${listText(before)} → ${listText(addresses)}`;
    const text = JSON.stringify({ ...content, message, author: 'sluice' });
    const change = await publishChange(this.bus, { source: NAMES_SOURCE, text, id });
    this.answered.set(name, { askedMs: monotonicMs(), failure: '', ...last, id });
    this.logger.info({ name, before, addresses, change }, 'published the addresses of a host name');
  }

  /** For `sluice doctor`. */
  private noteFailures(): void {
    const failed = [...this.answered].filter(([, { failure }]) => failure !== '').sort();
    if (failed.length === 0) return this.notes.set(NOTE, undefined);
    const more = failed.length > NAMED ? `, and ${failed.length - NAMED} more` : '';
    const named = failed.slice(0, NAMED).map(([name, { failure }]) => `${name} (${failure})`);
    const words = `host names cannot be looked up: ${named.join(', ')}${more}. Addresses that were found before stay in use`;
    const todo = 'correct the names in the fragments, or the DNS servers: see SLUICE_DNS_SERVERS of the merger';
    this.notes.set(NOTE, { state: 'bad', words, todo });
  }
}

const NOTE = 'host-names';
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const listText = (addresses: readonly string[]): string => (addresses.length === 0 ? 'none' : addresses.join(', '));
