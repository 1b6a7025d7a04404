import { Controller, Inject, type OnModuleDestroy } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { decodeAlive, decodeReport, REPORT_FILTERS, reporterOf, REPORTS } from '#libs/contracts';
import { LedgerService, Poison, ServiceNotes, type BusMessage } from '#libs/nats';
import { durationText } from '#libs/manifests';
import { monotonicMs, wallTime } from '#libs/process';
import { hear, hearReport, noteAnnounced, SharedNames, type Input, type State } from '../core/index.js';
import { Pace } from './pace.js';

/** How many names a note lists. */
const NAMED = 10;

/** Receives announcements and signs of life: heartbeats and reports. */
@Controller()
export class InventoryController implements OnModuleDestroy {
  private readonly shared = new SharedNames();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    @Inject(LedgerService) private readonly ledger: LedgerService<State, Input>,
    @Inject(Poison) private readonly poison: Poison,
    @Inject(Pace) private readonly pace: Pace,
    @Inject(ServiceNotes) private readonly notes: ServiceNotes,
  ) {}

  @EventPattern<string>('node.announced.*', {
    stream: REPORTS,
    filters: [REPORT_FILTERS.announced],
    deliver: 'last-per-subject',
  })
  async announced(@Payload() batch: readonly BusMessage[]): Promise<void> {
    const decoded = await this.poison.decoded(REPORTS, batch, (message) => ({
      message,
      report: decodeReport(message.subject, message.text),
    }));
    const reports = decoded.map(({ report }) => report);
    this.ledger.observe((state) => noteAnnounced(state, reports));
    const answers = await this.ledger.submitAll(reports.map((report) => ({ type: 'announced', report })));
    await this.poison.refused(
      REPORTS,
      decoded.map(({ message }) => message),
      answers,
    );
  }

  /**
   * Heartbeats are not facts. They are recorded in memory, and lead to a decision only if they are from a silent node.
   */
  @EventPattern<string>('alive.*', { core: true })
  async alive(@Payload() batch: readonly BusMessage[]): Promise<void> {
    const heartbeats = await this.poison.decoded('ALIVE', batch, ({ subject, text }) => decodeAlive(subject, text));
    const [nowMs, at] = [monotonicMs(), wallTime()];
    this.ledger.observe((state) => {
      for (const alive of heartbeats) if (state.nodes.has(alive.node)) this.shared.hear(alive, nowMs);
      return heartbeats
        .map((alive) => hear(state, alive.node, nowMs, at, this.pace.keep(state, alive)))
        .some((news) => news);
    });
    this.noteShared(nowMs);
  }

  onModuleDestroy(): void {
    clearTimeout(this.timer);
  }

  /** For `sluice doctor`. Looks again by itself: there may be no more heartbeats, or another copy gets them. */
  private noteShared(nowMs: number): void {
    clearTimeout(this.timer);
    const names = this.shared.names(nowMs);
    if (names.length === 0) return this.notes.set('shared-names', undefined);
    const { patienceMs } = this.shared;
    const more = names.length > NAMED ? `, and ${names.length - NAMED} more` : '';
    const last = durationText(Math.ceil(patienceMs / 1_000) * 1_000);
    const words = `two appliers use the name ${names.slice(0, NAMED).join(', ')}${more}, or did so within the last ${last}`;
    const todo = 'stop one of them, or give it another name with --node';
    this.notes.set('shared-names', { state: 'bad', words, todo });
    this.timer = setTimeout(() => this.noteShared(monotonicMs()), patienceMs).unref();
  }

  /**
   * Every report is a sign of life at the moment when it is sent. Old reports in the stream say nothing about now, so
   * this subscribes to them like to heartbeats, and does not read their content. The filters exclude facts about nodes:
   * their subjects look the same, and there are several for each report.
   */
  @EventPattern<string>('node.*.*', { core: true, filters: REPORT_FILTERS.all })
  reported(@Payload() batch: readonly BusMessage[]): void {
    const [nowMs, at] = [monotonicMs(), wallTime()];
    const nodes = new Set(batch.flatMap(({ subject }) => reporterOf(subject) ?? []));
    this.ledger.observe((state) => [...nodes].map((node) => hearReport(state, node, nowMs, at)).some((news) => news));
  }
}
