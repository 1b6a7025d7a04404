import { Controller, Inject, Module } from '@nestjs/common';
import { EventPattern, MessagePattern, Payload } from '@nestjs/microservices';
import { decodeReport, REPORTS } from '#libs/contracts';
import type { Answer } from '#libs/kernel';
import { SettleNodeRequest } from '#libs/requests';
import { counterCore, type CounterInput, type Counts } from '../counter.fixture.js';
import { LedgerService } from '../ledger-service.js';
import { Poison } from '../poison.js';
import type { BusMessage } from '../stream-reader.js';
import { provideLedger } from './ledger-provider.js';

/** What the heartbeats of a test brought. */
export const heard: string[] = [];

/** The counter as a service: the shape that every service's shell has. */
@Controller()
class CounterController {
  constructor(
    @Inject(LedgerService) private readonly ledger: LedgerService<Counts, CounterInput>,
    @Inject(Poison) private readonly poison: Poison,
  ) {}

  @EventPattern<string>('node.*.*', { stream: REPORTS, filters: [], from: 'cursor' })
  async reports(@Payload() batch: readonly BusMessage[]): Promise<void> {
    const reports = await this.poison.decoded(REPORTS, batch, ({ subject, text, sequence }) => ({
      ...decodeReport(subject, text),
      sequence,
    }));
    await this.ledger.submitAll(reports.map(({ node, sequence }) => ({ kind: 'report', node, sequence })));
  }

  @EventPattern<string>('alive.*', { core: true })
  alive(@Payload() batch: readonly BusMessage[]): void {
    heard.push(...batch.map(({ subject }) => subject));
  }

  @MessagePattern('ops.node.skip')
  skip(@Payload() { node, by }: SettleNodeRequest): Promise<Answer | undefined> {
    return this.ledger.submit({ kind: 'skip', node, by: by ?? 'nats' });
  }

  @MessagePattern('ops.node.why')
  why(@Payload() { node }: SettleNodeRequest): Promise<object> {
    return this.ledger.query((state) => ({ node, count: state.byNode.get(node)?.count ?? 0 }));
  }
}

@Module({ controllers: [CounterController], providers: [provideLedger(() => ({ core: counterCore }))] })
export class CounterModule {}

/** A service that decides nothing. */
@Module({})
export class WithoutLedgerModule {}
