import { Controller, Inject } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { decodeReport, REPORTS } from '#libs/contracts';
import { LedgerService, Poison, type BusMessage } from '#libs/nats';
import type { Input, State } from '../core/index.js';

/** Receives reports of nodes. */
@Controller()
export class SchedulerController {
  constructor(
    @Inject(LedgerService) private readonly ledger: LedgerService<State, Input>,
    @Inject(Poison) private readonly poison: Poison,
  ) {}

  @EventPattern<string>('node.*.*', { stream: REPORTS, filters: [], from: 'cursor' })
  async reports(@Payload() batch: readonly BusMessage[]): Promise<void> {
    const reports = await this.poison.decoded(REPORTS, batch, (message) => ({
      message,
      report: decodeReport(message.subject, message.text),
    }));
    const answers = await this.ledger.submitAll(
      reports.map(({ message: { sequence }, report }) => ({ type: 'report', sequence, report })),
    );
    await this.poison.refused(
      REPORTS,
      reports.map(({ message }) => message),
      answers,
    );
  }
}
