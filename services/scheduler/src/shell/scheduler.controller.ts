import { Controller, Inject } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { decodeReport, REPORTS } from '#libs/contracts';
import { LedgerService, Poison, type BusMessage } from '#libs/nats';
import type { Input, State } from '../core/index.js';

/** Reports of nodes. */
@Controller()
export class SchedulerController {
  constructor(
    @Inject(LedgerService) private readonly ledger: LedgerService<State, Input>,
    @Inject(Poison) private readonly poison: Poison,
  ) {}

  @EventPattern<string>('node.*.*', { stream: REPORTS, filters: [], from: 'cursor' })
  async reports(@Payload() batch: readonly BusMessage[]): Promise<void> {
    const reports = await this.poison.decoded(REPORTS, batch, ({ subject, text, sequence }) => ({
      sequence,
      report: decodeReport(subject, text),
    }));
    await this.ledger.submitAll(reports.map((report) => ({ type: 'report', ...report })));
  }
}
