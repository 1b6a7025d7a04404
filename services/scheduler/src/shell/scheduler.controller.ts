import { Controller, Inject } from '@nestjs/common';
import { EventPattern, MessagePattern, Payload } from '@nestjs/microservices';
import { decodeReport, REPORTS } from '#libs/contracts';
import type { Answer } from '#libs/kernel';
import { LedgerService, Poison, type BusMessage } from '#libs/bus';
import {
  GetRolloutRequest,
  GiveRequest,
  ListPoolsRequest,
  ListRolloutsRequest,
  MAX_PAGE,
  NodeRequest,
  PoolRequest,
  SettleNodeRequest,
  SteerRequest,
  TakeRequest,
} from '#libs/requests';
import type { Input, Request, State } from '../core/index.js';

/** What the scheduler hears, and what people ask it. */
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

  @MessagePattern('ops.rollout.list')
  list(@Payload() { cursor = '', limit = MAX_PAGE }: ListRolloutsRequest): Promise<Answer | undefined> {
    return this.ask({ op: 'rollout.list', cursor, limit });
  }

  @MessagePattern('ops.rollout.get')
  get(@Payload() { change, cursor = '', limit = MAX_PAGE }: GetRolloutRequest): Promise<Answer | undefined> {
    return this.ask({ op: 'rollout.get', change, cursor, limit });
  }

  @MessagePattern('ops.rollout.pause')
  pause(@Payload() { change, by = 'nats', reason = '' }: SteerRequest): Promise<Answer | undefined> {
    return this.ask({ op: 'rollout.pause', change, by, reason });
  }

  @MessagePattern('ops.rollout.resume')
  resume(@Payload() { change, by = 'nats', reason = '' }: SteerRequest): Promise<Answer | undefined> {
    return this.ask({ op: 'rollout.resume', change, by, reason });
  }

  @MessagePattern('ops.rollout.abort')
  abort(@Payload() { change, by = 'nats', reason = '' }: SteerRequest): Promise<Answer | undefined> {
    return this.ask({ op: 'rollout.abort', change, by, reason });
  }

  @MessagePattern('ops.node.why')
  why(@Payload() { node }: NodeRequest): Promise<Answer | undefined> {
    return this.ask({ op: 'node.why', node });
  }

  @MessagePattern('ops.node.skip')
  skip(@Payload() { node, by = 'nats', reason = '' }: SettleNodeRequest): Promise<Answer | undefined> {
    return this.ask({ op: 'node.skip', node, by, reason });
  }

  @MessagePattern('ops.pool.list')
  pools(@Payload() { cursor = '', limit = MAX_PAGE }: ListPoolsRequest): Promise<Answer | undefined> {
    return this.ask({ op: 'pool.list', cursor, limit });
  }

  @MessagePattern('ops.pool.get')
  pool(@Payload() { pool }: PoolRequest): Promise<Answer | undefined> {
    return this.ask({ op: 'pool.get', pool });
  }

  @MessagePattern('ops.pool.take')
  take(
    @Payload() { node, pool = '', owner, reason = '', by = 'nats', forMs = 0 }: TakeRequest,
  ): Promise<Answer | undefined> {
    return this.ask({ op: 'pool.take', node, pool, owner, reason, by, forMs });
  }

  @MessagePattern('ops.pool.give')
  give(@Payload() { node, owner, by = 'nats' }: GiveRequest): Promise<Answer | undefined> {
    return this.ask({ op: 'pool.give', node, owner, by });
  }

  private ask(request: Request): Promise<Answer | undefined> {
    return this.ledger.submit({ type: 'request', request });
  }
}
