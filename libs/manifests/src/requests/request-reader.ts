import type { Reason } from '#libs/contracts';
import { jsonProblems } from '../json-form.js';
import { isObject, readShape } from '../shape/reader.js';
import { reasonsOf } from '../manifest.js';
import { definitionsOf } from '../shape/json-schema.js';
import { type Class, type Problem, type Schema } from '../shape/checked.js';
import { REQUESTS, type RequestSubject } from './requests.js';

/** A request, or every reason why it is invalid. */
export type RequestResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reasons: readonly Reason[] };

/** Reads the body of a request. An absent body (an empty payload) is `{}`. */
export function readRequest<T extends object>(type: Class<T>, body: unknown): RequestResult<T> {
  const json = body === undefined || body === '' ? {} : body;
  const { value, problems } = readShape(type, json);
  const all = [...problems, ...textProblems(json).filter(({ at }) => problems.every((problem) => problem.at !== at))];
  return all.length > 0 ? { ok: false, reasons: reasonsOf('', all) } : { ok: true, value };
}

/** Texts that have no UTF-8, so that no fact could contain them. A plan answers what is wrong with its manifests. */
function textProblems(json: unknown): readonly Problem[] {
  if (!isObject(json)) return [];
  return jsonProblems({ ...json, apply: [], delete: [] });
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
