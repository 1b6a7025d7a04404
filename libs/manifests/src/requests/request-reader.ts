import type { Reason } from '#libs/contracts';
import { readShape } from '../shape/reader.js';
import { reasonsOf } from '../manifest.js';
import { definitionsOf } from '../shape/json-schema.js';
import { type Class, type Schema } from '../shape/checked.js';
import { REQUESTS, type RequestSubject } from './requests.js';

/** A request, or every reason why it is invalid. */
export type RequestResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reasons: readonly Reason[] };

/** Reads the body of a request. An absent body (an empty payload) is `{}`. */
export function readRequest<T extends object>(type: Class<T>, body: unknown): RequestResult<T> {
  const { value, problems } = readShape(type, body === undefined || body === '' ? {} : body);
  return problems.length > 0 ? { ok: false, reasons: reasonsOf('', problems) } : { ok: true, value };
}

/** A JSON Schema (draft-07) of every request, by subject. */
export function requestSchemas(): Readonly<Record<RequestSubject, Schema>> {
  const schemas = Object.entries(REQUESTS).map(([subject, type]) => [
    subject,
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      $id: `https://sluice.dev/schemas/ops/${subject}.json`,
      title: subject,
      $ref: `#/definitions/${type.name}`,
      definitions: definitionsOf(type),
    },
  ]);
  return Object.fromEntries(schemas) as Record<RequestSubject, Schema>;
}
