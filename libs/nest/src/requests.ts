import {
  Catch,
  Controller,
  createParamDecorator,
  Inject,
  type ExecutionContext,
  type RpcExceptionFilter,
  type Type,
} from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import { throwError, type Observable } from 'rxjs';
import type { Answer } from '#libs/engine';
import { readRequest, REQUESTS, type RequestOf, type RequestSubject } from '#libs/manifests';
import { BadRequestError, LedgerService } from '#libs/nats';

/** What a handler may need in addition to the payload, through `@Ctx()`. */
export class BusContext {
  constructor(
    readonly subject: string,
    readonly headers: Readonly<Record<string, string>>,
  ) {}
}

/** The subject of every request that a core answers, by its name in the core. */
type RequestTable = Readonly<Record<string, RequestSubject>>;

/**
 * Returns the request with its defaults, or a refusal with every reason. With a table, the request also has `op`, its
 * name in the core.
 */
export const OpsRequest = createParamDecorator((table: RequestTable | undefined, context: ExecutionContext): object => {
  const rpc = context.switchToRpc();
  const { subject } = rpc.getContext<BusContext>();
  const read = readRequest<object>(REQUESTS[subject as RequestSubject], rpc.getData());
  if (read.ok) {
    const op = Object.entries(table ?? {}).find(([, one]) => one === subject)?.[0];
    return op === undefined ? read.value : { ...read.value, op };
  }
  throw new BadRequestError(
    read.reasons.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`)).join('; '),
  );
});

/** A controller that lets a service's core answer every request of a table. */
export function requestController<T extends RequestTable>(table: T): Type {
  @Controller()
  class RequestController {
    constructor(@Inject(LedgerService) private readonly ledger: LedgerService<unknown, RequestInput<T>>) {}

    @MessagePattern(Object.values(table))
    answer(@OpsRequest(table) request: RequestOf<T>): Promise<Answer | undefined> {
      return this.ledger.submit({ type: 'request', request });
    }
  }
  return RequestController;
}

interface RequestInput<T extends RequestTable> {
  readonly type: 'request';
  readonly request: RequestOf<T>;
}

/** Nest's own filter replaces every error by 'Internal server error', but the transport needs the original. */
@Catch()
export class RethrowFilter implements RpcExceptionFilter {
  catch(error: unknown): Observable<never> {
    return throwError(() => error);
  }
}
