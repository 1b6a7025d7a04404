import { Controller, Inject } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import type { Answer } from '#libs/kernel';
import { LedgerService } from '#libs/bus';
import { DrainedRequest } from '#libs/requests';
import type { Input, State } from '../core/index.js';

/** What other tools tell the drain service. */
@Controller()
export class DrainController {
  constructor(@Inject(LedgerService) private readonly ledger: LedgerService<State, Input>) {}

  @MessagePattern('ops.node.drained')
  drained(@Payload() { node, lease = '', evicted = 0, by = 'nats' }: DrainedRequest): Promise<Answer | undefined> {
    return this.ledger.submit({ type: 'request', request: { op: 'drained', node, lease, evicted, by } });
  }
}
