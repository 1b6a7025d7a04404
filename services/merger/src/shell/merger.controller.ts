import { randomUUID } from 'node:crypto';
import { Controller, Inject } from '@nestjs/common';
import { EventPattern, MessagePattern, Payload } from '@nestjs/microservices';
import { CHANGES } from '#libs/contracts';
import type { Answer } from '#libs/engine';
import { Blobs, Bus, LedgerService, type BusMessage } from '#libs/nats';
import type { DiffRequest, PlanRequest, RetryRequest } from '#libs/manifests';
import { OpsRequest } from '#libs/nest';
import { publishedInput, type Input, type State } from '../core/index.js';
import { diffConfigs, retryChange } from './requests.js';

/** Published changes, and requests. */
@Controller()
export class MergerController {
  constructor(
    @Inject(LedgerService) private readonly ledger: LedgerService<State, Input>,
    @Inject(Bus) private readonly bus: Bus,
    @Inject(Blobs) private readonly blobs: Blobs,
  ) {}

  @EventPattern<string>('config.desired.>', { stream: CHANGES, from: 'cursor' })
  async changes(@Payload() batch: readonly BusMessage[]): Promise<void> {
    await this.ledger.submitAll(batch.map(publishedInput));
  }

  @MessagePattern('ops.config.plan')
  plan(@OpsRequest() { cursor, limit, ...body }: PlanRequest): Promise<Answer | undefined> {
    return this.ledger.submit({ type: 'request', request: { op: 'plan', id: randomUUID(), body, cursor, limit } });
  }

  @MessagePattern('ops.config.diff')
  diff(@OpsRequest() request: DiffRequest): Promise<Answer> {
    return diffConfigs(this.bus, this.blobs, request);
  }

  @MessagePattern('ops.config.retry')
  retry(@OpsRequest() request: RetryRequest): Promise<Answer> {
    return retryChange(this.bus, request);
  }
}
