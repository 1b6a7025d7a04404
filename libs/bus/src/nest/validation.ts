import { Catch, type ArgumentMetadata, type PipeTransform, type RpcExceptionFilter } from '@nestjs/common';
import { throwError, type Observable } from 'rxjs';
import { readRequest } from '#libs/requests';
import { BadRequestError } from '../errors.js';

/** Checks what people write: requests, by their class; every reason is told at once, with the field it is about. */
export class RequestPipe implements PipeTransform {
  transform(value: unknown, { type, metatype }: ArgumentMetadata): unknown {
    // Batches of a stream are no requests: they are arrays, and decoded by their subjects.
    if (type !== 'body' || metatype === undefined || metatype === Array || metatype === Object) return value;
    const read = readRequest(metatype as new () => object, value);
    if (read.ok) return read.value;
    throw new BadRequestError(
      read.reasons.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`)).join('; '),
    );
  }
}

/** Nest's own filter replaces every error by 'Internal server error'; the strategy needs the original. */
@Catch()
export class RethrowFilter implements RpcExceptionFilter {
  catch(error: unknown): Observable<never> {
    return throwError(() => error);
  }
}
