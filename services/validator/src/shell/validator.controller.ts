import { Controller, Inject } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import type { Answer } from '#libs/kernel';
import { LedgerService } from '#libs/bus';
import { ForgiveRequest, ListKnownBadRequest, MAX_PAGE } from '#libs/requests';
import type { Input, State } from '../core/index.js';

/** What people ask the validator. All that it hears besides is in the ledger. */
@Controller()
export class ValidatorController {
  constructor(@Inject(LedgerService) private readonly ledger: LedgerService<State, Input>) {}

  @MessagePattern('ops.known-bad.list')
  list(@Payload() { cursor = '', limit = MAX_PAGE }: ListKnownBadRequest): Promise<Answer | undefined> {
    return this.ledger.submit({ type: 'request', request: { op: 'list', cursor, limit } });
  }

  @MessagePattern('ops.known-bad.forgive')
  forgive(@Payload() { hash, by = 'nats', reason }: ForgiveRequest): Promise<Answer | undefined> {
    return this.ledger.submit({ type: 'request', request: { op: 'forgive', hash, by, reason } });
  }
}
