import { Catch, ValidationPipe, type RpcExceptionFilter, type ValidationError } from '@nestjs/common';
import { throwError, type Observable } from 'rxjs';
import { BadRequestError } from '../errors.js';

/** Checks what people write: requests, by their class; every reason is told at once. */
export function requestPipe(): ValidationPipe {
  return new ValidationPipe({
    transform: true,
    whitelist: true,
    forbidNonWhitelisted: true,
    forbidUnknownValues: true,
    stopAtFirstError: false,
    exceptionFactory: (errors) => new BadRequestError(errors.flatMap((error) => reasonsOf(error, '')).join('; ')),
  });
}

function reasonsOf(error: ValidationError, path: string): readonly string[] {
  const here = path === '' ? error.property : `${path}.${error.property}`;
  const own = Object.values(error.constraints ?? {}).map((text) => (path === '' ? text : `${here}: ${text}`));
  return [...own, ...(error.children ?? []).flatMap((child) => reasonsOf(child, here))];
}

/** Nest's own filter replaces every error by 'Internal server error'; the strategy needs the original. */
@Catch()
export class RethrowFilter implements RpcExceptionFilter {
  catch(error: unknown): Observable<never> {
    return throwError(() => error);
  }
}
