import { Controller, Inject } from '@nestjs/common';
import { EventPattern, MessagePattern, Payload } from '@nestjs/microservices';
import { decodeReport, REPORTS } from '#libs/contracts';
import type { Answer } from '#libs/engine';
import type { NodeRequest, SettleNodeRequest } from '#libs/manifests';
import { counterCore, type CounterInput, type Counts } from '../../nats/src/counter.fixture.js';
import { LedgerService, Poison, type BusMessage } from '#libs/nats';
import { OpsRequest } from './requests.js';
import { provideLedger, type ServiceSpec } from './service-module.js';

/** The heartbeats that the test sent. */
export const heartbeats: string[] = [];

/** The counter as a service, built like every service's shell. */
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
    heartbeats.push(...batch.map(({ subject }) => subject));
  }

  @MessagePattern('ops.node.skip')
  skip(@OpsRequest() { node, by }: SettleNodeRequest): Promise<Answer | undefined> {
    return this.ledger.submit({ kind: 'skip', node, by });
  }

  @MessagePattern('ops.node.why')
  why(@OpsRequest() { node }: NodeRequest): Promise<object> {
    return this.ledger.query((state) => ({ node, count: state.byNode.get(node)?.count ?? 0 }));
  }
}

export const counterSpec = (name: string): ServiceSpec => ({
  name,
  description: '',
  controllers: [CounterController],
  providers: [provideLedger(() => ({ core: counterCore }))],
});
