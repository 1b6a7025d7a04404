import { randomUUID } from 'node:crypto';
import { Controller, Inject } from '@nestjs/common';
import { EventPattern, MessagePattern, Payload } from '@nestjs/microservices';
import { CHANGES } from '#libs/contracts';
import type { Answer } from '#libs/engine';
import { Blobs, Bus, LedgerService, type BusMessage } from '#libs/nats';
import type { DiffRequest, PlanRequest, RetryRequest, RollbackRequest } from '#libs/manifests';
import { OpsRequest } from '#libs/nest';
import { publishedInput, stateBefore, whyNoRetry, type Input, type State } from '../core/index.js';
import { diffConfigs, publishRollback, retryChange } from './requests.js';

/** Receives published changes, and requests. */
@Controller()
export class MergerController {
  constructor(
    @Inject(LedgerService) private readonly ledger: LedgerService<State, Input>,
    @Inject(Bus) private readonly bus: Bus,
    @Inject(Blobs) private readonly blobs: Blobs,
  ) {}

  @EventPattern<string>('config.desired.>', { stream: CHANGES, from: 'cursor' })
  async changes(@Payload() batch: readonly BusMessage[]): Promise<void> {
    await this.ledger.submitAll(
      batch.map((message) => publishedInput({ ...message, storedMs: Date.parse(message.time) })),
    );
  }

  @MessagePattern('ops.config.plan')
  plan(@OpsRequest() { cursor, limit, source, ...body }: PlanRequest): Promise<Answer | undefined> {
    const request = { op: 'plan', id: randomUUID(), body, source, cursor, limit } as const;
    return this.ledger.submit({ type: 'request', request });
  }

  @MessagePattern('ops.config.diff')
  diff(@OpsRequest() request: DiffRequest): Promise<Answer> {
    return diffConfigs(this.bus, this.blobs, request);
  }

  @MessagePattern('ops.config.retry')
  async retry(@OpsRequest() request: RetryRequest): Promise<Answer> {
    const tooLate = await this.ledger.query((state) => whyNoRetry(state, request.change));
    return retryChange(this.bus, request, tooLate);
  }

  @MessagePattern('ops.config.rollback')
  async rollback(@OpsRequest() request: RollbackRequest): Promise<Answer> {
    const before = await this.ledger.query((state) => stateBefore(state, request.change));
    return before.ok ? publishRollback(this.bus, before.source, request) : before;
  }
}
