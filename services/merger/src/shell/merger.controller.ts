import { randomUUID } from 'node:crypto';
import { Controller, Inject } from '@nestjs/common';
import { EventPattern, MessagePattern, Payload } from '@nestjs/microservices';
import { CHANGES } from '#libs/contracts';
import type { Answer } from '#libs/kernel';
import { LedgerService, type BusMessage } from '#libs/bus';
import { DiffRequest, MAX_PAGE, PlanRequest, RetryRequest } from '#libs/requests';
import type { Input, State } from '../core/index.js';
import { Diffs } from './diffs.js';
import { Retries } from './retries.js';

const PREFIX = 'config.desired.';

/** What the merger hears, and what people ask it. */
@Controller()
export class MergerController {
  constructor(
    @Inject(LedgerService) private readonly ledger: LedgerService<State, Input>,
    @Inject(Retries) private readonly retries: Retries,
    @Inject(Diffs) private readonly diffs: Diffs,
  ) {}

  @EventPattern<string>('config.desired.>', { stream: CHANGES, from: 'cursor' })
  async changes(@Payload() batch: readonly BusMessage[]): Promise<void> {
    await this.ledger.submitAll(
      batch.map(({ sequence, subject, text }) => ({
        type: 'published',
        sequence,
        source: subject.slice(PREFIX.length),
        text,
      })),
    );
  }

  @MessagePattern('ops.config.plan')
  plan(@Payload() { cursor = '', limit = MAX_PAGE, ...body }: PlanRequest): Promise<Answer | undefined> {
    return this.ledger.submit({ type: 'request', request: { op: 'plan', id: randomUUID(), body, cursor, limit } });
  }

  @MessagePattern('ops.config.diff')
  diff(@Payload() { node, from, to }: DiffRequest): Promise<Answer> {
    return this.diffs.diff(node, from, to);
  }

  @MessagePattern('ops.config.retry')
  retry(@Payload() { change, by = 'nats' }: RetryRequest): Promise<Answer> {
    return this.retries.retry(change, by);
  }
}
